"""A run as JSON text and back: for another process, or for another day.

The text holds numbers, words and digests, and nothing that could be run. Reading it checks every
field against the type that the run declares, so that a damaged text is one error and no half run.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import types
import typing
from array import array
from collections.abc import Callable, Mapping
from typing import Any

from .errors import FileError
from .recording import Observed
from .run import Doubles, Run

VERSION = 1
_DEPTH = 40  # of nested values; ours have six levels

# Run's own hints name NumPy, which may not be imported for them.
_FIELDS: dict[str, Any] = {
    "number": int,
    "name": str,
    "seed": int | None,
    "start": str,
    "end": str,
    "status": str,
    "starts": Mapping[str, str],
    "ends": Mapping[str, str],
    "switches": Mapping[str, Any],
    "error": str | None,
    "notes": tuple[str, ...],
    "code": str,
    "partial": bool,
    "observed": Observed | None,
}
_SCALARS = (str, int, bool, float)


def dump(run: Run) -> str:
    """A run as JSON text, but for its recorded values, its checkpoint and its turn.

    The latter two count within one process. The values are bulky: `doubles` gives their bytes.
    """
    fields = {name: _plain(getattr(run, name)) for name in _FIELDS}
    # Text from outside may hold lone surrogates; escaped, every file takes it.
    return json.dumps({"version": VERSION, **fields}, ensure_ascii=True, separators=(",", ":"))


def load(
    text: str, values: Mapping[str, Doubles] | None = None, checkpoint: int = 0, turn: int = 0
) -> Run:
    """The run that `dump` made the text of.

    Raises
    ------
    FileError
        If it is not such a text, or one of a later version.
    """
    if not isinstance(text, str):
        raise FileError(f"a run's record is damaged: no text, but {type(text).__name__}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"a run's record is damaged: {error}") from None
    if not isinstance(found, dict):
        raise FileError("a run's record is damaged: it is no object")
    version = found.pop("version", None)
    if version != VERSION:
        raise FileError(f"a run's record is of version {version!r}; this nbseed reads {VERSION}")
    if found.keys() != _FIELDS.keys():
        other = ", ".join(sorted(map(str, found.keys() ^ _FIELDS.keys())))
        raise FileError(f"a run's record is damaged: other fields ({other})")
    fields = {name: _typed(found[name], hint, name) for name, hint in _FIELDS.items()}
    return Run(values=dict(values or {}), checkpoint=checkpoint, turn=turn, **fields)


def doubles(values: Doubles) -> bytes:
    """Recorded values as 8-byte little-endian IEEE 754 doubles, every bit kept."""
    return _ordered(array("d", values.tobytes())).tobytes()


def from_doubles(data: bytes) -> array[float]:
    """The values that `doubles` made the bytes of; FileError if they are cut off."""
    if not isinstance(data, bytes):
        raise FileError(f"recorded values are damaged: no bytes, but {type(data).__name__}")
    if len(data) % 8:
        raise FileError(f"recorded values are damaged: {len(data)} bytes are no whole doubles")
    return _ordered(array("d", data))


def _ordered(values: array[float]) -> array[float]:
    if sys.byteorder == "big":
        values.byteswap()
    return values


# -- to plain values -------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or type(value) in _SCALARS:
        return value
    # A subclass, as torch's version is of str.
    return next((kind(value) for kind in (str, int, float) if isinstance(value, kind)), str(value))


# -- and back --------------------------------------------------------------------------------------


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _typed(value: Any, hint: Any, where: str, depth: int = 0) -> Any:
    """A JSON value as what a type hint says; FileError if it is none."""
    if depth > _DEPTH:
        raise FileError(f"a run's record is damaged: {where} is nested too deeply")

    def inner(value: Any, hint: Any) -> Any:
        return _typed(value, hint, where, depth + 1)

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        found, fits = value, value is None or isinstance(value, _SCALARS)
    elif origin in (types.UnionType, typing.Union):
        plain = next(part for part in parts if part is not type(None))
        return None if value is None else inner(value, plain)
    elif dataclasses.is_dataclass(hint):
        return _record(value, typing.cast(type, hint), inner, where)
    elif origin is tuple:
        fits = isinstance(value, list) and (parts[-1] is ... or len(value) == len(parts))
        kinds = parts[:1] * len(value) if fits and parts[-1] is ... else parts
        found = tuple(map(inner, value, kinds)) if fits else None
    elif origin is not None and issubclass(origin, Mapping):
        fits = isinstance(value, dict)
        found = {key: inner(item, parts[1]) for key, item in value.items()} if fits else None
    else:
        found, fits = value, type(value) is hint
    if not fits:
        raise FileError(f"a run's record is damaged: {where} holds a {type(value).__name__}")
    return found


def _record(value: Any, kind: type, inner: Callable[[Any, Any], Any], where: str) -> Any:
    hints = _hints(kind)
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise FileError(f"a run's record is damaged: {where} is no {kind.__name__}")
    return kind(**{name: inner(value[name], hint) for name, hint in hints.items()})
