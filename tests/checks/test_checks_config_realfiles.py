"""Public files of real runs: what must be found in them, and what must not.

The files lie beside the checkout, where there is one; without them the tests are skipped.
Expectations are those of their index; where a check judges otherwise, the reason stands here.
"""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

from gradian_checks import config, dynamics
from gradian_core.audit.collect_log import collect_log
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.fold import fold
from gradian_core.audit.samples import rows
from gradian_core.findings import Finding, Severity
from gradian_core.plugins.registry import load_registry
from gradian_core.runs.resolve import read_run

REAL = Path(__file__).resolve().parents[2].parent / "shared" / "realfiles"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="no real files beside the checkout")

INFO, LOW, MEDIUM = Severity.INFO, Severity.LOW, Severity.MEDIUM
HIGH, CRITICAL = Severity.HIGH, Severity.CRITICAL
SPECS = [*config.gradian_checks(), *dynamics.gradian_checks()]
NAMES = {
    "trainer_state": "trainer_state.json",
    "adapter_config": "adapter_config.json",
    "README": "README.md",
    "training_args": "training_args.bin",
    "trainer_log": "trainer_log.jsonl",
}

# files -> findings above info that there must be, all of them
FIRES: dict[str, dict[str, Severity]] = {
    "01": {"config.undertrained": LOW, "config.no_eval_set": LOW, "dynamics.too_few_steps": LOW},
    "02": {"config.no_eval_set": LOW, "dynamics.lr_rewarm_on_resume": MEDIUM},
    "04": {},
    "06": {},
    "10": {},
    "11": {},
    "10+11+13": {},
    "13": {},
    "16": {"config.no_eval_set": LOW},
    "18": {
        "config.fp16_precision": LOW,
        "config.no_eval_set": LOW,
        "config.large_effective_batch": LOW,
    },
    "16+18+20": {
        "config.fp16_precision": LOW,
        "config.no_eval_set": LOW,
        "config.large_effective_batch": LOW,
        "config.attention_only_targets": MEDIUM,
    },
    "20": {"config.attention_only_targets": MEDIUM},
    "23": {"config.small_effective_batch": LOW},
    "26": {"config.attention_only_targets": MEDIUM},
    "27": {"config.attention_only_targets": MEDIUM},
    # says only that it is no LoRA adapter
    "29": {"config.not_a_lora_run": LOW},
    "30": {},
    "31": {},
    "34": {"config.no_eval_set": LOW},
    # torchtune's own rate is in the low band of both measures
    "41": {"config.seed_unset": LOW, "config.no_eval_set": LOW, "config.lr_too_high": LOW},
    "42": {"config.attention_only_targets": MEDIUM, "config.small_effective_batch": LOW},
    "48+49": {
        "config.no_eval_set": LOW,
        "config.undertrained": LOW,
        "dynamics.too_few_steps": HIGH,
        "dynamics.initial_loss_too_high": MEDIUM,
    },
    "49": {},
    "51": {
        "config.no_eval_set": LOW,
        "config.large_effective_batch": LOW,
        "dynamics.no_loss_logged": LOW,
    },
    "53": {},
    "55": {
        "dynamics.always_clipping": LOW,
        "dynamics.initial_loss_too_high": HIGH,
        "dynamics.loss_scale_mismatch": MEDIUM,
    },
    "57": {
        "dynamics.nan_loss": CRITICAL,
        "dynamics.initial_loss_too_high": HIGH,
        "config.no_eval_set": LOW,
    },
    "58": {
        "config.ignored_config_key": HIGH,
        "config.requested_vs_actual": MEDIUM,
        "config.target_modules_unmatched": MEDIUM,
        "config.attention_only_targets": MEDIUM,
        "config.small_effective_batch": LOW,
    },
    "60": {"config.attention_only_targets": MEDIUM, "config.overtraining": LOW},
    "62": {"config.attention_only_targets": MEDIUM, "config.small_effective_batch": LOW},
    "64": {
        "config.not_a_lora_run": MEDIUM,
        "config.ignored_config_key": MEDIUM,
        "config.small_effective_batch": LOW,
    },
    "71": {"dynamics.nan_loss": CRITICAL, "config.no_eval_set": LOW},
}

TOLD: dict[str, set[str]] = {
    "10": {"config.seed_unset", "config.base_model_mismatch"},
    "11": {"config.base_model_mismatch"},
    "16": {"config.no_warmup"},
    "18": {"config.no_warmup"},
    # low in the index; the rate is far below where a missing warmup matters, so info
    "23": {"config.no_warmup", "config.grad_clip_disabled"},
    "31": {"config.pad_equals_eos", "config.seed_unset"},
    "41": {"config.grad_clip_disabled"},
    "58": {"config.pad_equals_eos"},
    "64": {"config.seed_unset"},
}
"""Findings at the level of info that there must be."""

SILENT: dict[str, set[str]] = {
    "01": {"config.no_warmup"},
    "10": {"config.no_warmup"},
    "41": {"config.no_warmup"},
    "58": {"config.no_warmup", "config.seed_unset", "config.known_bad_versions"},
    "60": {"config.pad_equals_eos"},
    "64": {"config.no_warmup", "config.lr_too_low", "config.no_eval_set"},
    "62": {"config.no_eval_set", "config.undertrained", "dynamics.overfitting"},
    "23": {"config.seed_unset", "config.attention_only_targets"},
}
"""Checks that must not even tell."""


def audit(folder: Path, files: str, **more) -> tuple[dict[str, Finding], set[str]]:
    """Return what was found in a folder of these files, and which checks did not judge."""
    for number in files.split("+"):
        (source,) = REAL.glob(f"{number}-*")
        rest = source.name.partition("-")[2]
        kind = next((name for key, name in NAMES.items() if key in rest), rest)
        shutil.copy(source, folder / kind)
    run = read_run(folder, load_registry())
    log = None if run.log is None else collect_log(run.log)
    given = {"training": run.training, "adapter": run.adapter, "log": log, **more}
    facts = {name: value for name, value in given.items() if value is not None}
    found: list[Finding] = []
    unjudged = set()
    for spec in SPECS:
        module, _, name = spec.factory.partition(":")
        check = getattr(importlib.import_module(module), name)
        try:
            if not all(need in facts for need in check.needs):
                unjudged.add(spec.name)
                continue
            found += check(**facts)
        except NotAssessed:
            unjudged.add(spec.name)
    return {finding.id: finding for finding in fold(found)}, unjudged


@pytest.mark.parametrize("files", FIRES)
def test_real_run(files: str, tmp_path: Path) -> None:
    found, _ = audit(tmp_path, files)
    severe = {name: f.severity for name, f in found.items() if f.severity is not INFO}
    assert severe == FIRES[files]
    told = {name for name, f in found.items() if f.severity is INFO}
    assert TOLD.get(files, set()) <= told
    assert not SILENT.get(files, set()) & found.keys()


def test_nothing_is_judged_without_losses(tmp_path: Path) -> None:
    _, unjudged = audit(tmp_path, "51")
    assert {spec.name for spec in dynamics.gradian_checks() if spec.core} <= unjudged


def test_a_card_without_settings_is_not_judged(tmp_path: Path) -> None:
    found, unjudged = audit(tmp_path, "06")
    assert found == {}
    assert {"config.lr_too_high", "config.no_warmup", "config.overtraining"} <= unjudged


def test_another_method_is_not_judged_as_lora(tmp_path: Path) -> None:
    _, unjudged = audit(tmp_path, "29")
    assert {
        "config.attention_only_targets",
        "config.high_lora_dropout",
        "config.target_modules_unmatched",
        "config.adapter_weights_dead",
    } <= unjudged


def test_log_without_norms_is_not_judged_by_them(tmp_path: Path) -> None:
    _, unjudged = audit(tmp_path, "13")
    assert {"dynamics.grad_norm_explosion", "dynamics.always_clipping"} <= unjudged


def test_batch_of_the_run_without_losses_counts_devices(tmp_path: Path) -> None:
    found, _ = audit(tmp_path, "51")
    assert found["config.large_effective_batch"].evidence["effective_batch"] == 112


def test_consequences_follow_their_cause(tmp_path: Path) -> None:
    found, _ = audit(tmp_path, "58")
    assert found["config.requested_vs_actual"].because_of == "config.ignored_config_key"
    assert "num_epochs" in found["config.ignored_config_key"].fix
    ignored = found["config.ignored_config_key"].evidence["keys"]
    assert len(ignored) == 7


def test_scale_bug_explains_clipping(tmp_path: Path) -> None:
    found, _ = audit(tmp_path, "55")
    assert found["dynamics.always_clipping"].because_of == "dynamics.loss_scale_mismatch"
    assert found["dynamics.loss_scale_mismatch"].evidence["ratio"] == pytest.approx(16.8, abs=0.3)


def test_warmup_longer_than_the_run(tmp_path: Path) -> None:
    # the script that belongs to 48 asks for 20 steps of warmup; its 8 rows make 6 steps
    import dataclasses

    from gradian_core.runs.artifact import Value

    (source,) = REAL.glob("48-*")
    shutil.copy(source, tmp_path / "trainer_state.json")
    run = read_run(tmp_path, load_registry())
    assert run.training is not None
    assert run.log is not None
    values = {**run.training.values, "warmup_steps": Value(20, "script.py:9")}
    settings = dataclasses.replace(run.training, values=values)
    module = importlib.import_module("gradian_checks.config.warmup_exceeds_training")
    facts = {"training": settings, "log": collect_log(run.log), "examples": rows(n=8)}
    (finding,) = module.warmup_exceeds_training(**facts)
    assert finding.severity is HIGH
