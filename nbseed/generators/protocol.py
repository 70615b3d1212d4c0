"""What every generator can do, and what every room of this package offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Generator(Protocol):
    """One stream of random numbers.

    ``get_state`` and ``set_state`` are exact: after ``set_state(get_state())`` every kind of draw
    goes on as it would have. Bytes are little-endian and the same on every machine.
    """

    @property
    def name(self) -> str:
        """What the user sees and types: ``numpy``, ``torch.cuda:0``, ``user:rng``."""

    def get_state(self) -> bytes:
        """A copy of the state, taken without moving it."""

    def check_state(self, state: bytes) -> None:
        """Raise StateError if `state` could not be set; touch nothing."""

    def set_state(self, state: bytes) -> None:
        """Put a checked state in place, so that every alias of the generator sees it."""

    def seed(self, seed: int) -> None:
        """Seed as the library's own seeding call does. `seed` is in 0..2**32 - 1."""


class Room(NamedTuple):
    """One library: asked only after the user has imported it.

    Attributes
    ----------
    library
        The import name that wakes this room.
    generators
        Returns the generators that exist now, without creating any.
    seed
        Seeds them all, bit for bit as the library's own idiom.
    resolve
        Returns a generator for a name that does not exist now but can still be set (a device that
        has started, or not yet started, since the snapshot), else None.
    uncovered
        Returns one sentence for each stream of the library that cannot be captured.
    """

    library: str
    generators: Callable[[], Sequence[Generator]]
    seed: Callable[[int], None]
    resolve: Callable[[str], Generator | None] = lambda name: None
    uncovered: Callable[[], list[str]] = list
