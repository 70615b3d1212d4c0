"""Numbers, texts and containers of Python's own."""

from __future__ import annotations

import functools
import struct
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from .attributes import is_a_time, mro
from .record import SHORT, Node, counted, digest, either_way

if TYPE_CHECKING:
    from .reader import Handler, Reader

LEAVES = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented),
}  # fmt: skip
SHOWN = 32
"""How many items of a container of numbers and texts are parts of their own."""
UNORDERED = 20_000
"""How many items are compared regardless of their order."""
_PIECE = 16_384
# The plain value of an object of a class below, past what that class redefines.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
}
_UNITS = {"str": "characters", "bytes": "bytes"}


def leaf(value: Any) -> Node:
    """The node of a number, a text, or a constant of Python's own."""
    return _name(value) if type(value) is str and len(value) < SHORT else _leaf(value)


def _leaf(value: Any) -> Node:
    kind = type(value)
    name = kind.__name__
    if kind is float:
        return Node(digest(name, struct.pack("<d", value)), name, shown=repr(value))
    if (
        kind is int and value.bit_length() > 3 * SHORT
    ):  # too many digits, or more than may be printed
        return Node(digest(name, hex(value)), name, [f"{value.bit_length()} bits"])
    if kind is complex:
        bits = struct.pack("<dd", value.real, value.imag)
        shown = repr(value)
        return Node(digest(name, bits), name, shown=shown if len(shown) <= SHORT else "")
    own = digest(name, value)
    if name not in _UNITS:
        return Node(own, name, shown=repr(value))
    shown = repr(value) if len(value) <= SHORT else ""
    if shown and len(shown) <= SHORT:
        return Node(own, name, shown=shown)
    return Node(own, name, [f"{len(value)} {_UNITS[name]}"])


_name = functools.lru_cache(1024)(_leaf)  # keys of dicts and names of columns come again


def number(reader: Reader, value: Any) -> Node:
    """An object of a class below a number's or a text's."""
    base = next(base for base in mro(type(value)) if base in _PLAIN)
    inner = leaf(_PLAIN[base](value))
    kind = type(value)
    own = digest(kind.__module__, kind.__qualname__, inner.digest)
    shown = f"{kind.__name__}({inner.shown})" if inner.shown else ""
    return Node(own, kind.__name__, inner.fields, shown=shown)


def sequence(reader: Reader, value: Any) -> Node:
    base: Any = next(base for base in mro(type(value)) if base in (list, tuple, deque))
    items = list(base.__iter__(value))
    names = type(value).__dict__.get("_fields")
    if base is tuple and type(names) is tuple and len(names) == len(items):
        children = [(f".{n}", reader.look(item)) for n, item in zip(names, items, strict=True)]
        return reader.node(value, children)
    fields = [counted(len(items), "item")]
    longest = base.maxlen.__get__(value) if base is deque else None
    if longest is not None:
        fields.append(f"maxlen {longest}")
    near = len(reader.stack) <= 2
    packed = _packed(reader, items)
    if packed:
        shown = items[:SHOWN] if near else []
        children = [(f"[{i}]", reader.look(item)) for i, item in enumerate(shown)]
        bag = either_way(_bag(items), packed) if near else ""
        return reader.node(value, (), fields, packed, bag)._replace(children=children)
    children = [(f"[{i}]", reader.look(item)) for i, item in enumerate(items)]
    bag = _mixed([node.digest for _, node in children]) if near else ""
    return reader.node(value, children, fields, bag=bag)


def _packed(reader: Reader, items: Sequence[Any]) -> bytes:
    """One digest over many numbers and texts; empty if there is anything else among them.

    Items are told apart by their ``repr`` or bits, a few thousand at a time: a walk would take
    twenty times as long.
    """
    kinds = set(map(type, items))
    if kinds <= {list, tuple} and len(items) > SHOWN:
        # A table as a list of rows; what is nested deeper is walked.
        if not set(map(type, chain.from_iterable(items))) <= LEAVES:
            return b""
    elif not kinds <= LEAVES:
        return b""
    parts = []
    for start in range(0, len(items), _PIECE):
        reader.check_time()
        parts.append(digest(*_bits(items[start : start + _PIECE], kinds)))
    return digest("packed", parts)


def _bits(items: Sequence[Any], kinds: set[type]) -> tuple[object, ...]:
    if kinds == {float}:
        return "float", array("d", items).tobytes()
    if kinds == {str}:
        lengths = array("q", map(len, items)).tobytes()
        return "str", lengths, "".join(items).encode("utf-8", "surrogatepass")
    if kinds == {int}:
        try:
            return "int", array("q", items).tobytes()
        except OverflowError:
            return "int", ",".join(map(hex, items))
    try:
        return "mixed", repr(items)
    except ValueError:  # an integer of more digits than Python prints
        return "deep", *(_hex(item) for item in items)


def _hex(item: Any) -> object:
    if type(item) in (list, tuple):
        return type(item).__name__, [_hex(inner) for inner in item]
    return hex(item) if type(item) is int else ("", item)


def _bag(items: Sequence[Any]) -> str:
    """A digest of numbers and texts that their order does not change; empty for many."""
    if not 1 < len(items) <= UNORDERED:
        return ""
    try:
        return digest(sorted(map(repr, items))).hex()
    except ValueError:
        return ""


def _mixed(digests: Sequence[bytes]) -> str:
    if not 1 < len(digests) <= UNORDERED:
        return ""
    return either_way(digest(sorted(digests)).hex(), digest(digests))


def mapping(reader: Reader, value: Any) -> Node:
    base: Any = next(base for base in mro(type(value)) if base in (OrderedDict, dict))
    pairs = list(base.items(value))
    fields = [counted(len(pairs), "item")]
    if issubclass(type(value), defaultdict):
        factory: Any = defaultdict.__dict__["default_factory"].__get__(value)
        fields.append(
            f"default {factory.__name__ if type(factory) is type else type(factory).__name__}"
        )
    pairs = [(key, item) for key, item in pairs if not (type(key) is str and is_a_time(key, item))]
    if len(pairs) > SHOWN:
        keys = _packed(reader, [key for key, _ in pairs])
        items = keys and _packed(reader, [item for _, item in pairs])
        if items:
            whole = digest(keys, items)
            near = len(reader.stack) <= 2
            children = [
                (step(key), leaf(item)) for key, item in pairs[:SHOWN] if type(item) in LEAVES
            ]
            bag = either_way(_bag(pairs), whole) if near else ""
            node = reader.node(value, (), fields, whole, bag)
            return node._replace(children=children if near else ())
    nodes = [reader.look(item) for _, item in pairs]
    # Two digests side by side are one as well.
    digests = [
        reader.look(key).digest + node.digest for (key, _), node in zip(pairs, nodes, strict=True)
    ]
    children = [(step(key), node) for (key, _), node in zip(pairs, nodes, strict=True)]
    bag = _mixed(digests) if len(reader.stack) <= 2 else ""
    node = reader.node(value, (), fields, b"".join(digests), bag)
    return node._replace(children=children)


def step(key: object) -> str:
    """``['lr']``: what one types for a key, cut short."""
    return f"[{_short(key)}]"


def _short(key: object) -> str:
    kind = type(key)
    if kind is str or kind is bytes:
        text = repr(key)
        return text if len(text) <= SHORT else f"{text[: SHORT - 4]}...{text[-1]}"
    if kind in LEAVES:
        return leaf(key).text
    if type(key) is tuple and len(key) < 5 and set(map(type, key)) <= LEAVES:
        return ", ".join(map(_short, key))
    return f"<{kind.__name__}>"


def collection(reader: Reader, value: Any) -> Node:
    """A set, whose order depends on addresses and on the process."""
    base: Any = next(base for base in mro(type(value)) if base in (set, frozenset))
    items = list(base.__iter__(value))
    kinds = set(map(type, items))
    if kinds in ({str}, {int}, {float}):
        packed = _packed(reader, sorted(items) if kinds != {float} else sorted(items, key=repr))
    else:
        packed = b"".join(sorted(node.digest for node in reader.apart(items)))
    return reader.node(value, (), [counted(len(items), "item")], packed)


HANDLERS: dict[str, Handler] = {
    **{f"builtins.{kind.__name__}": number for kind in _PLAIN},
    **dict.fromkeys(("builtins.list", "builtins.tuple", "collections.deque"), sequence),
    **dict.fromkeys(("builtins.dict", "collections.OrderedDict"), mapping),
    **dict.fromkeys(("builtins.set", "builtins.frozenset"), collection),
}
