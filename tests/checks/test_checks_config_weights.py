"""Checks that read the adapter's weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gradian_checks.config.adapter_weights_dead import adapter_weights_dead
from gradian_checks.config.capacity_vs_data import capacity_vs_data
from gradian_checks.config.target_modules_unmatched import target_modules_unmatched
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, tokens
from gradian_core.findings import Severity


def one(check, **facts):
    found = list(check(**facts))
    assert len(found) <= 1
    return found[0] if found else None


# --- weights


def write(folder: Path, **tensors: np.ndarray) -> None:
    named = {
        f"base_model.model.model.layers.0.{k.replace('__', '.')}": v for k, v in tensors.items()
    }
    save_file(named, folder / "adapter_model.safetensors")


A = np.ones((2, 8), np.float32)
B = np.full((8, 2), 0.01, np.float32)


def test_weights_alive(tmp_path: Path) -> None:
    write(tmp_path, self_attn__q_proj__lora_A__weight=A, self_attn__q_proj__lora_B__weight=B)
    assert one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_weights_zero(tmp_path: Path, dtype) -> None:
    write(
        tmp_path,
        self_attn__q_proj__lora_A__weight=A.astype(dtype),
        self_attn__q_proj__lora_B__weight=np.zeros_like(B, dtype),
    )
    found = one(adapter_weights_dead, adapter=adapter(path=tmp_path))
    assert found is not None
    assert found.severity is Severity.CRITICAL


def test_one_live_matrix_is_enough(tmp_path: Path) -> None:
    write(
        tmp_path,
        self_attn__q_proj__lora_A__weight=A,
        self_attn__q_proj__lora_B__weight=np.zeros_like(B),
        self_attn__v_proj__lora_B__weight=B,
    )
    assert one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_not_finite(tmp_path: Path, value: float) -> None:
    broken = A.copy()
    broken[1, 3] = value
    write(tmp_path, self_attn__q_proj__lora_A__weight=broken, self_attn__q_proj__lora_B__weight=B)
    found = one(adapter_weights_dead, adapter=adapter(path=tmp_path))
    assert found is not None
    assert found.evidence["not_finite"] == 1


def bf16(folder: Path, values: np.ndarray) -> None:
    upper = (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
    entry = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [0, upper.nbytes]}
    header = json.dumps({"x.lora_B.weight": entry, "__metadata__": {"format": "pt"}}).encode()
    body = struct.pack("<Q", len(header)) + header + upper.tobytes()
    (folder / "adapter_model.safetensors").write_bytes(body)


@pytest.mark.parametrize(("value", "dead"), [(0.0, True), (0.5, False), (np.nan, True)])
def test_bfloat16(tmp_path: Path, value: float, dead: bool) -> None:
    bf16(tmp_path, np.full((4, 2), value))
    assert (one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is not None) is dead


def test_file_without_lora_and_tiny_pickle(tmp_path: Path) -> None:
    save_file({"lm_head.weight": A}, tmp_path / "adapter_model.safetensors")
    assert one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is not None
    (tmp_path / "adapter_model.bin").write_bytes(b"PK" + b"\0" * 441)
    found = one(adapter_weights_dead, adapter=adapter(path=tmp_path))
    assert found is not None
    assert found.evidence["bytes"] == 443


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 8,
        struct.pack("<Q", 4) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"nope",
        struct.pack("<Q", 10) + b'{"x": {}}\n',
        struct.pack("<Q", 60)
        + b'{"x.lora_B":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}'.ljust(60),
        LFS,
    ],
)
def test_damaged_weights_are_not_judged(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(body)
    with pytest.raises(NotAssessed):
        one(adapter_weights_dead, adapter=adapter(path=tmp_path))


def test_lfs_pointers_are_named(tmp_path: Path) -> None:
    for name in ("adapter_model.safetensors", "adapter_model.bin"):
        (tmp_path / name).write_bytes(LFS)
        with pytest.raises(NotAssessed, match="git lfs pull"):
            one(adapter_weights_dead, adapter=adapter(path=tmp_path))
        (tmp_path / name).unlink()


def test_unknown_number_formats_are_not_judged(tmp_path: Path) -> None:
    save_file({"x.lora_B.weight": np.zeros(4, np.int8)}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(NotAssessed, match="I8"):
        one(adapter_weights_dead, adapter=adapter(path=tmp_path))


def test_no_weights_are_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NotAssessed):
        one(adapter_weights_dead, adapter=adapter(path=tmp_path))


# --- capacity_vs_data


@pytest.mark.parametrize(
    ("ratio", "severity"),
    [
        (0.01, None),
        (1.9, None),
        (2.2, Severity.MEDIUM),
        (9.5, Severity.MEDIUM),
        (12, Severity.HIGH),
    ],
)
def test_capacity(tmp_path: Path, ratio: float, severity: Severity | None) -> None:
    facts = tokens(n=200)
    supervised = int(facts.tokens.supervised_counts.sum())
    size = max(round(supervised / ratio / 2), 1)
    write(
        tmp_path,
        q__lora_A__weight=np.ones((1, size), np.float32),
        q__lora_B__weight=np.ones((size, 1), np.float32),
    )
    found = one(capacity_vs_data, adapter=adapter(path=tmp_path), tokens=facts)
    assert (found and found.severity) == severity
    if found is not None:
        assert found.evidence["trainable_parameters"] == 2 * size
        assert found.evidence["supervised_tokens"] == supervised


def test_spare_capacity_is_info_at_most(tmp_path: Path) -> None:
    write(
        tmp_path,
        q__lora_A__weight=np.ones((64, 5000), np.float32),
        q__lora_B__weight=np.ones((5000, 64), np.float32),
    )
    found = one(capacity_vs_data, adapter=adapter(path=tmp_path), tokens=tokens(n=1))
    assert found is not None
    assert found.severity is Severity.INFO


def test_unknown_capacity_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NotAssessed):
        one(capacity_vs_data, adapter=adapter(path=tmp_path), tokens=tokens(n=5))


# --- target_modules_unmatched


def test_unmatched_by_weights(tmp_path: Path) -> None:
    write(tmp_path, self_attn__q_proj__lora_A__weight=A, self_attn__q_proj__lora_B__weight=B)
    given = adapter(path=tmp_path, target_modules=["q_proj", "self_attn.q_proj", "query"])
    found = one(target_modules_unmatched, adapter=given)
    assert found is not None
    assert found.evidence["unmatched"] == ["query"]
    assert found.evidence["known_by"] == "the adapter's weights"
