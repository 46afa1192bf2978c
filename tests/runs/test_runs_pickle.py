"""Saved training arguments are read without running anything that stands in them."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradian_core.errors import InputError
from gradian_plugins.runs._pickle import read_training_args

MAGIC = 0x1950A86A20F9469CFC6C


class Arguments:
    """Stands for a class of arguments; pickled by name like any other."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Calls:
    """Unpickling it would call a function."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def archive(content, name="training_args/data.pkl", method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        file.writestr(name, content)
    return buffer.getvalue()


def legacy(content):
    head = [MAGIC, 1001, {"protocol_version": 1001, "little_endian": True}]
    return b"".join(pickle.dumps(part, 2) for part in head) + content


def save(tmp_path, data):
    path = tmp_path / "training_args.bin"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [archive, legacy, lambda content: content])
def test_every_protocol_and_format(tmp_path, protocol, wrap):
    fields = {
        "learning_rate": 2e-4,
        "seed": 42,
        "fp16": True,
        "bf16": False,
        "report_to": ["tensorboard"],
        "optim": Calls(Path, "paged_adamw_32bit"),
        "accelerator_config": Arguments(even_batches=True),
        "data_seed": None,
        "name": "ünï",
        "large": 1 << 40,
    }
    content = pickle.dumps(Arguments(**fields), protocol)
    name, found = read_training_args(save(tmp_path, wrap(content)))
    assert name.endswith(".Arguments")
    assert found == fields | {
        "optim": "paged_adamw_32bit",
        "accelerator_config": {"even_batches": True},
    }


def test_secrets_and_host_names_are_left_out(tmp_path):
    fields = {
        "hub_token": "hf_abc",
        "push_to_hub_token": "hf_def",
        "comet_api_key": "x",
        "logging_dir": "runs/Apr18_15-17-58_hostname1",
        "run_name": "hostname1",
        "deepspeed": {"password": "p", "stage": 2},
        "pad_token": "<|pad|>",
        "average_tokens_across_devices": True,
    }
    _, found = read_training_args(save(tmp_path, pickle.dumps(Arguments(**fields))))
    assert found == {
        "deepspeed": {"stage": 2},
        "pad_token": "<|pad|>",
        "average_tokens_across_devices": True,
    }


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [archive, legacy, lambda content: content])
@pytest.mark.parametrize(
    "payload",
    [
        lambda target: Calls(os.system, f"touch {target}"),
        lambda target: Calls(eval, f"open({target!r}, 'w')"),
        lambda target: Calls(exec, f"open({target!r}, 'w')"),
        lambda target: Calls(open, target, "w"),
    ],
)
def test_payloads_do_nothing(tmp_path, payload, protocol, wrap):
    target = tmp_path / "owned"
    content = pickle.dumps(payload(str(target)), protocol)
    with pytest.raises(InputError, match="Nothing of it was run"):
        read_training_args(save(tmp_path, wrap(content)))
    inside = pickle.dumps(Arguments(learning_rate=1e-4, x=payload(str(target))), protocol)
    _, found = read_training_args(save(tmp_path, wrap(inside)))
    assert found["learning_rate"] == 1e-4
    assert not target.exists()


def deep_tuple(depth):
    # (((...))) of itself, twice a level: its hash takes 2 ** depth steps
    return b"\x80\x02)" + b"2\x86" * depth


BOMBS = {
    "memo index": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "bytearray of an exabyte": b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".",
    "bytes of an exabyte": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b".",
    "text of 4 GB": b"\x80\x02X" + struct.pack("<I", 0xFFFFFFFF) + b".",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.",
    "many opcodes": b"\x80\x02" + b"N0" * 400_000 + b".",
    "many lists": b"\x80\x02" + b"]" * 900_000 + b".",
    "nested lists": b"\x80\x02" + b"](" * 200_000 + b".",
    "hash of nested tuples": b"\x80\x02}" + deep_tuple(200)[2:] + b"Ns.",
    "long integer": b"\x80\x02\x8b" + struct.pack("<i", 1_000_000) + b"\xff" * 1_000_000 + b".",
    "decimal integer": b"I" + b"9" * 1_000_000 + b"\n.",
    "extension": b"\x80\x02\x82\x01.",
    "no stop": b"\x80\x02N",
    "empty stack": b"\x80\x02.",
    "no mark": b"\x80\x02u.",
    "unknown opcode": b"\x80\x02\xff.",
    "nothing": b"",
    "attributes": b"\x80\x02cx\ny\n)\x81}("
    + b"".join(b"X\x03\x00\x00\x00%03dN" % i for i in range(999))
    + b"uq\x01"
    + b"bh\x01" * 5000
    + b"b.",
}


@pytest.mark.parametrize("wrap", [archive, lambda content: content])
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_bounded_and_named(tmp_path, name, wrap):
    path = save(tmp_path, wrap(BOMBS[name]))
    tracemalloc.start()
    begun = time.process_time()
    with pytest.raises(InputError, match=r"training_args\.bin"):
        read_training_args(path)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 64 << 20
    assert time.process_time() - begun < 10


def test_a_list_that_holds_itself(tmp_path):
    fields = {"learning_rate": 1e-4}
    fields["circle"] = [fields]
    _, found = read_training_args(save(tmp_path, pickle.dumps(Arguments(**fields))))
    assert found["learning_rate"] == 1e-4


def test_archives(tmp_path):
    bomb = archive(b"\0" * (64 << 20), method=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 20
    for data, word in [
        (bomb, "larger than 1 MiB"),
        (b"x" * ((1 << 20) + 1), "larger than 1 MiB"),
        (archive(b"x", "other.pkl"), "no data.pkl"),
        (b"PK\x03\x04 torn", "no saved training arguments"),
        (archive(pickle.dumps([1])), "no training arguments"),
    ]:
        with pytest.raises(InputError, match=word):
            read_training_args(save(tmp_path, data))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "training_args.bin"
    path.write_bytes(b"\x80\x02" + data)
    with pytest.raises(InputError, match=r"training_args\.bin"):
        read_training_args(path)


def test_torn_and_flipped_files(tmp_path):
    whole = pickle.dumps(Arguments(learning_rate=1e-4, betas=(0.9, 0.999), seed=1), 2)
    for end in range(len(whole)):
        with pytest.raises(InputError, match="training_args"):
            read_training_args(save(tmp_path, whole[:end]))
    generator = random.Random(0)
    for _ in range(300):
        torn = bytearray(whole)
        torn[generator.randrange(len(torn))] = generator.randrange(256)
        # read or refused; anything else is an error of this test
        with contextlib.suppress(InputError):
            read_training_args(save(tmp_path, bytes(torn)))


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_saves(tmp_path, zipped):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), learning_rate=3e-4, warmup_steps=0.1, hub_token="hf_secret"
    )
    path = tmp_path / "training_args.bin"
    torch.save(arguments, path, _use_new_zipfile_serialization=zipped)
    name, found = read_training_args(path)
    assert name == "transformers.training_args.TrainingArguments"
    assert found["learning_rate"] == 3e-4
    assert found["warmup_steps"] == 0.1
    assert found["optim"] == arguments.optim.value
    assert "hf_secret" not in str(found)
