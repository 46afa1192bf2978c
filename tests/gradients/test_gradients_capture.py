"""Every strategy gives the gradient that plain autograd of the written-out loss gives."""

from __future__ import annotations

import importlib.util
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from gradian_core.config.models import GradsSection
from gradian_core.errors import CannotRunError, InputError, UsageError
from gradian_core.gradients.capture import make_capture, verify_capture
from gradian_core.gradients.collate import collate
from gradian_core.gradients.hooks import HooksCapture
from gradian_core.model.sites import attributable_parameters, find_sites

_spec = importlib.util.spec_from_file_location("factory", Path(__file__).with_name("factory.py"))
factory = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(factory)


def oracle(loaded, tokens, rows):
    """Gradients of the mean cross-entropy, from full logits, one unpadded row at a time."""
    tensors = attributable_parameters(find_sites(loaded.model, loaded.adapter))
    losses, gradients = [], []
    for row in rows:
        ids, mask = tokens.row(row)
        ids = torch.as_tensor(ids.astype("int64"))[None]
        logits = loaded.model(input_ids=ids, use_cache=False).logits[0, :-1]
        logits = logits if logits.dtype == torch.float64 else logits.float()
        picked = torch.log_softmax(logits, dim=-1).gather(1, ids[0, 1:, None])[:, 0]
        loss = -picked[torch.as_tensor(mask[1:].copy())].mean()
        grads = torch.autograd.grad(loss, list(tensors.values()), allow_unused=True)
        losses.append(loss.detach())
        gradients.append(
            {
                name: torch.zeros_like(tensors[name]) if g is None else g
                for name, g in zip(tensors, grads, strict=True)
            }
        )
    return torch.stack(losses), gradients


def flatten(gradients, block):
    return torch.stack(
        [torch.cat([g[name].reshape(-1) for name in block.parameters]) for g in gradients]
    )


def assert_exact(loaded, settings, tokens, rows, tolerance, *, padding_side="right"):
    capture = make_capture(loaded, settings)
    batch = collate(tokens, rows, pad_token_id=0, device="cpu", padding_side=padding_side)
    double = loaded.model.get_input_embeddings().weight.dtype == torch.float64
    with factory.TrueFloat64() if double else nullcontext():
        got = capture(batch)
        losses, gradients = oracle(loaded, tokens, rows)
    torch.testing.assert_close(got.losses, losses, rtol=tolerance, atol=0)
    assert [block.name for block in capture.blocks] == list(got.blocks)
    expected = {block.name: flatten(gradients, block) for block in capture.blocks}
    whole = torch.cat(list(expected.values()), dim=1)
    error = torch.cat(list(got.blocks.values()), dim=1) - whole
    assert ((error.norm(dim=1) / whole.norm(dim=1)) <= tolerance).all()
    for block in capture.blocks:
        wanted = expected[block.name]
        assert got.blocks[block.name].shape == (len(rows), block.dim)
        # a block on its own may be small against the rounding of the whole
        assert (got.blocks[block.name] - wanted).norm() <= 5 * tolerance * wanted.norm(), block.name


@pytest.mark.parametrize("strategy", ["hooks", "loop", "vmap"])
@pytest.mark.parametrize("architecture", list(factory.CONFIGS))
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)], ids=["f32", "f64"]
)
def test_strategies_are_exact(architecture, strategy, dtype, tolerance):
    loaded = factory.make_model(architecture, dtype=dtype)
    tokens = factory.make_tokens()
    settings = GradsSection(strategy=strategy)
    if architecture == "gemma2-softcap" and dtype == torch.float32:
        tolerance = 2e-6  # tanh of the capping amplifies the rounding of differently padded logits
    for side in ("left", "right"):
        assert_exact(loaded, settings, tokens, [0, 3, 1], tolerance, padding_side=side)


@pytest.mark.parametrize("rows", [[2], [4, 0], [5, 4, 3, 2, 1, 0]])
def test_batch_composition_does_not_matter(rows):
    loaded = factory.make_model(dtype=torch.float64)
    assert_exact(loaded, GradsSection(), factory.make_tokens(), rows, 1e-12)


@pytest.mark.parametrize("strategy", ["hooks", "loop"])
@pytest.mark.parametrize("architecture", ["llama-gqa", "gpt2-conv1d"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_gradient_checkpointing_changes_no_bit_and_leaves_no_trace(architecture, strategy, dtype):
    loaded = factory.make_model(architecture, dtype=dtype)
    batch = collate(factory.make_tokens(), [0, 4], pad_token_id=0, device="cpu")
    plain = make_capture(loaded, GradsSection(strategy=strategy))(batch)
    settings = GradsSection(strategy=strategy, gradient_checkpointing=True)
    calls = count_calls(loaded.model.get_base_model())
    got = make_capture(loaded, settings)(batch)
    assert calls["mlp"] > calls["passes"], "the layers were not recomputed"
    assert all(torch.equal(got.blocks[name], plain.blocks[name]) for name in plain.blocks)
    modules = list(loaded.model.modules())
    assert not any(getattr(module, "gradient_checkpointing", False) for module in modules)
    assert not any(module.training for module in modules)


def count_calls(base):
    """Count forward passes of the whole model and of one layer's MLP."""
    calls = {"passes": 0, "mlp": 0}
    layers = base.model.layers if hasattr(base, "model") else base.transformer.h

    def count(key):
        def hook(*_):
            calls[key] += 1

        return hook

    base.register_forward_pre_hook(count("passes"))
    layers[0].mlp.register_forward_pre_hook(count("mlp"))
    return calls


def test_reentrant_checkpointing_changes_no_bit():
    loaded = factory.make_model(dtype=torch.float64)
    batch = collate(factory.make_tokens(), [0, 4], pad_token_id=0, device="cpu")
    plain = make_capture(loaded, GradsSection())(batch)
    base = loaded.model.get_base_model()
    base.activation_checkpointing_enable({"use_reentrant": True})
    base.enable_input_require_grads()
    calls = count_calls(base)
    got = make_capture(loaded, GradsSection(gradient_checkpointing=True))(batch)
    assert calls["mlp"] > calls["passes"], "the layers were not recomputed"
    assert all(torch.equal(got.blocks[name], plain.blocks[name]) for name in plain.blocks)


@pytest.mark.parametrize(
    "lora",
    [
        {"r": 1},
        {"use_rslora": True, "r": 8},
        {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"v_proj": 3}},
        {"target_modules": ["q_proj", "lm_head"]},
        {"lora_bias": True, "target_modules": ["q_proj", "down_proj"]},
        {"target_modules": ["down_proj"], "layers_to_transform": [1]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    ],
    ids=["r1", "rslora", "patterns", "lm_head", "bias", "one-layer", "modules-to-save"],
)
def test_every_kind_of_linear_lora_is_exact(lora):
    architecture = "qwen2-biases" if "lora_bias" in lora else "llama-gqa"
    if "lora_bias" in lora:
        lora = {**lora, "target_modules": ["q_proj", "v_proj"]}
    loaded = factory.make_model(architecture, dtype=torch.float64, **lora)
    assert_exact(loaded, GradsSection(), factory.make_tokens(), [0, 3, 1], 1e-12)


def test_only_the_active_adapter_is_captured():
    loaded = factory.make_model(dtype=torch.float64, target_modules=["q_proj"])
    from peft import LoraConfig

    loaded.model.add_adapter("second", LoraConfig(r=2, target_modules=["v_proj"]))
    assert_exact(loaded, GradsSection(), factory.make_tokens(), [0, 1], 1e-12)
    assert all(
        ".default" in name for name in attributable_parameters(find_sites(loaded.model, "default"))
    )


@pytest.mark.parametrize("architecture", ["llama-gqa", "gpt2-conv1d"])
def test_half_precision_base_equals_the_loop_of_the_same_precision(architecture):
    loaded = factory.make_model(architecture, dtype=torch.bfloat16)
    tokens = factory.make_tokens((9, 9))
    batch = collate(tokens, [0, 1], pad_token_id=0, device="cpu")
    got = make_capture(loaded, GradsSection())(batch)
    expected = make_capture(loaded, GradsSection(strategy="loop"))(batch)
    for name, block in expected.blocks.items():
        assert got.blocks[name].dtype == torch.float32
        assert float((got.blocks[name] - block).norm() / block.norm()) < 2e-2
        assert (
            torch.nn.functional.cosine_similarity(
                got.blocks[name].reshape(-1), block.reshape(-1), dim=0
            )
            > 0.999
        )


@pytest.mark.parametrize(
    ("lora", "word"),
    [
        ({"use_dora": True}, "Dora"),
        ({"target_modules": ["embed_tokens", "q_proj"]}, "embedding"),
    ],
    ids=["dora", "embedding"],
)
def test_what_hooks_cannot_see_is_refused_by_name_and_exact_by_loop(lora, word):
    loaded = factory.make_model(dtype=torch.float64, **lora)
    with pytest.raises(CannotRunError, match=word) as error:
        make_capture(loaded, GradsSection())
    assert "model." in error.value.message
    assert "loop" in error.value.hint
    assert_exact(loaded, GradsSection(strategy="loop"), factory.make_tokens(), [0, 3], 1e-10)
    for block in make_capture(loaded, GradsSection(strategy="loop")).blocks:
        assert len(set(block.parameters)) == len(block.parameters), "a tensor counts twice"


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
def test_lora_on_a_tied_head_is_exact():
    loaded = factory.make_model(
        "llama-tied", dtype=torch.float64, target_modules=["q_proj", "lm_head"]
    )
    assert_exact(loaded, GradsSection(), factory.make_tokens(), [0, 3, 1], 1e-12)


def test_fused_experts_are_refused_by_name_and_exact_by_loop():
    loaded = factory.make_model(
        "mixtral-moe",
        target_modules=["q_proj"],
        target_parameters=["mlp.experts.down_proj"],
    )
    with pytest.raises(CannotRunError, match=r"experts.*ParamWrapper"):
        make_capture(loaded, GradsSection())
    assert_exact(loaded, GradsSection(strategy="loop"), factory.make_tokens(), [0, 3], 2e-6)
    only = GradsSection(module_filter="q_proj")
    assert [b.name for b in make_capture(loaded, only).blocks] == [
        "model.layers.0.self_attn.q_proj",
        "model.layers.1.self_attn.q_proj",
    ]


def test_matrix_granularity_splits_a_and_b():
    loaded = factory.make_model(dtype=torch.float64, target_modules=["q_proj"])
    settings = GradsSection(block_granularity="matrix")
    capture = make_capture(loaded, settings)
    assert [block.name.rpartition(".")[2] for block in capture.blocks] == ["lora_A", "lora_B"] * 2
    assert len({block.name for block in capture.blocks}) == 4
    assert_exact(loaded, settings, factory.make_tokens(), [0, 1], 1e-12)


def test_filter_searches_the_full_short_name():
    loaded = factory.make_model()
    capture = make_capture(loaded, GradsSection(module_filter=r"layers\.1\..*down_proj"))
    assert [block.name for block in capture.blocks] == ["model.layers.1.mlp.down_proj"]


@pytest.mark.parametrize(
    ("pattern", "word"), [("nothing_like_it", "matches none"), ("(", "regular")]
)
def test_bad_filters_are_usage_errors(pattern, word):
    with pytest.raises(UsageError, match=word):
        make_capture(factory.make_model(), GradsSection(module_filter=pattern))


def test_merged_adapter_is_refused():
    loaded = factory.make_model()
    loaded.model.merge_adapter()
    with pytest.raises(InputError, match="merged"):
        make_capture(loaded, GradsSection())


def test_nothing_but_lora_gets_a_gradient_and_flags_are_restored():
    loaded = factory.make_model()
    before = {name: p.requires_grad for name, p in loaded.model.named_parameters()}
    batch = collate(factory.make_tokens(), [0, 1], pad_token_id=0, device="cpu")
    for strategy in ("hooks", "loop", "vmap"):
        make_capture(loaded, GradsSection(strategy=strategy))(batch)
    assert {name: p.requires_grad for name, p in loaded.model.named_parameters()} == before
    assert all(parameter.grad is None for parameter in loaded.model.parameters())


def test_the_graph_begins_at_the_lowest_adapted_layer():
    """No gradient flows into layers below the adapter: their outputs need none."""
    loaded = factory.make_model(target_modules=["q_proj"], layers_to_transform=[1])
    seen = {}
    layers = loaded.model.get_base_model().model.layers
    for index, layer in enumerate(layers):
        layer.register_forward_hook(
            lambda _m, _i, out, index=index: seen.__setitem__(
                index, (out[0] if isinstance(out, tuple) else out).requires_grad
            )
        )
    batch = collate(factory.make_tokens(), [0, 1], pad_token_id=0, device="cpu")
    make_capture(loaded, GradsSection())(batch)
    assert seen == {0: False, 1: True}


def test_verification_passes_and_finds_a_strategy_that_mixes_examples_up():
    loaded = factory.make_model()
    tokens = factory.make_tokens()
    settings = GradsSection()
    capture = make_capture(loaded, settings)
    verify_capture(capture, loaded, settings, tokens)

    class Swapped:
        blocks = capture.blocks

        def __call__(self, batch):
            got = capture(batch)
            name = capture.blocks[3].name
            return type(got)(got.losses, {**got.blocks, name: got.blocks[name].flip(0)})

    with pytest.raises(CannotRunError, match=capture.blocks[3].name):
        verify_capture(Swapped(), loaded, settings, tokens)


def test_verification_finds_a_missing_block():
    loaded = factory.make_model()
    settings = GradsSection()
    capture = make_capture(loaded, settings)

    class Forgetful:
        blocks = capture.blocks[1:]

        def __call__(self, batch):
            got = capture(batch)
            return type(got)(got.losses, {b.name: got.blocks[b.name] for b in self.blocks})

    with pytest.raises(CannotRunError, match="not the adapter's blocks"):
        verify_capture(Forgetful(), loaded, settings, factory.make_tokens())


def test_hooks_refuse_calls_in_which_examples_cannot_be_told_apart():
    loaded = factory.make_model(target_modules=["down_proj"])
    mlp = loaded.model.get_base_model().model.layers[0].mlp
    original = mlp.down_proj.forward
    mlp.down_proj.forward = lambda x, *a, **k: (
        original(x[:, 1:]).new_zeros(x.shape[0], x.shape[1], 32)
        + torch.nn.functional.pad(original(x.reshape(-1, x.shape[-1])[1:]), (0, 0, 1, 0)).view(
            x.shape[0], x.shape[1], 32
        )
    )
    batch = collate(factory.make_tokens(), [0, 1], pad_token_id=0, device="cpu")
    with pytest.raises(CannotRunError, match="cannot be told apart"):
        make_capture(loaded, GradsSection())(batch)


def test_vmap_refuses_checkpointing():
    with pytest.raises(CannotRunError, match="checkpointing"):
        make_capture(
            factory.make_model(), GradsSection(strategy="vmap", gradient_checkpointing=True)
        )


def test_hooks_is_the_default():
    assert isinstance(make_capture(factory.make_model(), GradsSection()), HooksCapture)
