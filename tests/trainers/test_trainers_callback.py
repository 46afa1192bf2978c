"""The callback in somebody's own Trainer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradian_core

pytest.importorskip("accelerate")

MODEL = Path(gradian_core.__file__).parent / "demo" / "model"


def trained(tmp_path, callback, **settings):
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    model = AutoModelForCausalLM.from_pretrained(MODEL, local_files_only=True).float()
    rows = [{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]} for _ in range(4)]

    def collate(batch):
        return {key: torch.tensor([row[key] for row in batch]) for key in ("input_ids", "labels")}

    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=2,
        per_device_train_batch_size=2,
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        hub_token="hf_secret",
        **settings,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        data_collator=collate,
        callbacks=[callback],
    )
    trainer.train()
    return tmp_path / "out"


def test_it_needs_no_argument_and_tells_no_secret(tmp_path):
    out = trained(tmp_path, gradian_core.GradianCallback())
    text = (out / "gradian_run.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert "hf_secret" not in text
    assert record["tool"] == "transformers"
    assert record["adapter"] is None
    assert record["train_data"]["rows"] == 4
    assert record["first_rows"][0] == {"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}
    assert record["log"]["finished"] is True
    assert record["log"]["global_step"] == 2
    assert record["arguments"]["max_steps"] == 2


def test_a_record_that_cannot_be_written_never_stops_training(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    callback = gradian_core.GradianCallback(blocked / "gradian_run.json")
    with pytest.warns(RuntimeWarning, match="gradian_run.json is not written"):
        trained(tmp_path, callback)
