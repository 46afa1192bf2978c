"""TensorBoard event files, written here by hand after their format's description."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradian_core.errors import InputError
from gradian_plugins.runs._files import Remarks
from gradian_plugins.runs._tfevents import read_events

ARGUMENTS = {
    "learning_rate": 2e-4,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "max_grad_norm": 0.3,
    "eval_strategy": "steps",
    "optim": "paged_adamw_32bit",
}


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def scalar(tag, value):
    return message(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor_scalar(tag, value):
    tensor = b"\x08\x01" + message(4, struct.pack("<f", value))
    return message(1, tag.encode()) + message(8, tensor)


def text(tag, value):
    return message(1, tag.encode()) + message(8, b"\x08\x07" + message(8, value.encode()))


def event(step, *values):
    body = varint(1 << 3 | 1) + struct.pack("<d", 1.7e9)
    body += varint(2 << 3) + varint(step)
    return record(body + message(5, b"".join(message(1, value) for value in values)))


def record(body):
    return struct.pack("<QI", len(body), 0) + body + struct.pack("<I", 0)


HEAD = record(varint(1 << 3 | 1) + struct.pack("<d", 1.7e9) + message(3, b"brain.Event:2"))


def test_scalars_and_texts(tmp_path):
    path = tmp_path / "events.out.tfevents.1.host.2.0"
    path.write_bytes(
        HEAD
        + event(0, text("args/text_summary", "{}"))
        + event(10, scalar("train/loss", 0.5), tensor_scalar("train/grad_norm", 1.5))
        + event(20, scalar("train/loss", float("nan")))
    )
    events = read_events(path, Remarks())
    assert events.texts == {"args/text_summary": "{}"}
    assert events.scalars[:2] == [(10, "train/loss", 0.5), (10, "train/grad_norm", 1.5)]
    assert events.scalars[2][2] != events.scalars[2][2]


def test_a_run_known_by_its_events(put, read):
    name = "runs/Apr18_15-17-58_host/events.out.tfevents.1700000000.host.1.0"
    content = HEAD + event(0, text("args/text_summary", json.dumps(ARGUMENTS)))
    content += event(10, scalar("train/loss", 1.5), scalar("train/learning_rate", 0.25))
    content += event(10, scalar("eval/loss", 1.25))
    run = read(put({name: content}))
    assert run.log.records == (
        {"step": 10, "loss": 1.5, "learning_rate": 0.25},
        {"step": 10, "eval_loss": 1.25},
    )
    training = run.training
    assert training.get("learning_rate") == 2e-4
    assert training.get("max_grad_norm") == 0.3
    assert training.get("optim") == "paged_adamw_32bit"
    assert training.get("has_eval_set") is True
    assert training.values["learning_rate"].source.endswith("(args/text_summary)")


def test_a_run_that_was_resumed(put, read):
    first = HEAD + b"".join(event(s, scalar("train/loss", s)) for s in (10, 20, 30))
    second = HEAD + b"".join(event(s, scalar("train/loss", -s)) for s in (20, 40))
    contents = {
        "runs/b/events.out.tfevents.999.host.1.0": first,
        "runs/a/events.out.tfevents.1000.host.1.0": second,
    }
    log = read(put(contents)).log
    assert [(r["step"], r["loss"]) for r in log.records] == [(10, 10), (20, -20), (40, -40)]


@pytest.mark.parametrize("rest", [b"\x01\x02", struct.pack("<QI", 1 << 60, 0), b"\0" * 15])
def test_half_a_record_at_the_end(tmp_path, rest):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(HEAD + event(1, scalar("train/loss", 1.0)) + rest)
    remarks = Remarks()
    assert read_events(path, remarks).scalars == [(1, "train/loss", 1.0)]
    assert "damaged after" in remarks.notes[0]


@settings(deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_any_bytes(tmp_path_factory, data, framed):
    path = tmp_path_factory.mktemp("any") / "events.out.tfevents.1"
    path.write_bytes(record(data) if framed else data)
    try:
        events = read_events(path, Remarks())
    except InputError:
        return
    assert all(isinstance(tag, str) for _, tag, _ in events.scalars)
