"""Which generators exist now: one room a library, the registered ones, and the notebook's objects.

No room is asked before the user has imported its library, and none creates what it looks for.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RegistrationError, StateError
from ..imports import is_imported
from . import cupy, jax, numba, numpy, pinned, python, tensorflow, torch, user
from .protocol import Generator, Room

__all__ = ["Existing", "Generator", "Room", "existing", "register", "resolve", "rooms"]

_ROOMS = (
    python.ROOM, numpy.ROOM, pinned.ROOM, torch.ROOM, numba.ROOM, tensorflow.ROOM, cupy.ROOM,
)  # fmt: skip
_registered: dict[str, tuple[Generator, object]] = {}
_namespace: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Existing:
    """The generators that exist at one moment.

    Attributes
    ----------
    generators
        By name: libraries first, then the registered ones, then the user's objects.
    notes
        One sentence for each thing left out: a stream that cannot be read, a bound that was hit.
    """

    generators: dict[str, Generator]
    notes: tuple[str, ...] = ()


def existing(names: Iterable[str] | None = None) -> Existing:
    """The generators that exist now.

    Parameters
    ----------
    names
        The notebook's variables to search for generator objects; all of them by default. Outside a
        notebook there are none.
    """
    found: dict[str, Generator] = {}
    notes: list[str] = []
    for room in rooms():
        if is_imported(room.library):
            for generator in room.generators():
                found[generator.name] = generator
            notes += room.uncovered()
    found.update((name, generator) for name, (generator, _) in _registered.items())
    if _namespace is not None:
        apart = [value for _, value in _registered.values()]
        objects = user.find(_namespace, names, apart)
        found.update(objects.generators)
        notes.extend(objects.cut)
    return Existing(found, tuple(notes))


def seeded(stream: str, seed: int) -> bytes | None:
    """The state of ``python``, ``numpy`` or ``torch`` right after a seed; no generator moves.

    None for other streams, and for a seed that they do not take.
    """
    makers: dict[str, Callable[[], object]] = {
        "python": lambda: sys.modules["random"].Random(seed),
        "numpy": lambda: sys.modules["numpy.random"].RandomState(seed),
        "torch": lambda: sys.modules["torch"].Generator().manual_seed(seed),
    }
    if stream not in makers:
        return None
    try:
        generator = user.adapt(stream, makers[stream]())
        return None if generator is None else generator.get_state()
    except (KeyError, ValueError, OverflowError, RuntimeError):  # a seed that it does not take
        return None


def near(names: Iterable[str]) -> dict[str, Generator]:
    """The user's generator objects within two steps of some of the notebook's variables."""
    if _namespace is None:
        return {}
    apart = [value for _, value in _registered.values()]
    return user.find(_namespace, names, apart, depth=2, count=300).generators


def rooms() -> tuple[Room, ...]:
    """The rooms of this package and those that plug in."""
    return _ROOMS + _plugged_in()


def resolve(name: str) -> Generator | None:
    """A generator that does not exist now under `name` but whose state can still be set."""
    for room in rooms():
        if is_imported(room.library):
            generator = room.resolve(name)
            if generator is not None:
                return generator
    return None


def can_arrive(name: str) -> bool:
    """Whether `name` belongs to a library that is not imported yet, and comes with it."""
    library = name.partition(".")[0]
    return any(room.library == library for room in rooms()) and not is_imported(library)


def look_into(namespace: Mapping[str, object] | None) -> None:
    """Search this namespace for the user's generator objects from now on; None: none at all."""
    global _namespace
    _namespace = namespace


def register(name: str, generator: object) -> Any:
    """Cover a generator that cannot be found by itself; returns it.

    Parameters
    ----------
    name
        How it is shown. Registering the name again replaces it.
    generator
        A generator object of Python, NumPy or torch; a JAX key, for which a
        `nbseed.generators.jax.KeyStream` comes back; or any object with ``get_state() -> bytes``
        and ``set_state(bytes)``, and perhaps ``check_state(bytes)`` and ``seed(int)``.

    Raises
    ------
    RegistrationError
        If the name is empty or belongs to a library, or the object is no generator.
    """
    if not isinstance(name, str) or not name.strip():
        raise RegistrationError(f"the name must be a non-empty string, got {name!r}")
    taken = {room.library for room in rooms()} | {"python"}
    if name.split(".")[0] in taken or name.startswith("user:"):
        raise RegistrationError(f"the name {name!r} belongs to a library or a variable")
    adapted = user.adapt(name, generator)
    if adapted is None and jax.is_key(generator):
        adapted = generator = jax.KeyStream(name, generator)
    if adapted is None:
        adapted = _Registered(name, generator)
        adapted.probe()
    _registered[name] = (adapted, generator)
    return generator


def unregister(name: str) -> None:
    """Cover a registered generator no longer; RegistrationError if there is none of that name."""
    if name not in _registered:
        known = ", ".join(sorted(_registered)) or "none"
        raise RegistrationError(f"no generator is registered as {name!r}; registered: {known}")
    del _registered[name]


def registered() -> dict[str, Generator]:
    """The registered generators by name."""
    return {name: generator for name, (generator, _) in _registered.items()}


@dataclass(frozen=True)
class _Registered:
    """An object of the user's that speaks bytes; what it lacks of the protocol is filled in."""

    name: str
    stream: Any

    def probe(self) -> None:
        missing = [call for call in ("get_state", "set_state") if not hasattr(self.stream, call)]
        kind = type(self.stream).__name__
        if missing:
            raise RegistrationError(
                f"{self.name}: a {kind} is no generator that is known, and has no {missing[0]}()"
            )
        state = self.stream.get_state()
        if not isinstance(state, bytes):
            raise RegistrationError(
                f"{self.name}: {kind}.get_state() must give bytes, gave {type(state).__name__}"
            )

    def get_state(self) -> bytes:
        return bytes(self.stream.get_state())

    def check_state(self, state: bytes) -> None:
        check = getattr(self.stream, "check_state", None)
        if check is not None:
            check(state)

    def set_state(self, state: bytes) -> None:
        self.stream.set_state(state)

    def seed(self, seed: int) -> None:
        seeding = getattr(self.stream, "seed", None) or getattr(self.stream, "manual_seed", None)
        if seeding is None:
            raise StateError(f"{self.name}: a {type(self.stream).__name__} has no seed()")
        seeding(seed)


@functools.cache
def _plugged_in() -> tuple[Room, ...]:
    """Rooms of other packages: entry points named after the library that they serve."""
    found = []
    for entry in importlib.metadata.entry_points(group="nbseed.generators"):
        found.append(Room(entry.name, _Plugin(entry).generators, _Plugin(entry).seed))
    return tuple(found)


@dataclass(frozen=True)
class _Plugin:
    """A callable of another package that returns the library's generators that exist now."""

    entry: importlib.metadata.EntryPoint

    def generators(self) -> list[Generator]:
        try:
            return list(_load(self.entry)())
        except Exception as error:  # a fault of theirs must not take the others along
            warnings.warn(
                f"nbseed: {self.entry.value} is left out ({type(error).__name__}: {error})",
                RuntimeWarning,
                stacklevel=2,
            )
            return []

    def seed(self, seed: int) -> None:
        for generator in self.generators():
            generator.seed(seed)


@functools.cache
def _load(entry: importlib.metadata.EntryPoint) -> Any:
    return entry.load()
