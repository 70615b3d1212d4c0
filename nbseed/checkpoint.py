"""Checkpoint and running cell: a snapshot with what it belongs to, and an execution from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from . import seeding
from .carried import Carried
from .recording import Recording
from .run import Run
from .seeding import Regime
from .snapshot import Restored, Snapshot
from .store import Key, Store


@dataclass
class Checkpoint:
    """A snapshot that belongs to a cell and to the seed that was in force when it was taken."""

    cell: str
    name: str
    regime: Regime | None
    snapshot: Snapshot
    identity: int
    carried: Carried | None = None
    move: int = 0  # seeding.last_move() when the cell last ran
    turn: int = 0  # and how many runs there had been, of all cells
    row: int = 0  # its number in the store, if it is kept there
    seen: int = 0  # the number there of its newest run that is here

    @property
    def seed(self) -> int | None:
        return None if self.regime is None else self.regime.seed


@dataclass
class Cell:
    """The runs of one cell under all seeds."""

    name: str
    runs: deque[Run]
    number: int = 0


@dataclass
class Running:
    """A checkpointed cell while it runs."""

    cell: str
    checkpoint: Checkpoint
    number: int
    recording: Recording
    before: Snapshot | None  # with --isolate: where the generators go back to
    restored: Restored | None  # None for the run that took the checkpoint
    met_other: bool = False
    notes: list[str] = field(default_factory=list)
    stop_arrivals: Callable[[], None] = lambda: None
    store: Store | None = None  # where it is kept beyond the kernel
    awaited: frozenset[str] = frozenset()  # to be rewound when the cell imports their libraries

    @property
    def is_first(self) -> bool:
        return self.restored is None


@dataclass(frozen=True)
class Ended:
    """A run that has ended, and what to say of it.

    Attributes
    ----------
    run
        The run.
    base
        The run to compare with: the first from the same checkpoint that went to its end, else the
        first; None if this is it.
    is_first
        Whether the run took the checkpoint.
    met_other
        Whether the cells before it now leave another state than when the checkpoint was taken.
    """

    run: Run
    base: Run | None
    is_first: bool
    met_other: bool


def bases_of(runs: Iterable[Run]) -> dict[int, Run]:
    """By checkpoint the run to compare with: the first that went to its end, else the first."""
    bases: dict[int, Run] = {}
    for run in runs:
        base = bases.setdefault(run.checkpoint, run)
        if base.status != "ok" and run.status == "ok":
            bases[run.checkpoint] = run
    return bases


def regime_for(cell: str) -> Regime | None:
    """The seed in force, looking past what the cell itself has set when it ran before."""
    regime = seeding.in_force()
    while regime is not None and regime.cell == cell:
        regime = regime.before
    return regime


def key_of(cell: str, regime: Regime | None) -> Key:
    """What a checkpoint of a cell belongs to under a seed."""
    if regime is None:
        return Key(cell)
    return Key(cell, regime.seed, regime.each_cell, regime.pin_entropy)


def regime_of(key: Key) -> Regime | None:
    """The seed that a checkpoint belongs to."""
    if key.seed is None:
        return None
    return Regime(key.seed, each_cell=key.each_cell, pin_entropy=key.pin_entropy)
