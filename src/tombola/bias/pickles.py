"""Read a pickle of plain numbers without running any of it.

`pickle.load` runs whatever a file asks for. This module only parses the file with `pickletools.genops` and interprets
its instructions on its own stack: dicts, lists, tuples, strings and numbers, and the calls that rebuild a numpy array
or number. Those are recognised by name and done by `numpy.frombuffer`; nothing is imported, looked up or called
because a file names it, and every other instruction is rejected.
"""

import pickletools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tombola.errors import DataError

_DTYPES = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}
_MARK = object()
_IGNORED = {"PROTO", "FRAME"}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    "BYTEARRAY8",
}
_ARRAY = {f"{place} _reconstruct" for place in ("numpy.core.multiarray", "numpy._core.multiarray")}
_SCALAR = {f"{place} scalar" for place in ("numpy.core.multiarray", "numpy._core.multiarray")}
_BUFFER = {f"{place} _frombuffer" for place in ("numpy.core.numeric", "numpy._core.numeric")}
_KNOWN = _ARRAY | _SCALAR | _BUFFER | {
    "numpy ndarray", "numpy dtype", "_codecs encode", "collections OrderedDict", "builtins dict", "__builtin__ dict",
}  # fmt: skip


@dataclass
class _Name:
    """The name of something that the file would import."""

    name: str


@dataclass
class _Type:
    """A partly described numpy dtype."""

    code: str
    order: str = "<"

    def numpy(self) -> np.dtype[Any]:
        if self.code not in _DTYPES:
            raise _Refused(f"an array of the type {self.code!r}")
        return np.dtype((self.order if self.order in ("<", ">") else "=") + self.code)


class _Array:
    """A partly described numpy array."""

    values: np.ndarray | None = None


class _Refused(Exception):
    """Raised with a description of the content that is not loaded."""


def read_plain_pickle(path: Path) -> Any:
    """Read the dicts, lists, numbers and arrays of a pickle; a file that asks for anything else is rejected."""
    try:
        with open(path, "rb") as file:
            value = _run(pickletools.genops(file))
    except _Refused as refused:
        raise DataError(
            f"{path}: is not a plain pickle of numbers: it contains {refused}, which is not loaded, since a pickle "
            'can run any code. If you trust it, convert it where it was made, e.g.  python -c "import json, pickle; '
            f"print(json.dumps({{str(k): [float(x) for x in v] for k, v in pickle.load(open('{path.name}', "
            f"'rb')).items()}}))\" > {path.stem}.json"
        ) from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"{path}: is not a complete pickle ({error}).") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    return _finished(value)


def _run(instructions: Iterator[tuple[pickletools.OpcodeInfo, Any, int | None]]) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in instructions:
        name = opcode.name
        if name in _IGNORED:
            continue
        if name == "STOP":
            return stack.pop()
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            stack.append(argument)
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _ACTIONS:
            _ACTIONS[name](stack)
        elif name == "GLOBAL":
            stack.append(_name(argument))
        else:
            raise _Refused(f"the instruction {name}")
    raise ValueError("it ends too early")


def _marked(stack: list[Any]) -> list[Any]:
    """Pop everything above the last mark off the stack."""
    place = next((i for i in reversed(range(len(stack))) if stack[i] is _MARK), None)
    if place is None:
        raise ValueError("it has no mark where it needs one")
    items = stack[place + 1 :]
    del stack[place:]
    return items


def _set_items(stack: list[Any], items: list[Any]) -> None:
    if not isinstance(stack[-1], dict):
        raise _Refused("items of something that is not a dict")
    for key, value in zip(items[::2], items[1::2], strict=True):
        stack[-1][_number(key)] = value


def _append(stack: list[Any], items: list[Any]) -> None:
    if not isinstance(stack[-1], list):
        raise _Refused("items of something that is not a list")
    stack[-1].extend(items)


def _name(dotted: str) -> _Name:
    if dotted not in _KNOWN:
        raise _Refused(repr(".".join(dotted.split(" "))))
    return _Name(dotted)


def _stack_global(stack: list[Any]) -> None:
    attribute, module = stack.pop(), stack.pop()
    stack.append(_name(f"{module} {attribute}"))


def _reduce(stack: list[Any]) -> None:
    arguments, function = stack.pop(), stack.pop()
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        raise _Refused("a call of something that is not a function")
    stack.append(_called(function.name, arguments))


def _called(name: str, arguments: tuple[Any, ...]) -> Any:
    if name in _ARRAY:
        return _Array()
    if name == "numpy dtype":
        return _Type(str(arguments[0]).lstrip("<>=|"))
    if name in _SCALAR:
        kind, content = arguments
        return np.frombuffer(_bytes(content), kind.numpy(), count=1)[0].item()
    if name in _BUFFER:
        content, kind, shape, order = arguments
        return np.frombuffer(_bytes(content), kind.numpy()).reshape(shape, order=order)
    if name == "_codecs encode":
        return str(arguments[0]).encode("latin-1")
    if name in ("collections OrderedDict", "builtins dict", "__builtin__ dict") and not arguments:
        return {}
    raise _Refused(f"a call of {'.'.join(name.split(' '))!r}")


def _build(stack: list[Any]) -> None:
    state, target = stack.pop(), stack[-1]
    if isinstance(target, _Type):
        target.order = state[1]
    elif isinstance(target, _Array):
        _, shape, kind, fortran, content = state
        values = np.frombuffer(_bytes(content), kind.numpy())
        target.values = values.reshape(shape, order="F" if fortran else "C")
    else:
        raise _Refused("the state of some object")


def _bytes(content: Any) -> bytes:
    if not isinstance(content, str | bytes | bytearray):
        raise _Refused("an array of something that is not a number")
    return content.encode("latin-1") if isinstance(content, str) else bytes(content)


def _number(key: Any) -> Any:
    """Check the type of a dict key."""
    if not isinstance(key, str | int | float | bytes):
        raise _Refused(f"a key of the type {type(key).__name__}")
    return key


_ACTIONS: dict[str, Callable[[list[Any]], None]] = {
    "EMPTY_DICT": lambda stack: stack.append({}),
    "EMPTY_LIST": lambda stack: stack.append([]),
    "DICT": lambda stack: _new_dict(stack),
    "LIST": lambda stack: stack.append(_marked(stack)),
    "TUPLE": lambda stack: stack.append(tuple(_marked(stack))),
    "TUPLE1": lambda stack: stack.append((stack.pop(),)),
    "TUPLE2": lambda stack: stack.append(tuple(_last(stack, 2))),
    "TUPLE3": lambda stack: stack.append(tuple(_last(stack, 3))),
    "SETITEM": lambda stack: _set_items(stack, _last(stack, 2)),
    "SETITEMS": lambda stack: _set_items(stack, _marked(stack)),
    "APPEND": lambda stack: _append(stack, _last(stack, 1)),
    "APPENDS": lambda stack: _append(stack, _marked(stack)),
    "POP": lambda stack: stack.__delitem__(-1),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "BUILD": _build,
}


def _new_dict(stack: list[Any]) -> None:
    items = _marked(stack)
    stack.append({})
    _set_items(stack, items)


def _last(stack: list[Any], count: int) -> list[Any]:
    items = stack[-count:]
    del stack[-count:]
    return items


def _finished(value: Any) -> Any:
    """Return the values with descriptions replaced by arrays: a dict or list of rows, or one array."""
    if isinstance(value, dict):
        return {key: _row(row) for key, row in value.items()}
    if isinstance(value, list | tuple):
        return [_row(row) for row in value]
    return _row(value)


def _row(value: Any) -> Any:
    if isinstance(value, _Array):
        if value.values is None:
            raise DataError("the pickle contains an array without values.")
        return value.values
    return value
