"""Fine-tunes whose fault was planted and whose findings were recorded, as inputs again."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from gradian_checks import config, dynamics
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.fold import fold
from gradian_core.audit.samples import adapter, log, rows, tokens, training
from gradian_core.findings import Finding, Severity

SPECS = [*config.gradian_checks(), *dynamics.gradian_checks()]
LOW, MEDIUM = Severity.LOW, Severity.MEDIUM
HIGH, CRITICAL = Severity.HIGH, Severity.CRITICAL
ROWS = 800
SETTINGS = {
    "learning_rate": 2e-4,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "world_size": 1,
    "num_train_epochs": 1,
    "warmup_ratio": 0.03,
    "lr_scheduler_type": "linear",
    "max_seq_length": 512,
    "max_grad_norm": 1.0,
    "optim": "adamw_torch",
    "seed": 42,
    "bf16": True,
    "fp16": False,
    "has_eval_set": True,
    "packing": False,
    "stage": "sft",
}
ADAPTER = {"r": 8, "lora_alpha": 16}


def course(steps: int, epochs: float, *, norm: float = 0.6, spike: bool = False):
    """Return the log of a run that learns: one line a step."""
    rng = np.random.default_rng(11)
    x = np.arange(steps)
    loss = (1.2 + 1.0 * np.exp(-x / (steps / 20))) * np.exp(0.08 * rng.normal(size=steps))
    norms = norm * np.exp(0.15 * rng.normal(size=steps))
    if norm > 1:
        norms[:: round(1 / 0.03)] = 0.8  # 3% of the steps are not clipped
    if spike:
        loss[steps // 2] = 5.6
    warmup = max(steps // 33, 1)
    rate = [2e-4 * min(i / warmup, (steps - i) / (steps - warmup)) for i in range(steps)]
    return log(
        [float(v) for v in loss],
        grad_norm=[float(v) for v in norms],
        learning_rate=rate,
        epochs=epochs,
    )


def audit(**facts) -> dict[str, Finding]:
    """Run all checks that the facts allow, as the audit does."""
    found = []
    for spec in SPECS:
        module, _, name = spec.factory.partition(":")
        check = getattr(importlib.import_module(module), name)
        if all(need in facts for need in check.needs):
            try:
                found += check(**facts)
            except NotAssessed:
                continue
    return {finding.id: finding for finding in fold(found)}


def run(steps: int = 100, epochs: float = 1.0, *, settings=None, raw=None, log_=None):
    return audit(
        training=training("transformers", "4.57.1", **{**SETTINGS, **(settings or {})}),
        adapter=adapter(**{**ADAPTER, **(raw or {})}),
        examples=rows(n=ROWS),
        log=log_ or course(steps, epochs),
    )


def worst(found: dict[str, Finding]) -> Severity | None:
    return min((f.severity for f in found.values()), key=lambda s: s.rank, default=None)


def test_a_healthy_run_has_no_finding() -> None:
    found = run()
    assert {k: f.severity for k, f in found.items() if f.severity is not Severity.INFO} == {}


def test_twelve_epochs() -> None:
    found = run(1200, 12.0, settings={"num_train_epochs": 12})
    assert found["config.overtraining"].severity is HIGH
    assert found["config.overtraining"].title.startswith("12 epochs over 800 rows")
    assert [k for k, f in found.items() if f.severity.rank <= MEDIUM.rank] == [
        "config.overtraining"
    ]


def test_learning_rate_of_full_fine_tuning() -> None:
    found = run(300, 3.0, settings={"learning_rate": 2e-3, "num_train_epochs": 3})
    assert found["config.lr_too_high"].severity is CRITICAL
    assert "lr=2e-3 x alpha/r=2 = 4e-3" in found["config.lr_too_high"].title
    # medium in the record, a false alarm by our standard
    assert found["config.overtraining"].severity is LOW


def test_batch_of_one_at_a_high_rate() -> None:
    found = run(
        settings={
            "learning_rate": 5e-4,
            "per_device_train_batch_size": 1,
            "gradient_accumulation_steps": 1,
        },
        log_=course(800, 1.0, norm=3.0, spike=True),
    )
    expected = {
        "config.lr_too_high": HIGH,
        "config.small_effective_batch": MEDIUM,
        "dynamics.always_clipping": MEDIUM,
        "dynamics.loss_spike": MEDIUM,
    }
    assert {k: f.severity for k, f in found.items() if f.severity.rank <= MEDIUM.rank} == expected
    assert "97%" in found["dynamics.always_clipping"].title
    assert found["dynamics.loss_spike"].title == "1 loss spike above 3x the median loss"
    # one root cause leads, the rest follow from it
    assert {f.because_of for k, f in found.items() if k in expected} == {None, "config.lr_too_high"}


@pytest.mark.parametrize(
    "targets", [["q_proj", "v_proj"], ["q_proj", "k_proj", "v_proj", "o_proj"]]
)
def test_attention_only(targets: list[str]) -> None:
    found = run(raw={"target_modules": targets})
    assert found["config.attention_only_targets"].severity is MEDIUM
    assert worst(found) is MEDIUM


def test_sequence_length_of_48() -> None:
    rng = np.random.default_rng(5)
    lengths = np.clip(rng.lognormal(4.4, 0.5, ROWS), 50, 400).astype(int)
    items = [{"text": "a" * int(n)} for n in lengths]
    facts = tokens(items=items, max_seq_length=48)
    settings = training(**{**SETTINGS, "max_seq_length": 48})
    found = audit(training=settings, tokens=facts, examples=rows(items=items))
    finding = found["config.max_seq_length_vs_data"]
    assert finding.severity is HIGH
    assert finding.evidence["p95"] == pytest.approx(200, rel=0.15)
    assert finding.evidence["rows_over"] == ROWS
