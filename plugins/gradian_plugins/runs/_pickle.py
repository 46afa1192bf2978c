"""Reading ``training_args.bin`` without running anything that stands in it.

The file is a pickle: a program for a small stack machine that may name any function and call it.
Here that program is interpreted by ourselves, opcode by opcode, and a call makes an
:class:`Inert` that only remembers what would have been called. No name is ever looked up, so no
code can run, whatever the file says; what it can waste is bounded by the limits below.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.text import excerpt

__all__ = ["Inert", "plain", "read_training_args"]

_MOST_BYTES = 1 << 20
_MOST_OPCODES = 50_000
_MOST_DEPTH = 16
_MOST_VALUES = 20_000
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""First pickle of the stream that torch wrote before its zip format."""
_SECRETS = ("token", "password", "secret", "api_key", "apikey", "credential")
_NO_SECRETS = frozenset(
    {
        "bos_token",
        "eos_token",
        "include_num_input_tokens_seen",
        "include_tokens_per_second",
        "pad_token",
        "average_tokens_across_devices",
        "unk_token",
    }
)
_PRIVATE = frozenset({"logging_dir", "run_name"})
"""These hold the name of the machine."""


@dataclass(slots=True)
class Inert:
    """What stands where the pickle would have made an object.

    Parameters
    ----------
    name
        Module and name of the class or function.
    args
        What it would have been called with.
    state
        What its attributes would have been set from.
    """

    name: str
    args: tuple[Any, ...] = ()
    state: dict[Any, Any] = field(default_factory=dict)


class _Mark:
    pass


def read_training_args(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the class of the saved arguments and their values, secrets left out.

    Raises
    ------
    InputError
        If the file is larger than 1 MiB, is neither of torch's formats, or is built to waste
        time or memory.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path} is larger than 1 MiB, which no training arguments are.")
    try:
        value = _load(_pickle_of(data))
    except _RefusedError as error:
        raise InputError(f"{path} was not read: {error}.") from error
    except (zipfile.BadZipFile, ValueError, IndexError, KeyError, EOFError, TypeError) as error:
        problem = excerpt(str(error) or type(error).__name__, 100)
        raise InputError(f"{path} is no saved training arguments: {problem}.") from error
    if not isinstance(value, Inert):
        raise InputError(f"{path} holds no training arguments.")
    fields = plain(value.state)
    if not isinstance(fields, dict) or not fields:
        raise InputError(
            f"{path} holds no training arguments: unpickling it would call "
            f"{excerpt(value.name, 80)}. Nothing of it was run."
        )
    return value.name, fields


def plain(value: Any) -> Any:
    """Return a loaded value as plain lists, dicts, text and numbers.

    A member of an enumeration becomes its value. Whatever could be a secret or names the
    machine is left out.
    """
    return _plain(value, 0, [_MOST_VALUES])


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > _MOST_DEPTH or budget[0] < 0:
        return None
    match value:
        case None | bool() | float() | str():
            return value
        case int():
            return value if abs(value) < 1 << 64 else None
        case dict():
            return {
                key: _plain(item, depth + 1, budget)
                for key, item in value.items()
                if isinstance(key, str) and not _is_private(key)
            }
        case list() | tuple() | set() | frozenset():
            return [_plain(item, depth + 1, budget) for item in value]
        case Inert(args=(str() | int() as only,)) if not value.state:
            return only
        case Inert() if value.state:
            return _plain(value.state, depth + 1, budget)
        case _:
            return None


def _is_private(key: str) -> bool:
    name = key.lower()
    return name in _PRIVATE or (
        name not in _NO_SECRETS and any(secret in name for secret in _SECRETS)
    )


def _pickle_of(data: bytes) -> io.BytesIO:
    """Return the pickle in torch's zip file, or behind the head of its older stream."""
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if name.split("/")[-1] == "data.pkl"]
            if not names:
                raise _RefusedError("the archive holds no data.pkl")
            try:
                with archive.open(names[0]) as member:
                    # never more than the limit is unpacked, whatever the archive's index claims
                    content = member.read(_MOST_BYTES + 1)
            except (RuntimeError, NotImplementedError, OSError) as error:
                raise _RefusedError("the archive is encrypted or damaged") from error
        if len(content) > _MOST_BYTES:
            raise _RefusedError("its data.pkl is larger than 1 MiB")
        return io.BytesIO(content)
    stream = io.BytesIO(data)
    if data[:2] == b"\x80\x02" and _load(stream) == _LEGACY_MAGIC:
        _load(stream)
        _load(stream)
        return stream
    return io.BytesIO(data)


class _RefusedError(Exception):
    """The pickle does something that no saved arguments do."""


def _load(stream: io.BytesIO) -> Any:
    machine = _Machine()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if count > _MOST_OPCODES:
            raise _RefusedError(f"it has more than {_MOST_OPCODES:,} opcodes")
        if opcode.name == "STOP":
            return machine.stack[-1]
        machine.step(opcode.name, argument)
    raise ValueError("it ends early")


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NOTHING = frozenset({"PROTO", "FRAME"})
_MAKERS = frozenset({"copy_reg._reconstructor", "copyreg._reconstructor"})


class _Machine:
    """The stack machine of pickle, with calls that call nothing."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._attributes = 0

    def step(self, name: str, argument: Any) -> None:
        """Do one opcode; a name that is not handled is refused."""
        if name in _LITERALS:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            self.stack.append(tuple(self._pop_many(_TUPLES[name])))
        elif name not in _NOTHING:
            method = getattr(self, f"_{name.lower()}", None)
            if method is None:
                raise _RefusedError(f"it uses the opcode {name}")
            method(argument)

    # --- stack and memo

    def _pop(self) -> Any:
        if not self.stack or self.stack[-1] is _Mark:
            raise ValueError("its stack runs empty")
        return self.stack.pop()

    def _pop_many(self, count: int) -> list[Any]:
        return [self._pop() for _ in range(count)][::-1]

    def _to_mark(self) -> list[Any]:
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is _Mark:
                items = self.stack[position + 1 :]
                del self.stack[position:]
                return items
        raise ValueError("a mark is missing")

    def _mark(self, _: Any) -> None:
        self.stack.append(_Mark)

    def _pop_mark(self, _: Any) -> None:
        self._to_mark()

    def _dup(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def _put(self, index: int) -> None:
        self._memo[index] = self.stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self.stack[-1]

    def _get(self, index: int) -> None:
        self.stack.append(self._memo[index])

    _binget = _long_binget = _get

    # --- containers

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._to_mark()))

    def _list(self, _: Any) -> None:
        self.stack.append(self._to_mark())

    def _dict(self, _: Any) -> None:
        items = self._to_mark()
        self.stack.append({})
        self._set_items(items)

    def _append(self, _: Any) -> None:
        self._extend([self._pop()])

    def _appends(self, _: Any) -> None:
        self._extend(self._to_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Inert):
            raise ValueError("it appends to what is no list")

    def _setitem(self, _: Any) -> None:
        self._set_items(self._pop_many(2))

    def _setitems(self, _: Any) -> None:
        self._set_items(self._to_mark())

    def _set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, dict):
            raise ValueError("it sets items of what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            # the hash of nested tuples can be made to take for ever
            if isinstance(key, (str, int, float, bytes, type(None))):
                target[key] = value

    def _additems(self, _: Any) -> None:
        items = self._to_mark()
        if isinstance(self.stack[-1], set):
            self.stack[-1].update(item for item in items if isinstance(item, (str, int, float)))

    def _frozenset(self, _: Any) -> None:
        self.stack.append(frozenset(i for i in self._to_mark() if isinstance(i, (str, int, float))))

    # --- what would have been code

    def _global(self, name: str) -> None:
        self.stack.append(Inert(name.replace(" ", ".")))

    def _stack_global(self, _: Any) -> None:
        module, name = self._pop_many(2)
        if not (isinstance(module, str) and isinstance(name, str)):
            raise ValueError("a class has no name")
        self.stack.append(Inert(f"{module}.{name}"))

    def _call(self, function: Any, args: Any) -> None:
        name = function.name if isinstance(function, Inert) else type(function).__name__
        if name in _MAKERS and isinstance(args, tuple) and args and isinstance(args[0], Inert):
            # protocols 0 and 1 make objects by a function that is given the class
            name, args = args[0].name, ()
        self.stack.append(Inert(name, args if isinstance(args, tuple) else ()))

    def _reduce(self, _: Any) -> None:
        self._call(*self._pop_many(2))

    def _newobj(self, _: Any) -> None:
        function, _args = self._pop_many(2)
        self._call(function, ())

    def _newobj_ex(self, _: Any) -> None:
        function, _args, _keywords = self._pop_many(3)
        self._call(function, ())

    def _obj(self, _: Any) -> None:
        function, *args = self._to_mark()
        self._call(function, tuple(args))

    def _inst(self, name: str) -> None:
        args = tuple(self._to_mark())
        self._call(Inert(name.replace(" ", ".")), args)

    def _build(self, _: Any) -> None:
        state = self._pop()
        target = self.stack[-1]
        # objects with slots have a pair of dicts
        parts = state if isinstance(state, tuple) else (state,)
        if isinstance(target, Inert):
            for part in parts:
                if isinstance(part, dict):
                    self._attributes += len(part)
                    if self._attributes > _MOST_VALUES:
                        raise _RefusedError(f"it sets more than {_MOST_VALUES:,} attributes")
                    target.state.update(part)

    def _binpersid(self, _: Any) -> None:
        self.stack.append(Inert("persistent", (self._pop(),)))

    def _persid(self, identifier: str) -> None:
        self.stack.append(Inert("persistent", (identifier,)))
