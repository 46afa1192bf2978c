"""What the user sees when something goes wrong: one line, one help line, an exit code."""

import errno
import os
import subprocess
import sys

import pytest

from gradian_core.cli import needs
from gradian_core.errors import CannotRunError, InputError, PluginError, UsageError

READY = ("attribute", "-a", "a", "-m", "m", "-d", "d.jsonl", "-q")


class OutOfMemoryError(RuntimeError):
    """Named like torch's."""


def raising(error):
    def fail(*args, **kwargs):
        raise error

    return fail


def caused(error, cause):
    error.__cause__ = cause
    return error


ERRORS = {
    "usage": (UsageError("wrong", hint="Do this."), 2, "error: wrong\nhelp: Do this.\n"),
    "several": (InputError("one\ntwo"), 2, "error: one\nerror: two\n"),
    "escapes": (InputError("a\x1b[31mb"), 2, "error: ab\n"),
    "cannot": (CannotRunError("no GPU"), 3, "error: no GPU\n"),
    "plugin": (PluginError("bad", owner="x, y 1"), 3, "error: bad (plugin x, y 1)\n"),
    "memory": (MemoryError(), 3, "error: The memory is not enough.\nhelp: Lower grads.batch_"),
    "gpu memory": (OutOfMemoryError("CUDA"), 3, "error: The memory is not enough."),
    "cpu allocator": (
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        3,
        "error: The memory is not enough.",
    ),
    "memory in a plugin": (
        caused(PluginError("engine failed", owner="x"), OutOfMemoryError("CUDA")),
        3,
        "error: The memory is not enough.",
    ),
    "disk": (
        OSError(errno.ENOSPC, "No space left on device", "x.h5"),
        3,
        "error: The disk is full: x.h5 cannot be written.\nhelp: Free some space",
    ),
    "disk, says HDF5": (
        OSError("Can't write data (errno = 28, error message = 'No space left on device')"),
        3,
        "error: The disk is full.",
    ),
    "disk, in a plugin": (
        caused(PluginError("sink failed", owner="x"), OSError(errno.ENOSPC, "full", "out/r.md")),
        3,
        "error: The disk is full: out/r.md cannot be written.",
    ),
    "file size limit": (
        OSError(errno.EFBIG, "File too large", "out/r.md"),
        3,
        "error: A file grew larger than this system allows: out/r.md cannot be written.",
    ),
    "read-only": (
        OSError(errno.EROFS, "Read-only file system", "out/r.md"),
        3,
        "error: out/r.md cannot be written: the file system is read-only.",
    ),
    "permission": (
        PermissionError(errno.EACCES, "Permission denied", "/locked/x"),
        3,
        "error: No permission for /locked/x.",
    ),
    "broken library": (
        ImportError("libcudart.so.12", name="torch"),
        3,
        "error: A library cannot be imported: ImportError: libcudart.so.12.",
    ),
    "our own import": (
        ImportError("cannot import name", name="gradian_core.x"),
        4,
        "error: internal error in gradian",
    ),
    "bug": (
        KeyError("oops"),
        4,
        "error: internal error in gradian 0.1.0: KeyError: 'oops'\nhelp: Please report it",
    ),
    "exit": (SystemExit(7), 4, "error: internal error in gradian 0.1.0: SystemExit: 7"),
    "interrupted": (KeyboardInterrupt(), 130, "Interrupted. The same command"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_lines_and_codes(gradian, flow, name):
    error, code, text = ERRORS[name]
    flow("attribute", "attribute", raising(error))
    result = gradian(*READY)
    assert result.code == code
    assert result.err.startswith(text)
    assert result.out == ""
    assert "Traceback" not in result.err


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_debug_adds_the_traceback(gradian, flow, monkeypatch, by):
    flow("attribute", "attribute", raising(KeyError("oops")))
    if by == "variable":
        monkeypatch.setenv("GRADIAN_DEBUG", "1")
    result = gradian(*READY, *(["--debug"] if by == "flag" else []))
    assert result.code == 4
    assert "Traceback" in result.err
    assert "error: internal error" in result.err


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("atribute",), "gradian has no command atribute.\nhelp: Did you mean attribute?"),
        (("zzz",), "gradian has no command zzz.\nhelp: There are: attribute, checks, config, co"),
        (("plugins", "lst"), "gradian plugins has no command lst.\nhelp: Did you mean list?"),
        (("--verzion",), "gradian has no option --verzion.\nhelp: Did you mean --version?"),
        (("atribute", "--help"), "gradian has no command atribute."),
        (
            ("attribute", "--capabilty", "x"),
            "Unknown option: --capabilty. Did you mean --capability?",
        ),
        (("show-index",), "PATH"),
        (("demo", "--seed", "x"), "--seed"),
        (("a\x1b[31m",), "gradian has no command a."),
    ],
)
def test_wrong_usage(gradian, argv, text):
    result = gradian(*argv)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert text in result.err
    assert "help: " in result.err
    assert result.err.isascii()


@pytest.mark.parametrize("command", ["attribute", "index"])
def test_missing_inputs_are_named_all_at_once(gradian, command):
    result = gradian(command, "-m", "m")
    assert result.code == 2
    assert result.err.startswith(f"error: gradian {command} needs --adapter")
    assert "--dataset" in result.err
    assert "--base-model" not in result.err


@pytest.mark.parametrize("command", ["attribute", "index", "demo"])
def test_missing_torch_names_the_extra(gradian, monkeypatch, command):
    monkeypatch.setattr(needs, "importable", lambda name: name != "torch")
    argv = [command] if command == "demo" else [command, *READY[1:]]
    result = gradian(*argv)
    assert result.code == 3
    assert result.err == (
        f"error: gradian {command} needs torch, which is not installed.\n"
        "help: Install it with: pip install 'gradian-ml[attribution]'.\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE semantics")
@pytest.mark.parametrize("argv", [["init-config", "-h"], ["version"], ["plugins", "list"]])
def test_a_closed_pipe_is_quiet(argv):
    program = f"from gradian_core.cli.app import main; raise SystemExit(main({argv}))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_other_encodings_do_not_crash(encoding):
    program = (
        "import sys; from gradian_core.cli import streams; streams.prepare(); "
        "streams.put('é … 日本'); streams.say('é … 日本')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    assert b"\\u65e5\\u672c" in done.stdout
    assert b"\\u65e5\\u672c" in done.stderr


def test_no_escape_codes_in_a_pipe(gradian):
    for argv in (("--help",), ("attribute", "--help"), ("plugins", "list")):
        result = gradian(*argv)
        assert result.code == 0
        assert "\x1b" not in result.out
        assert result.out.isascii()


@pytest.mark.parametrize("seed", ["-1", str(2**32), "9" * 20, "9" * 5000])
def test_the_demo_refuses_a_seed_before_it_writes(gradian, monkeypatch, tmp_path, seed):
    monkeypatch.setattr(needs, "importable", lambda name: True)
    result = gradian("demo", "--seed", seed)
    assert result.code == 2
    assert "seed" in result.err
    assert list(tmp_path.iterdir()) == []
