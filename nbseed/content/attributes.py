"""What an object keeps in attributes, past any code of its class, and which of it is a time."""

from __future__ import annotations

import datetime
import functools
import re
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..generators.user import is_users_module
from .record import Node

if TYPE_CHECKING:
    from .reader import Handler, Reader


def mro(kind: type) -> tuple[type, ...]:
    """The bases of a type, past any ``__getattribute__`` of its metaclass."""
    found: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return found


_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TIMES = {
    "time", "times", "datetime", "runtime", "walltime", "elapsed", "duration", "durations",
    "timestamp", "timestamps", "date", "dates",
}  # fmt: skip
_MOMENTS = (datetime.date, datetime.time, datetime.timedelta)


def is_a_time(name: str, value: object) -> bool:
    """Whether an attribute or a key holds when something happened or how long it took.

    Its name says so by one whole word (``fit_time_``, ``elapsed``, ``startTime``, not ``timesteps``
    or ``update``) and its value is a number or a date. Arrays of floats and dates, and lists of
    floats, count only where that word comes last of several (``mean_fit_time``): a column ``time``
    is data. Such values change from run to run and are left out of every digest.
    """
    rank = _rank(name)
    if not rank:
        return False
    kind = type(value)
    if kind in (int, float) or issubclass(kind, _MOMENTS):
        return True
    if kind.__module__ == "numpy" and kind.__name__.startswith(("float", "int", "datetime")):
        return True
    if rank < 2:
        return False
    held: Any = value
    if kind is list or kind is tuple:
        return set(map(type, held)) == {float}
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray" and held.dtype.kind in "fmM"


@functools.lru_cache(4096)
def _rank(name: str) -> int:
    words = [word.lower() for word in _WORDS.findall(name)]
    if _TIMES.isdisjoint(words):
        return 0
    return 2 if len(words) > 1 and words[-1] in _TIMES else 1


def attributes(value: object) -> list[tuple[str, Any]]:
    """What ``__dict__`` and ``__slots__`` hold, past any ``__getattr__`` and property.

    Left out: times, and what a ``cached_property`` of a library keeps, which follows from the rest.
    """
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        held = {}
    found = list(held.items()) if type(held) is dict else []
    slots, derived = _layout(type(value))
    for key, place in slots:
        try:
            found.append((key, place.__get__(value)))
        except AttributeError:  # a slot that is empty
            continue
    return [
        (key, item)
        for key, item in found
        if type(key) is str and key not in derived and not is_a_time(key, item)
    ]


_Layout = tuple[list[tuple[str, Any]], set[str]]
_LAYOUTS: WeakKeyDictionary[type, _Layout] = WeakKeyDictionary()


def _layout(kind: type) -> _Layout:
    """The slots of a class, and the names of its cached properties."""
    known = _LAYOUTS.get(kind)
    if known is not None:
        return known
    slots: list[tuple[str, Any]] = []
    derived: set[str] = set()
    for base in mro(kind)[:-1]:
        held = base.__dict__
        names = held.get("__slots__", ())
        for key in (names,) if type(names) is str else tuple(names):
            place = held.get(_mangled(base, key))
            if type(place) is types.MemberDescriptorType:
                slots.append((key, place))
        if base.__module__ != "__main__":  # what the user's own keeps may have drawn
            derived.update(k for k, item in held.items() if type(item) is functools.cached_property)
    return _LAYOUTS.setdefault(kind, (slots, derived))


def _mangled(kind: type, key: str) -> str:
    if key.startswith("__") and not key.endswith("__"):
        return f"_{kind.__name__.lstrip('_')}{key}"
    return key


@functools.lru_cache(512)
def _is_users_name(name: str) -> bool:
    module = sys.modules.get(name)
    return name == "__main__" or (module is not None and is_users_module(module))


def is_users(kind: type) -> bool:
    """Whether a class is of the notebook or of a module of the user's own."""
    return type(kind.__module__) is str and _is_users_name(kind.__module__)


def instance(reader: Reader, value: Any) -> Node:
    """An object by its attributes, and by those of its class where that is the user's."""
    held = attributes(value)
    if not held and has_no_state(type(value)):
        return reader.opaque(value)
    return built(reader, value, [(f".{key}", reader.look(item)) for key, item in held])


def built(
    reader: Reader,
    value: Any,
    children: list[tuple[str, Node]],
    payload: object = b"",
    fields: Sequence[str] = (),
    bag: str = "",
) -> Node:
    """The node of an object with attributes in any order, to which its class's are added."""
    kind = type(value)
    home = reader.look(kind) if any(map(is_users, mro(kind))) else None
    payload = payload, home.digest if home else b""
    node = reader.node(value, children, fields, payload, bag, ordered=False)
    if home is None:
        return node
    taken = {step for step, _ in children}
    more = [pair for pair in home.children if pair[0] not in taken]
    return node._replace(children=[*children, *more])


def has_no_state(kind: type) -> bool:
    """Whether objects of a type keep what they hold where Python cannot see it."""
    return kind is not object and not any(
        "__dict__" in base.__dict__ or "__slots__" in base.__dict__ for base in mro(kind)[:-1]
    )


def with_attributes(handler: Handler) -> Handler:
    """`handler`, and the attributes that a class below adds."""

    def both(reader: Reader, value: Any) -> Node:
        node = handler(reader, value)
        held = attributes(value)
        if not held and not any(map(is_users, mro(type(value)))):
            return node
        more = [(f".{key}", reader.look(item)) for key, item in held]
        whole = built(reader, value, more, node.digest, node.fields, node.bag)
        taken = {step for step, _ in node.children}
        children = [*node.children, *(pair for pair in whole.children if pair[0] not in taken)]
        node = whole._replace(children=children, opaque=node.opaque and not held)
        if id(value) in reader.buffers:
            reader.buffers[id(value)] = value, node
        return node

    return both
