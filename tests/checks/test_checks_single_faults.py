"""Whole run folders with one fault each, and the same folders without it, through the audit.

A folder is what trl leaves behind: the trainer's state, the pickled arguments, the adapter's
config. Beside it lie training rows, eval rows and a tokenizer.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import zipfile
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradian_core.audit import samples
from gradian_core.audit.fold import groups
from gradian_core.config.models import Config
from gradian_core.findings import Severity
from gradian_core.flows.diagnose import diagnose

ROWS, EVAL_ROWS = 800, 80
ARGUMENTS = {
    "learning_rate": 2e-4,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "num_train_epochs": 2,
    "max_steps": -1,
    "warmup_ratio": 0.03,
    "warmup_steps": 0,
    "lr_scheduler_type": "linear",
    "max_grad_norm": 1.0,
    "optim": "adamw_torch",
    "weight_decay": 0.0,
    "seed": 42,
    "bf16": True,
    "fp16": False,
    "logging_steps": 1,
    "max_length": 512,
    "packing": False,
    "completion_only_loss": None,
    "assistant_only_loss": False,
}


class SFTConfig:
    """Pickled under trl's name."""


SFTConfig.__module__ = "trl.trainer.sft_config"


def prose(seed: int, n: int) -> list[dict[str, str]]:
    """Return rows of random words: no two are alike, and no question has two answers."""
    draw = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(4000)]
    said = [
        (draw.choices(words, k=9), draw.choices(words, k=draw.randint(14, 22))) for _ in range(n)
    ]
    return [
        {"prompt": " ".join(q).capitalize() + "?", "completion": " ".join(a).capitalize() + "."}
        for q, a in said
    ]


def history(
    steps: int,
    epochs: float,
    rate: float,
    *,
    evals: bool = True,
    overfit: bool = False,
    norm: float = 0.6,
    rising: bool = False,
    dead_from: float | None = None,
    spikes: bool = False,
) -> list[dict[str, Any]]:
    """Return the log of a run that learns; the last half of the evaluations may get worse."""
    rng = np.random.default_rng(11)
    records: list[dict[str, Any]] = []
    warmup = max(steps // 33, 1)
    for i in range(1, steps + 1):
        loss = (1.2 + np.exp(-i / (steps / 20))) * np.exp(0.05 * rng.normal())
        grad = norm * np.exp(0.15 * rng.normal()) * (1 + 2 * i / steps if rising else 1)
        if norm > 1 and i % 33 == 0:
            grad = 0.8  # 3% of the steps are not clipped
        if overfit:
            loss *= 1 - 0.8 * i / steps
        if spikes and i in {steps // 2, steps // 2 + 1, steps // 2 + 2}:
            loss, grad = loss * 5, grad * 30
        if dead_from is not None and i > dead_from * steps:
            loss, grad = 0.0, float("nan")
        at = {"step": i, "epoch": i / steps * epochs}
        now = rate * min(i / warmup, (steps - i) / (steps - warmup))
        records.append({**at, "loss": float(loss), "grad_norm": float(grad), "learning_rate": now})
        if evals and i % max(steps // 8, 1) == 0:
            value = 1.25 + np.exp(-i / (steps / 20))
            if overfit:
                value += max(i / steps - 0.25, 0)
            dead = dead_from is not None and i > dead_from * steps
            value = float("nan") if dead else float(value)
            speed = {"eval_runtime": 2.0, "eval_samples_per_second": EVAL_ROWS / 2}
            records.append({**at, "eval_loss": value, **speed})
    records.append({"step": steps, "epoch": epochs, "train_loss": 1.2, "train_runtime": 100.0})
    return records


class Maker:
    """Writes a run and what belongs to it."""

    def __init__(self, folder, monkeypatch, tokenizer):
        self._folder = folder
        self._tokenizer = tokenizer
        module = ModuleType(SFTConfig.__module__)
        module.SFTConfig = SFTConfig
        for name in ("trl", "trl.trainer"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, SFTConfig.__module__, module)

    def __call__(self, *, rows=None, eval_rows=None, adapter=None, course=None, **arguments):
        rows = prose(1, ROWS) if rows is None else rows
        eval_rows = prose(2, EVAL_ROWS) if eval_rows is None else eval_rows
        course = course or {}
        evals = course.get("evals", True)
        values = {**ARGUMENTS, "eval_strategy": "steps" if evals else "no", **arguments}
        run = self._folder / "run"
        run.mkdir()
        batch = values["per_device_train_batch_size"] * values["gradient_accumulation_steps"]
        epochs = values["num_train_epochs"]
        steps = len(rows) // batch * epochs
        state = {
            "epoch": float(epochs),
            "global_step": steps,
            "max_steps": steps,
            "num_train_epochs": epochs,
            "train_batch_size": values["per_device_train_batch_size"],
            "logging_steps": 1,
            "best_global_step": None,
            "stateful_callbacks": {},
            "log_history": history(steps, float(epochs), values["learning_rate"], **course),
        }
        (run / "trainer_state.json").write_text(json.dumps(state))
        config = {**samples.adapter(**(adapter or {})).raw, "peft_version": "0.18.0"}
        (run / "adapter_config.json").write_text(json.dumps(config))
        made = SFTConfig()
        vars(made).update(values)
        with zipfile.ZipFile(run / "training_args.bin", "w") as file:
            file.writestr("archive/data.pkl", pickle.dumps(made, protocol=2))
            file.writestr("archive/version", "3\n")
        paths = {"dataset": rows, "eval_dataset": eval_rows if evals else None}
        for name, content in paths.items():
            if content is not None:
                lines = "".join(json.dumps(row) + "\n" for row in content)
                (self._folder / f"{name}.jsonl").write_text(lines)
        return diagnose(
            Config(
                run_dir=str(run),
                tokenizer=self._tokenizer,
                **{k: str(self._folder / f"{k}.jsonl") for k, v in paths.items() if v is not None},
            )
        )


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    samples.tokenizer().tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def make(tmp_path, monkeypatch, tokenizer):
    return Maker(tmp_path, monkeypatch, tokenizer)


def with_copies(share: float) -> list[dict[str, str]]:
    rows = prose(1, ROWS)
    n = round(len(rows) * share)
    return rows[: len(rows) - n] + rows[:n]


def contradicting(n: int, *, same: bool = False) -> list[dict[str, str]]:
    rows = prose(1, ROWS)
    others = prose(3, n)
    # the twin says the same again in a row of its own kind: new questions
    return [
        *rows,
        *(
            other if same else {**row, "completion": other["completion"]}
            for row, other in zip(rows, others, strict=False)
        ),
    ]


def silent(n: int) -> list[dict[str, str]]:
    rows = prose(1, ROWS)
    return [{**row, "completion": "" if i < n else row["completion"]} for i, row in enumerate(rows)]


ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
# what -> the fault, its healthy twin, the finding that leads, its severity
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "12-epochs-with-evals": (
        {"num_train_epochs": 12, "course": {"overfit": True}},
        {"num_train_epochs": 2},
        "config.overtraining",
        "high",
    ),
    "12-epochs-without-evals": (
        {"num_train_epochs": 12, "course": {"evals": False}},
        {"num_train_epochs": 1},
        "config.overtraining",
        "high",
    ),
    "lr-2e-3": (
        {"learning_rate": 2e-3, "course": {"spikes": True}},
        {"learning_rate": 1e-4},
        "config.lr_too_high",
        "critical",
    ),
    "batch-of-one": (
        {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 1},
        {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8},
        "config.small_effective_batch",
        "medium",
    ),
    "clipping-97-percent": (
        {"course": {"norm": 3.0, "rising": True}},
        {"course": {"norm": 0.5}},
        "dynamics.always_clipping",
        "medium",
    ),
    "max-length-48": (
        {"max_length": 48},
        {"max_length": 1024},
        "config.max_seq_length_vs_data",
        "high",
    ),
    "attention-only": (
        {"adapter": {"target_modules": ATTENTION}},
        {"adapter": {"target_modules": "all-linear"}},
        "config.attention_only_targets",
        "medium",
    ),
    "contamination": (
        {"eval_rows": prose(1, ROWS)[:EVAL_ROWS]},
        {"eval_rows": prose(4, EVAL_ROWS)},
        "data.train_eval_contamination",
        "critical",
    ),
    "contradictions": (
        {"rows": contradicting(51)},
        {"rows": contradicting(51, same=True)},
        "data.conflicting_answers",
        "high",
    ),
    "nan-behind-zero": (
        {"course": {"dead_from": 0.4}},
        {"course": {"norm": 0.4}},
        "dynamics.nan_loss",
        "critical",
    ),
    "duplicates": (
        {"rows": with_copies(0.3)},
        {"rows": with_copies(0.005)},
        "data.duplicates",
        "high",
    ),
    "empty-answers": (
        {"rows": silent(60)},
        {"rows": silent(0)},
        "data.empty_or_degenerate_targets",
        "high",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_leads(make, name):
    fault, _, expected, severity = FAULTS[name]
    told = groups(make(**fault).findings)
    above = [(g.lead.id, str(g.worst)) for g in told if g.worst is not Severity.INFO]
    assert told[0].lead.id == expected, above
    assert told[0].lead.severity == severity, above
    # whatever else is told is less, and none of it is another fault of this table
    rest = {g.lead.id for g in told[1:] if g.worst.rank <= Severity.MEDIUM.rank}
    assert rest <= {"config.no_eval_set"}, above


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_told_of_its_healthy_twin(make, name):
    report = make(**FAULTS[name][1])
    assert [(f.id, f.title) for f in report.findings if f.severity is not Severity.INFO] == []
    # and it was looked at: a check that cannot judge is not clean
    assert FAULTS[name][2] not in {entry.what for entry in report.not_done}
