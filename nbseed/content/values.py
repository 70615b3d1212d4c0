"""Values of the standard library: dates, paths, patterns, buffers, errors and the like."""

from __future__ import annotations

import decimal
import gc
import pathlib
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .arrays import hashed
from .attributes import attributes, built, mro
from .plain import leaf
from .record import SHORT, Node, counted, digest

if TYPE_CHECKING:
    from .reader import Handler, Reader


def _as_text(text: Callable[[Any], str]) -> Handler:
    """What a type says of itself in a text that holds all of it."""

    def handler(reader: Reader, value: Any) -> Node:
        kind, said = type(value), text(value)
        own = digest(kind.__module__, kind.__qualname__, said)
        shown = f"{kind.__name__}({said})" if len(said) <= SHORT else ""
        return Node(own, kind.__name__, [counted(len(said), "character")], shown=shown)

    return handler


def _reduced(reader: Reader, value: Any) -> Node:
    """By what a type written in C says for a copy, past what a class below redefines."""
    base: Any = next(
        base for base in mro(type(value)) if base.__module__ in ("datetime", "operator")
    )
    parts = base.__reduce_ex__(value, 4)[1]
    node = reader.node(value, (), (), [reader.look(part).digest for part in parts])
    # The text of what has a zone asks the zone, which may be the user's.
    plain = type(value) is base and getattr(value, "tzinfo", None) is None
    if plain and base.__name__ in ("datetime", "date", "time", "timedelta"):
        return node._replace(shown=f"{base.__name__}({str(value)!r})")
    return node


def _buffer(reader: Reader, value: Any) -> Node:
    with memoryview(value) as view:
        flat = view.cast("B") if view.nbytes and view.c_contiguous else view.tobytes()
        payload = view.format, view.shape, hashed(reader, [flat])
        return reader.node(value, (), [counted(view.nbytes, "byte")], payload)


def _member(reader: Reader, value: Any) -> Node:
    kind = type(value)
    name = object.__getattribute__(value, "_name_")
    held = reader.look(object.__getattribute__(value, "_value_"))
    own = digest(kind.__module__, kind.__qualname__, name, held.digest)
    return Node(own, kind.__name__, shown=f"{kind.__name__}.{name}")


def _stream(reader: Reader, value: Any) -> Node:
    if type(value).getstate is not random.Random.getstate:
        return reader.opaque(value)
    return reader.node(value, (), (), reader.look(random.Random.getstate(value)).digest)


def _queue(reader: Reader, value: Any) -> Node:
    """A queue without its locks."""
    kept = ("queue", "maxsize", "unfinished_tasks")
    held = [(key, item) for key, item in attributes(value) if key in kept]
    return built(reader, value, [(f".{key}", reader.look(item)) for key, item in held])


def _error(reader: Reader, value: Any) -> Node:
    """An exception without where it was raised."""
    held: Any = BaseException.__dict__["args"].__get__(value)
    more = [(f".{key}", reader.look(item)) for key, item in attributes(value)]
    return built(reader, value, [(".args", reader.look(held)), *more])


def _referring(reader: Reader, value: Any) -> Node:
    """A view by what it looks at: asking the view might ask a mapping of the user's."""
    held = [reader.look(item).digest for item in gc.get_referents(value) if type(item) is not type]
    return reader.node(value, (), (), held)


def _slice(reader: Reader, value: slice) -> Node:
    parts = (value.start, value.stop, value.step)
    return reader.node(value, (), (), [reader.look(part).digest for part in parts])


HANDLERS: dict[str, Handler] = {
    "builtins.range": _as_text(lambda v: f"{v.start}, {v.stop}, {v.step}"),
    "builtins.slice": _slice,
    **dict.fromkeys(("builtins.bytearray", "builtins.memoryview", "array.array"), _buffer),
    "builtins.BaseException": _error,
    **{
        f"builtins.{name}": _referring
        for name in ("mappingproxy", "dict_keys", "dict_values", "dict_items")
    },
    "enum.Enum": _member,
    "random.Random": _stream,
    "queue.Queue": _queue,
    **{
        f"{home}.PurePath": _as_text(lambda v: leaf(pathlib.PurePath.__str__(v)).text)
        for home in ("pathlib", "pathlib._local")
    },
    "fractions.Fraction": _as_text(
        lambda v: "/".join(str(dict(attributes(v))[key]) for key in ("_numerator", "_denominator"))
    ),
    "decimal.Decimal": _as_text(decimal.Decimal.__str__),
    "re.Pattern": _as_text(lambda v: f"{v.pattern!r}, {v.flags}"),
    "re.Match": _as_text(lambda v: f"{v.string!r}, {v.re.pattern!r}, {v.regs}"),
    **{
        f"datetime.{name}": _reduced
        for name in ("date", "time", "datetime", "timedelta", "timezone")
    },
    **{f"operator.{name}": _reduced for name in ("itemgetter", "attrgetter", "methodcaller")},
}  # fmt: skip
