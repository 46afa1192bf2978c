"""Logits at supervised positions against the full logits of each row alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import CannotRunError
from gradian_core.evaluation.likelihood import sequence_logprobs
from gradian_core.gradients.collate import collate
from gradian_core.model.logits import supervised_logits

LENGTHS = (9, 21, 5, 14, 30)
EXACT = {"rtol": 1e-9, "atol": 1e-9}
"""For scaled-dot-product attention in float64; eager attention takes its softmax in float32."""
EAGER = {"rtol": 1e-3, "atol": 1e-4}


def make_tokens(lengths=LENGTHS, seed=0) -> TokenizedRows:
    rng = np.random.default_rng(seed)
    masks = [rng.random(length) < 0.5 for length in lengths]
    for mask in masks:
        mask[0], mask[-1] = False, True
    return TokenizedRows(
        ids=tuple(map(str, range(len(lengths)))),
        rows=np.arange(len(lengths)),
        input_ids=rng.integers(0, 256, sum(lengths)).astype(np.int32),
        supervised=np.concatenate(masks),
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        full_lengths=np.asarray(lengths, dtype=np.int32),
        full_supervised=np.asarray([mask.sum() for mask in masks], dtype=np.int32),
        supervision=np.zeros(len(lengths), dtype=np.uint8),
    )


def reference(model, tokens):
    """Full logits of each row without padding, by the model's plain forward pass."""
    found = []
    for i in range(len(tokens)):
        ids, mask = tokens.row(i)
        with torch.no_grad():
            logits = model(torch.from_numpy(ids.astype(np.int64))[None]).logits[0]
        (at,) = np.nonzero(mask)
        found.append((logits[at - 1], torch.from_numpy(ids[at].astype(np.int64))))
    return found


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize(
    ("architecture", "attention", "dtype"),
    [
        ("llama", "sdpa", torch.float64),
        ("gpt2", "sdpa", torch.float64),
        ("llama", "eager", torch.float32),
        ("gemma2", "eager", torch.float32),
        ("gpt2", "eager", torch.float32),
        ("bloom", "eager", torch.float32),
    ],
)
def test_equal_full_logits(build, architecture, attention, dtype, padding_side):
    model = build.loaded(architecture, dtype, attention=attention).model
    tolerance = EXACT if attention == "sdpa" else EAGER
    tokens = make_tokens()
    batch = collate(
        tokens, range(len(tokens)), pad_token_id=7, device="cpu", padding_side=padding_side
    )
    logits, rows, targets = supervised_logits(model, batch)
    wanted = reference(model, tokens)
    assert rows.tolist() == [i for i, (at, _) in enumerate(wanted) for _ in range(len(at))]
    assert torch.equal(targets, torch.cat([ids for _, ids in wanted]))
    torch.testing.assert_close(logits, torch.cat([at for at, _ in wanted]), **tolerance)


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_padding_on_the_right_is_harmless_in_float64_with_eager_attention(build, architecture):
    model = build.base(architecture, torch.float64)
    tokens = make_tokens()
    batch = collate(tokens, range(5), pad_token_id=7, device="cpu")
    logits = supervised_logits(model, batch)[0]
    wanted = torch.cat([at for at, _ in reference(model, tokens)])
    torch.testing.assert_close(logits, wanted, **EAGER)


def test_soft_capping_still_applies(build):
    model = build.base("gemma2", torch.float64)
    batch = collate(make_tokens(), range(5), pad_token_id=7, device="cpu")
    with torch.no_grad():
        capped = supervised_logits(model, batch)[0]
        model.config.final_logit_softcapping = None
        plain = supervised_logits(model, batch)[0]
    assert plain.abs().max() > 3.0 > capped.abs().max()
    torch.testing.assert_close(capped, 3.0 * torch.tanh(plain / 3.0))


def test_only_supervised_positions_reach_the_head(build):
    model = build.base()
    batch = collate(make_tokens(), range(5), pad_token_id=7, device="cpu")
    shapes = []
    handle = model.lm_head.register_forward_hook(lambda _m, _a, out: shapes.append(out.shape))
    supervised_logits(model, batch)
    handle.remove()
    assert shapes == [(1, int(batch.supervised.sum()), model.config.vocab_size)]
    assert not model.lm_head._forward_pre_hooks


def test_the_hook_is_removed_when_the_model_fails(build, monkeypatch):
    model = build.base()
    batch = collate(make_tokens(), range(5), pad_token_id=7, device="cpu")

    def fail(*args, **kwargs):
        raise RuntimeError("stop")

    monkeypatch.setattr(model.model.layers[0], "forward", fail)
    with pytest.raises(RuntimeError, match="stop"):
        supervised_logits(model, batch)
    assert not model.lm_head._forward_pre_hooks


@pytest.mark.parametrize(
    "lora",
    [
        {"target_modules": ["q_proj", "lm_head"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    ],
    ids=["lora-on-head", "head-trained-in-full"],
)
def test_adapted_output_embeddings(build, lora):
    model = build.loaded("llama", torch.float64, attention="sdpa", **lora).model
    tokens = make_tokens()
    batch = collate(tokens, range(5), pad_token_id=7, device="cpu")
    shapes = []
    head = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(lambda _m, args: shapes.append(args[0].shape[:2]))
    logits = supervised_logits(model, batch)[0]
    handle.remove()
    torch.testing.assert_close(
        logits, torch.cat([at for at, _ in reference(model, tokens)]), **EXACT
    )
    if "lm_head" in lora["target_modules"]:
        assert shapes == [batch.input_ids.shape]  # per-example gradients need the batch's shape


def test_a_model_that_does_not_call_its_head(build):
    model = build.base("llama", torch.float64, "sdpa")
    tokens = make_tokens()
    batch = collate(tokens, range(5), pad_token_id=7, device="cpu")
    wanted = torch.cat([at for at, _ in reference(model, tokens)])
    model.get_output_embeddings = lambda: torch.nn.Linear(32, 8)
    torch.testing.assert_close(supervised_logits(model, batch)[0], wanted)
    model.get_output_embeddings = lambda: None
    torch.testing.assert_close(supervised_logits(model, batch)[0], wanted)


def test_gradients_equal_those_of_full_logits(build):
    model = build.loaded("llama", torch.float64, attention="sdpa").model
    batch = collate(make_tokens(), range(5), pad_token_id=7, device="cpu")
    parameters = [p for p in model.parameters() if p.requires_grad]
    logits, _, targets = supervised_logits(model, batch)
    loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    found = torch.autograd.grad(loss, parameters)
    positions = (batch.attention_mask.cumsum(1) - 1).clamp_min(0)
    full = model(batch.input_ids, attention_mask=batch.attention_mask, position_ids=positions)
    labels = batch.input_ids.masked_fill(~batch.supervised, -100)
    wanted_loss = torch.nn.functional.cross_entropy(
        full.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="sum"
    )
    for one, other in zip(found, torch.autograd.grad(wanted_loss, parameters), strict=True):
        torch.testing.assert_close(one, other)
    assert all(g.abs().max() > 0 for g in found)


def test_no_supervised_token_at_all(build):
    model = build.base()
    tokens = make_tokens()
    tokens.supervised[:] = False
    logits, rows, targets = supervised_logits(
        model, collate(tokens, [0, 1], pad_token_id=7, device="cpu")
    )
    assert logits.shape == (0, model.config.vocab_size)
    assert len(rows) == len(targets) == 0


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize(("rows", "per_batch"), [(1, 4096), (2, 4096), (8, 40), (8, 4096)])
def test_sequence_logprobs_equal_log_softmax(build, architecture, rows, per_batch):
    model = build.base(architecture, torch.float64, "sdpa")
    tokens = make_tokens()
    seen = []
    found = sequence_logprobs(
        model,
        tokens,
        batch_rows=rows,
        batch_tokens=per_batch,
        pad_token_id=7,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (5, 5)
    for row, (logits, targets) in zip(found, reference(model, tokens), strict=True):
        wanted = torch.log_softmax(logits, -1)[torch.arange(len(targets)), targets]
        assert row.dtype == np.float64
        np.testing.assert_allclose(row, wanted.numpy(), rtol=1e-9)


def test_sequence_logprobs_in_half_precision_takes_softmax_in_float32(build):
    model = build.base("llama", torch.bfloat16)
    (found,) = sequence_logprobs(model, make_tokens((12,)), batch_rows=1, pad_token_id=7)
    ids, mask = make_tokens((12,)).row(0)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids.astype(np.int64))[None]).logits[0]
    (at,) = np.nonzero(mask)
    wide = torch.log_softmax(logits[at - 1].double(), -1)[
        torch.arange(len(at)), torch.from_numpy(ids[at].astype(np.int64))
    ]
    # bfloat16 keeps 8 bits: were the softmax itself in bfloat16, errors would be near 1e-2
    np.testing.assert_allclose(found, wide.numpy(), rtol=1e-5)


def test_a_row_without_targets_gives_an_empty_array(build):
    tokens = make_tokens()
    tokens.row(2)[1][:] = False
    found = sequence_logprobs(build.base(), tokens, batch_rows=3, pad_token_id=7)
    assert found[2].shape == (0,)
    assert [len(row) for row in found] == tokens.supervised_counts.tolist()


def test_nan_is_an_error_for_people(build):
    model = build.base()
    model.lm_head.weight.data[5] = float("nan")
    with pytest.raises(CannotRunError, match="NaN"):
        sequence_logprobs(model, make_tokens(), batch_rows=2, pad_token_id=7)


def test_running_out_of_memory_names_the_setting(build, monkeypatch):
    def exhaust(*args, **kwargs):
        raise torch.OutOfMemoryError

    model = build.base()
    monkeypatch.setattr(model, "forward", exhaust)
    with pytest.raises(CannotRunError, match=r"evaluation\.batch_size"):
        sequence_logprobs(model, make_tokens(), batch_rows=2, pad_token_id=7)
