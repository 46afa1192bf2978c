"""Built-in run readers, one file each."""

from __future__ import annotations

from collections.abc import Iterable

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import RunReaderSpec


@hookimpl
def gradian_run_readers() -> Iterable[RunReaderSpec]:
    """Declare the built-in run readers."""
    yield RunReaderSpec(
        name="hf",
        summary="transformers Trainer, trl, unsloth: state, arguments, card, events, adapter",
        factory="gradian_plugins.runs.hf:HFRunReader",
    )
    yield RunReaderSpec(
        name="trl",
        summary="config of trl's command line and of the alignment handbook",
        factory="gradian_plugins.runs.trl:TrlRunReader",
    )
    yield RunReaderSpec(
        name="axolotl",
        summary="axolotl: its config, by itself or in the model card",
        factory="gradian_plugins.runs.axolotl:AxolotlRunReader",
    )
    yield RunReaderSpec(
        name="llamafactory",
        summary="LLaMA-Factory: its config and trainer_log.jsonl",
        factory="gradian_plugins.runs.llamafactory:LlamaFactoryRunReader",
    )
    yield RunReaderSpec(
        name="torchtune",
        summary="torchtune: its config and text log",
        factory="gradian_plugins.runs.torchtune:TorchtuneRunReader",
    )
    yield RunReaderSpec(
        name="mlx",
        summary="mlx-lm: its config, adapter_config.json and printed log",
        factory="gradian_plugins.runs.mlx:MlxRunReader",
    )
    yield RunReaderSpec(
        name="wandb",
        summary="Weights & Biases: config, summary and output of a run folder",
        factory="gradian_plugins.runs.wandb:WandbRunReader",
    )
    yield RunReaderSpec(
        name="gradian",
        summary="gradian_run.json, recorded by Gradian's callback",
        factory="gradian_plugins.runs.gradian:GradianRunReader",
    )
    yield RunReaderSpec(
        name="script",
        summary="training script in Python: constants in its calls, never executed",
        factory="gradian_plugins.runs.script:ScriptRunReader",
    )
