"""Iterators, generator functions under way and open files: how far they are, without a step."""

from __future__ import annotations

import gc
import io
import os
import stat
import sys
import types
from typing import TYPE_CHECKING, Any

from .attributes import attributes
from .code import code_digest
from .plain import LEAVES
from .record import Node, counted, digest, plain

if TYPE_CHECKING:
    from .reader import Handler, Reader


def over_items(reader: Reader, value: Any) -> Node:
    """An iterator of a built-in container, by what is left."""
    left = _left(value)
    _, made, *place = value.__reduce__()
    inner = made[0] if made else ()
    fields = []
    if left is not None:
        # Of dicts and sets only what is left is given, as a list.
        total = _length(inner) if place else None
        of = counted(left, "item") if total is None else f"{left} of {counted(total, 'item')}"
        fields.append(f"{of} left")
    payload = left, reader.look(tuple(place)).digest
    return reader.node(value, [(" items", reader.look(inner))], fields, payload)


def _length(inner: Any) -> int | None:
    if type(inner) not in (list, tuple, str, bytes, bytearray, range):
        return None
    try:
        return len(inner)
    except OverflowError:  # a range of more than a machine can count
        return None


def _left(value: Any) -> int | None:
    try:
        return int(value.__length_hint__())
    except OverflowError:
        return None


def left_over(reader: Reader, value: Any) -> Node:
    """An iterator that knows no more than how many items are left, and what it goes over."""
    left = _left(value)
    inner = [reader.look(item) for item in gc.get_referents(value) if type(item) is not type]
    return reader.node(
        value,
        [(" items", node) for node in inner[:1]],
        [f"{counted(left or 0, 'item')} left"],
        left,
    )


def over_iterators(reader: Reader, value: Any) -> Node:
    """``zip``, ``map``, ``enumerate`` and their like, by the iterators they draw from."""
    _, made, *place = value.__reduce__()
    made = tuple(made)
    children = [
        (f" source {i}", reader.look(item))
        for i, item in enumerate(made)
        if type(item) not in LEAVES
    ]
    numbers = tuple(item for item in made if type(item) in LEAVES), tuple(place)
    return reader.node(value, children, (), reader.look(numbers).digest)


def of_itertools(reader: Reader, value: Any) -> Node:
    """One of ``itertools``: by its count, or by the iterators behind it.

    Their ``__reduce__`` warns from Python 3.12 on and is gone in 3.14. Where that leaves the
    position unknown, the iterator is one that is not looked into.
    """
    name = type(value).__name__
    if name == "count":
        held = gc.get_referents(value)
        if all(type(item) in (*LEAVES, type) for item in held):
            text = repr(value)
            return Node(digest("itertools", text), name, shown=text[:60])
    if name == "repeat":
        inner = [
            (" items", reader.look(item))
            for item in gc.get_referents(value)
            if type(item) is not type
        ]
        try:
            left = value.__length_hint__()
        except TypeError:  # without an end
            return reader.node(value, inner)
        return reader.node(value, inner, [f"{counted(left, 'item')} left"])
    if sys.version_info < (3, 12) and name not in ("_tee", "_tee_dataobject", "_grouper"):
        return over_iterators(reader, value)
    if name not in _TOLD_BY_SOURCES:
        return reader.opaque(value)
    sources = [item for item in gc.get_referents(value) if type(item) is not type]
    if name == "cycle" and not any(type(item) is not list for item in sources):
        return reader.opaque(value)  # beyond its first pass
    return reader.node(
        value, [(f" source {i}", reader.look(item)) for i, item in enumerate(sources)]
    )


_TOLD_BY_SOURCES = {
    "accumulate", "batched", "chain", "compress", "cycle", "dropwhile", "filterfalse", "groupby",
    "islice", "pairwise", "starmap", "takewhile", "zip_longest",
}  # fmt: skip


def suspended(reader: Reader, value: types.GeneratorType[Any, Any, Any]) -> Node:
    """A generator function under way: its line, its variables, and the iterators of its loops."""
    frame, code = value.gi_frame, value.gi_code
    own = code_digest(reader, code)
    if frame is None:
        return reader.node(value, (), ["finished"], own)
    if value.gi_running:
        return reader.opaque(value, "running")
    line = (frame.f_lineno or code.co_firstlineno) - code.co_firstlineno + 1
    variables = dict(frame.f_locals)
    # What a comprehension goes over is called ``.0``.
    children = [
        (" loop" if name[0] == "." else f"<{name}>", reader.look(item))
        for name, item in variables.items()
    ]
    # A loop's iterator has no name: it is only on the frame's stack.
    held = gc.get_referents(value if sys.version_info >= (3, 11) else frame)
    named = set(map(id, variables.values()))
    loops = [item for item in held if id(item) not in named and _is_iterator(item)]
    children += [(f" loop {i}", reader.look(item)) for i, item in enumerate(loops)]
    started = "not started" if frame.f_lasti < 0 or _is_new(value) else f"in line {line}"
    return reader.node(value, children, [started], (own, frame.f_lasti))


def _is_new(value: Any) -> bool:
    suspended = getattr(value, "gi_suspended", None)  # from Python 3.11 on
    return suspended is False


def _is_iterator(value: object) -> bool:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}" in HANDLERS


def file(reader: Reader, value: Any) -> Node:
    """An open file: name, mode, and position where asking for it does no harm."""
    base: Any = next(b for b in type(value).__mro__ if b.__module__ in ("_io", "io"))
    if base.closed.__get__(value):
        return reader.node(value, (), ["closed"])
    name = getattr(value, "name", "") if type(value) is base else ""
    mode = getattr(value, "mode", "") if type(value) is base else ""
    fields = [plain(str(name)) if type(name) in (str, bytes) else "", plain(str(mode))]
    try:
        number = base.fileno(value)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return reader.opaque(value, *filter(None, fields))
        fields.append(f"position {_position(base, value)}")
    except (OSError, ValueError):
        return reader.opaque(value, *filter(None, fields))
    return reader.node(value, (), [field for field in fields if field])


def _position(base: Any, value: Any) -> int:
    if not issubclass(base, io.TextIOWrapper):
        return int(base.tell(value))
    # ``tell`` of a text that is written flushes it, and of one that is iterated over raises.
    under = io.TextIOWrapper.__dict__["buffer"].__get__(value)
    if not under.readable() or under.writable():
        return int(under.tell())
    try:
        return int(base.tell(value))
    except OSError:
        return int(under.tell())


def in_memory(reader: Reader, value: Any) -> Node:
    base: Any = io.BytesIO if issubclass(type(value), io.BytesIO) else io.StringIO
    if base.closed.__get__(value):
        return reader.node(value, (), ["closed"])
    content = base.getvalue(value)
    unit = "byte" if type(content) is bytes else "character"
    fields = [counted(len(content), unit), f"position {base.tell(value)}"]
    return reader.node(value, (), fields, reader.look(content).digest)


def archive(reader: Reader, value: Any) -> Node:
    """An open zip file: its entries in order, without their dates."""
    held = dict(attributes(value))
    infos = [(info.filename, info.file_size, info.CRC) for info in held["filelist"]]
    children = [(f"[{i}]", reader.look(info[0])) for i, info in enumerate(infos)]
    return reader.node(value, children, [counted(len(infos), "item")], reader.look(infos).digest)


def table_reader(reader: Reader, value: Any) -> Node:
    """A ``csv.reader``, by the line it is at and what it reads from."""
    sources = [item for item in gc.get_referents(value) if _is_iterator(item)]
    children = [(f" source {i}", reader.look(item)) for i, item in enumerate(sources)]
    return reader.node(value, children, [f"line {value.line_num}"])


HANDLERS: dict[str, Handler] = {
    **{
        f"builtins.{name}": over_items
        for name in (
            "list_iterator", "tuple_iterator", "str_iterator", "str_ascii_iterator",
            "bytes_iterator",
            "bytearray_iterator", "range_iterator", "longrange_iterator", "reversed",
            "list_reverseiterator", "dict_keyiterator", "dict_valueiterator", "dict_itemiterator",
            "set_iterator",
        )
    },
    **{
        f"builtins.{name}": left_over
        for name in (
            "dict_reversekeyiterator", "dict_reversevalueiterator", "dict_reverseitemiterator",
        )
    },
    "_collections._deque_iterator": left_over,
    "collections._deque_iterator": left_over,
    **{
        f"builtins.{name}": over_iterators
        for name in ("enumerate", "zip", "map", "filter", "callable_iterator")
    },
    **{
        f"itertools.{name}": of_itertools
        for name in (
            *_TOLD_BY_SOURCES, "count", "repeat", "product", "permutations", "combinations",
            "combinations_with_replacement", "_tee",
        )
    },
    "builtins.generator": suspended,
    **{
        f"_io.{name}": file
        for name in (
            "TextIOWrapper", "BufferedReader", "BufferedWriter", "BufferedRandom", "FileIO",
        )
    },
    **{f"_io.{name}": in_memory for name in ("BytesIO", "StringIO")},
    "zipfile.ZipFile": archive,
    "_csv.reader": table_reader,
}  # fmt: skip
