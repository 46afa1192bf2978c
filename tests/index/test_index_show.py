"""``gradian show-index --verify`` on a real index."""

from __future__ import annotations

import h5py

from gradian_core.cli.app import main


def test_sound_and_damaged(fakes, tmp_path, capsys):
    folder = fakes.make_index(tmp_path, fakes.make_tokens(9)).folder
    assert main(["show-index", str(folder), "--verify"]) == 0
    assert "Verified: " in capsys.readouterr().err
    path = folder / "shards" / "00000.h5"
    with h5py.File(path) as file:
        place = file["blocks/upper"].id.get_chunk_info(0).byte_offset
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)
    assert main(["show-index", str(folder)]) == 0
    assert main(["show-index", str(folder), "--verify"]) == 2
    assert "00000.h5 is damaged: a checksum does not match" in capsys.readouterr().err
