"""What is hashed, and what is not."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from pydantic import ValidationError

from gradian_core.errors import InputError
from gradian_core.index import address, digests
from gradian_core.index.address import index_id, library_versions, result_id, tokens_digest
from gradian_core.index.digests import DigestCache, file_digest, folder_digest
from gradian_core.index.manifest import IndexInputs


def test_every_input_changes_the_id(fakes):
    inputs = fakes.make_inputs(fakes.make_tokens(3))
    known = {index_id(inputs)}
    changes = dict.fromkeys(IndexInputs.model_fields, "other")
    changes |= {"seed": 5, "adapter_scale": 0.5, "libraries": {"torch": "0"}}
    changes["spec"] = inputs.spec.model_copy(update={"storage_dtype": "float16"})
    for name, value in changes.items():
        known.add(index_id(inputs.model_copy(update={name: value})))
    for name, value in {
        "strategy": "loop",
        "max_seq_length": 5,
        "module_filter": "down",
        "block_granularity": "matrix",
        "projection_dim": 5,
        "projection_kind": "rademacher",
        "projection_seed": 5,
    }.items():
        spec = inputs.spec.model_copy(update={name: value})
        known.add(index_id(inputs.model_copy(update={"spec": spec})))
    assert len(known) == 1 + len(changes) + 7
    assert all(len(one) == 20 and int(one, 16) >= 0 for one in known)


def test_equal_inputs_equal_id(fakes):
    inputs = fakes.make_inputs(fakes.make_tokens(3))
    again = IndexInputs.model_validate_json(inputs.model_dump_json())
    assert index_id(again) == index_id(inputs)


def test_the_format_is_a_part_of_the_id(fakes, monkeypatch):
    inputs = fakes.make_inputs(fakes.make_tokens(3))
    before = index_id(inputs)
    monkeypatch.setattr(address, "FORMAT_VERSION", "9.0")
    assert index_id(inputs) != before


def test_settings_of_use_are_no_input():
    for name in ("loss_reduction", "normalization", "damping", "lambda_scale", "chunk_size"):
        assert name not in IndexInputs.model_fields
        assert name not in IndexInputs.model_fields["spec"].annotation.model_fields


def test_unknown_inputs_are_refused(fakes):
    raw = fakes.make_inputs(fakes.make_tokens(3)).model_dump()
    with pytest.raises(ValidationError):
        IndexInputs.model_validate({**raw, "damping": 0.1})


def test_result_id_depends_on_both_and_not_on_key_order():
    one = result_id("aa", {"normalization": "l2", "damping": 0.1})
    assert one == result_id("aa", {"damping": 0.1, "normalization": "l2"})
    assert len({one, result_id("ab", {"normalization": "l2", "damping": 0.1})}) == 2
    assert one != result_id("aa", {"normalization": "l2", "damping": 0.2})
    with pytest.raises(ValueError, match="JSON"):
        result_id("aa", {"damping": float("nan")})


def test_library_versions_name_what_computes():
    assert set(library_versions()) == {"torch", "transformers", "peft", "numpy", "h5py"}
    assert library_versions()["numpy"] == np.__version__


def test_tokens_digest_sees_order_tokens_mask_and_cuts(fakes):
    from dataclasses import replace

    tokens = fakes.make_tokens(4)
    other_tokens = tokens.input_ids.copy()
    other_tokens[0] += 1
    other_cut = tokens.offsets.copy()
    other_cut[1] -= 1
    found = {
        tokens_digest(tokens),
        tokens_digest(tokens, [1, 0, 2, 3]),
        tokens_digest(tokens, [0, 1, 2]),
        tokens_digest(replace(tokens, input_ids=other_tokens)),
        tokens_digest(replace(tokens, supervised=~tokens.supervised)),
        tokens_digest(replace(tokens, offsets=other_cut)),
        tokens_digest(replace(tokens, ids=("x", *tokens.ids[1:]))),
    }
    assert len(found) == 7
    wider = replace(tokens, input_ids=tokens.input_ids.astype(np.int64))
    assert tokens_digest(wider) == tokens_digest(tokens, range(4))


# --- files ---------------------------------------------------------------------------------------


def old(path):
    """Make a file old enough to be remembered."""
    os.utime(path, ns=(10**18, 10**18))
    return path


def test_file_digest_is_sha256(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert file_digest(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_remembered_file_is_not_read_again(tmp_path, monkeypatch):
    path = tmp_path / "big.safetensors"
    path.write_bytes(b"abc")
    old(path)
    digest = file_digest(path, DigestCache(tmp_path / "cache"))
    monkeypatch.setattr(digests.hashlib, "file_digest", None)
    assert file_digest(path, DigestCache(tmp_path / "cache")) == digest


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "f"
    cache = DigestCache(tmp_path / "cache")
    path.write_bytes(b"abc")
    old(path)
    first = file_digest(path, cache)
    path.write_bytes(b"abd")
    assert file_digest(path, cache) != first
    assert file_digest(path, cache) == file_digest(path)


def test_a_file_just_written_is_not_remembered(tmp_path):
    # Written again within the clock's grain, it would look the same.
    path = tmp_path / "f"
    cache = DigestCache(tmp_path / "cache")
    path.write_bytes(b"abc")
    file_digest(path, cache)
    state = path.stat()
    path.write_bytes(b"abd")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file_digest(path, cache) == file_digest(path)


@pytest.mark.parametrize(
    "content", ["", "[", "[]", '{"x": 3, "y": [1, 2]}', '{"files": 3}', "[" * 100_000]
)
def test_a_damaged_cache_costs_time_only(tmp_path, content):
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "digests.json").write_text(content)
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    old(path)
    assert file_digest(path, DigestCache(folder)) == file_digest(path)
    assert json.loads((folder / "digests.json").read_text())["files"][str(path)][0] == 3


def test_two_caches_keep_each_others_entries(tmp_path):
    one, two = DigestCache(tmp_path), DigestCache(tmp_path)
    for cache, name in ((one, "a"), (two, "b")):
        (tmp_path / name).write_bytes(b"x")
        file_digest(old(tmp_path / name), cache)
    assert len(json.loads((tmp_path / "digests.json").read_text())["files"]) == 2


def test_a_flipped_digit_of_a_remembered_digest_is_found(tmp_path):
    path, store = tmp_path / "f", tmp_path / "cache" / "digests.json"
    path.write_bytes(b"abc")
    digest = file_digest(old(path), DigestCache(store.parent))
    flipped = ("0" if digest[0] != "0" else "1") + digest[1:]
    store.write_text(store.read_text().replace(digest, flipped))
    assert file_digest(path, DigestCache(store.parent)) == digest


def test_folder_digest_is_of_names_and_contents_only(tmp_path):
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"w")
        (folder / "README.md").write_text(name)
    digest = folder_digest(tmp_path / "one", digests.MODEL_FILES)
    assert digest == folder_digest(tmp_path / "two", digests.MODEL_FILES)
    (tmp_path / "two" / "model.safetensors").write_bytes(b"v")
    assert digest != folder_digest(tmp_path / "two", digests.MODEL_FILES)
    (tmp_path / "one" / "model.safetensors").rename(tmp_path / "one" / "model2.safetensors")
    assert digest != folder_digest(tmp_path / "one", digests.MODEL_FILES)


def test_a_single_file_model(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    assert folder_digest(path, digests.MODEL_FILES) == file_digest(path)


def test_links_of_a_snapshot_are_followed(tmp_path):
    (tmp_path / "blob").write_bytes(b"w")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    (snapshot / "model.safetensors").symlink_to("../blob")
    assert file_digest(snapshot / "model.safetensors") == file_digest(tmp_path / "blob")


def test_missing_files_are_told(tmp_path):
    with pytest.raises(InputError, match="not a file"):
        file_digest(tmp_path / "nothing")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        folder_digest(tmp_path / "nothing")
    with pytest.raises(InputError, match="no file that matches"):
        folder_digest(tmp_path, digests.ADAPTER_FILES)


def test_the_adapter_itself_has_the_id_it_always_had(fakes):
    inputs = fakes.make_inputs(fakes.make_tokens(3))
    content = inputs.model_dump(mode="json")
    del content["adapter_scale"]
    wanted = address._hash({"format": ["gradian-gradient-index", "1.0"], "inputs": content})
    assert index_id(inputs) == wanted
