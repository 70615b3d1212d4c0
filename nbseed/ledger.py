"""Who moved which generator last, cell by cell, and how far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import draws, generators, seeding
from .draws import Draws

_WORD = re.compile(r"[^\W\d](?:\w|[^\x00-\x7f])*")  # signs of other scripts belong to a name
_BOUND = 10_000_000  # words that are counted at most when somebody asks: a tenth of a second

Listener = Callable[[Sequence[Any]], None]


@dataclass(frozen=True)
class Move:
    """What moved a generator last.

    Attributes
    ----------
    by
        ``[7] train``, or ``between [7] and [8]``.
    before, after
        The states around it.
    known
        How far, where it is known otherwise: a rewound cell began elsewhere.
    seed
        The seed that was set, if one was.
    """

    by: str
    before: bytes
    after: bytes
    known: Draws | None = None
    seed: int | None = None

    def how_far(self, name: str, bound: int = _BOUND) -> str:
        """``640 words``, ``seeded with 3``; a twister's words are counted up to a bound."""
        if self.seed is not None:
            return f"seeded with {self.seed}"
        return str(self.known or draws.count(name, self.before, self.after, bound))


class Ledger:
    """The last move of each generator; one entry a generator, so that nothing grows."""

    def __init__(self) -> None:
        self.moves: dict[str, Move] = {}
        self._met: dict[str, bytes] = {}
        self._left: dict[str, bytes] = {}
        self.last = ""  # the label of the cell that ended last
        self._now = ""
        self._seeding = 0
        self.listeners: list[Listener] = []

    @property
    def running(self) -> bool:
        """Whether a cell runs now."""
        return bool(self._now)

    def enter(self, label: str, text: str) -> None:
        """A cell begins: what moved since the last one, no cell has moved."""
        self._met, self._now, self._seeding = _states(text), label, seeding.last_move()
        where = f"between {self.last} and {label}" if self.last else f"before {label}"
        for name, state in self._met.items():
            if name in self._left and self._left[name] != state:
                self.moves[name] = Move(where, self._left[name], state)

    def leave(self, text: str, known: Mapping[str, Draws]) -> None:
        """The cell has ended; `known` is how far generators went in it from where it was rewound.

        It keeps the label that it came with: the shell has counted on by now.
        """
        self.moves.update(self._moves_in(self._now, text, known))
        self._left, self.last, self._now = {**self._left, **_states(text)}, self._now, ""
        _forget(self._left)
        _forget(self.moves)

    def tell(self, ended: Sequence[Any]) -> None:
        """All is said of a cell: let the listeners know, with the runs that have ended in it."""
        for listener in list(self.listeners):
            listener(ended)

    def acted(self, by: str, seed: int | None = None) -> None:
        """Something between two cells has moved generators: the panel."""
        now = _states(" ".join(self._left))
        for name, state in now.items():
            before = self._left.get(name)
            if before is not None and before != state:
                given = None if name.startswith("user:") else seed
                self.moves[name] = Move(by, before, state, seed=given)
        self._left.update(now)

    def close(self) -> None:
        """Forget all moves and listeners."""
        self.moves.clear()
        self._met, self._left, self.last, self._now = {}, {}, "", ""
        self.listeners.clear()

    def moves_now(self, names: Iterable[str]) -> dict[str, Move]:
        """The moves up to this moment, in the cell that runs too."""
        text = " ".join(name.removeprefix("user:") for name in names)
        inside = self._moves_in(f"{self._now}, this cell", text, {}) if self._now else {}
        return {**self.moves, **inside}

    def _moves_in(self, label: str, text: str, known: Mapping[str, Draws]) -> dict[str, Move]:
        regime = seeding.in_force()
        seeded = seeding.last_move() != self._seeding and regime is not None
        found = {}
        for name, state in _states(text).items():
            before = self._met.get(name, self._left.get(name))
            if name in known and known[name].kind != "still":
                found[name] = Move(label, b"", state, known[name])
            elif before is not None and before != state and name in known:
                found[name] = Move(label, before, state, Draws("rewound"))
            elif before is not None and before != state:
                seed = regime.seed if seeded and regime and not name.startswith("user:") else None
                found[name] = Move(label, before, state, seed=seed)
        return found


def _forget(kept: dict[str, Any], most: int = 1000) -> None:
    """Drop the user's objects that came first, of too many: they are long gone."""
    for name in [name for name in kept if name.startswith("user:")][:-most]:
        del kept[name]


LEDGER = Ledger()


def _states(text: str) -> dict[str, bytes]:
    """The states of all generators, but of the user's objects only those near a cell's names.

    To look at every object before and after each cell would cost a large notebook dearly.
    """
    found = {name: g.get_state() for name, g in generators.existing(()).generators.items()}
    near = generators.near(dict.fromkeys(_WORD.findall(text)))
    found.update((name, generator.get_state()) for name, generator in near.items())
    return found
