"""Whatever a run's files say, a check finds, stays silent or says why it cannot judge."""

from __future__ import annotations

import importlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradian_checks import config, dynamics
from gradian_core.audit.collect_log import collect_log
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, rows, tokenizer, tokens
from gradian_core.check import Check
from gradian_core.runs.artifact import TrainerLog, TrainingConfig, UnknownKey, Value
from gradian_core.runs.settings import SETTINGS

SPECS = [*config.gradian_checks(), *dynamics.gradian_checks()]
EXAMPLES, TOKENS, TOKENIZER = rows(n=5), tokens(n=5, max_seq_length=20), tokenizer()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.just(10**400),
    st.sampled_from(["", "auto", "no", "linear", "adamw_torch", "full", "lora", "9" * 5000, "é"]),
    st.text(max_size=8),
)
anything = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(st.text(), scalars))
values = st.builds(
    Value, anything, st.just("file"), st.sampled_from(["ran", "asked", "inferred", "default"])
)
keys = st.builds(
    UnknownKey,
    name=st.sampled_from([*SETTINGS, "other"]),
    value=anything,
    source=st.just("file:1"),
    meant=st.none() | st.text(max_size=5),
)
trainings = st.builds(
    TrainingConfig,
    tool=st.sampled_from(["transformers", "trl", "axolotl", "torchtune", "mlx-lm", "other"]),
    version=st.none() | st.text(max_size=6) | st.sampled_from(["0.19.1", "1" * 5000, "v4.47"]),
    values=st.dictionaries(st.sampled_from(list(SETTINGS)), values, max_size=25),
    requested=st.dictionaries(st.sampled_from(list(SETTINGS)), values, max_size=4),
    unknown_keys=st.lists(keys, max_size=3).map(tuple),
    versions=st.dictionaries(st.sampled_from(["trl", "transformers", "peft"]), values),
)
LORA_KEYS = (
    "r",
    "lora_alpha",
    "lora_dropout",
    "use_rslora",
    "rank_pattern",
    "alpha_pattern",
    "target_modules",
    "exclude_modules",
    "target_parameters",
    "modules_to_save",
    "ensure_weight_tying",
)
adapters = st.builds(
    lambda raw, base: adapter(**raw, base_model_name_or_path=base),
    st.dictionaries(st.sampled_from(LORA_KEYS), anything),
    st.none() | st.text(max_size=12) | st.sampled_from(["gpt2", "Qwen/Qwen2.5-7B", "9" * 5000]),
)
FIELDS = ("step", "epoch", "loss", "grad_norm", "learning_rate", "eval_loss", "train_runtime")
CLOSING = ("train_samples_per_second", "train_steps_per_second", "train_loss")
logs = st.builds(
    lambda records, taken, planned: collect_log(
        TrainerLog(records=tuple(records), global_step=taken, max_steps=planned)
    ),
    st.lists(st.dictionaries(st.sampled_from(FIELDS + CLOSING), scalars, max_size=7), max_size=25),
    st.none() | st.integers(0, 10**9),
    st.none() | st.integers(0, 10**9),
)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@given(training=trainings, adapter_=adapters, log=logs, bare=st.booleans())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_file_breaks_a_check(spec, training, adapter_, log, bare: bool) -> None:
    module, _, name = spec.factory.partition(":")
    check = getattr(importlib.import_module(module), name)
    assert isinstance(check, Check)
    facts = {"training": training, "adapter": adapter_, "log": log, "tokens": TOKENS}
    if not bare:
        facts |= {"examples": EXAMPLES, "tokenizer": TOKENIZER}
    try:
        findings = list(check(**facts))
    except NotAssessed:
        return
    for finding in findings:
        assert finding.id == spec.name
        assert finding.severity.rank >= check.severity.rank
        json.dumps(finding.evidence, allow_nan=False)
