"""Checkpoints and runs: the snapshot that a cell starts from, and what became of each execution."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import determinism, rewinding, seeding
from .carried import Carried
from .errors import CheckpointError
from .recording import BUDGET, Recording
from .rewinding import left_out
from .run import Run
from .seeding import Regime
from .snapshot import Restored, Snapshot, restore, snapshot
from .text import Text

MAX_RUNS = 50
"""Runs kept for one cell; those that others of the same checkpoint are compared with stay."""
MAX_CHECKPOINTS = 200
"""Checkpoints kept in all; the one that was used longest ago goes first."""


# The cell, the seed in force, and whether it is each cell's own and feeds unseeded generators too.
Key = tuple[str, int | None, bool, bool]


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


class Checkpoints:
    """All checkpoints and runs in memory, bounded."""

    def __init__(self, max_runs: int = MAX_RUNS, max_checkpoints: int = MAX_CHECKPOINTS) -> None:
        self._bounds = (max_runs, max_checkpoints, BUDGET)
        self.max_runs, self.max_checkpoints, self.budget = self._bounds
        self.cells: dict[str, Cell] = {}
        self.kept: OrderedDict[Key, Checkpoint] = OrderedDict()
        self.latest: str | None = None
        self._identities = itertools.count(1)
        self._turns = 0  # runs of all cells
        self._left_by: tuple[str, int] | None = None  # the cell that ran last, under which seed

    # -- one execution -----------------------------------------------------------------------------

    def begin(
        self,
        cell: str,
        name: str,
        text: Text,
        namespace: MutableMapping[str, Any] | None = None,
        carry: tuple[str, ...] = (),
        reset: bool = False,
        isolate: bool = False,
        probe: bool = False,
    ) -> Running:
        """Take the cell's snapshot or rewind to it; from now on the run is recorded.

        Parameters
        ----------
        cell
            The cell's identity.
        name
            What it is called.
        text
            Its code.
        namespace
            The notebook's variables.
        carry
            Those that are part of the checkpoint.
        probe
            Look for operators without a deterministic kernel.

        Raises
        ------
        CheckpointError
            If a variable cannot be carried or put back; nothing has changed.
        """
        namespace = {} if namespace is None else namespace
        regime = _regime_for(cell)
        key = _key(cell, regime)
        checkpoint = self.kept.get(key)
        before = snapshot() if isolate else None
        notes: list[str] = []
        restored, met_other = None, False
        if checkpoint is None or reset:
            taken = snapshot(text.reads)
            notes += taken.notes
            kept = rewinding.carry(namespace, carry, taken, notes)
            checkpoint = Checkpoint(cell, name, regime, taken, next(self._identities), kept)
            notes += self._keep(key, checkpoint)
        else:
            self.kept.move_to_end(key)
            names = tuple(dict.fromkeys([*text.reads, *rewinding.variables(checkpoint.snapshot)]))
            met_other = self._met_other(checkpoint, names)
            if carry and (checkpoint.carried is None or checkpoint.carried.names != carry):
                kept = rewinding.carry(namespace, carry, snapshot(names), notes)
                checkpoint = replace(checkpoint, identity=next(self._identities), carried=kept)
                self.kept[key] = checkpoint
                notes.append(f"{', '.join(carry)} kept as now, not as the first run met them")
            kept = checkpoint.carried if carry else None
            restored = rewinding.rewind(checkpoint.snapshot, kept, namespace, names)
            notes += left_out(restored)
        self._turns += 1
        record = self.cells.setdefault(cell, Cell(name, deque()))
        record.name, record.number = name, record.number + 1
        recording = Recording(text, namespace, carry, self.budget, probe)
        running = Running(
            cell, checkpoint, record.number, recording, before, restored, met_other, notes
        )
        try:
            running.stop_arrivals = seeding.on_arrival(lambda names: self._arrived(running, names))
            recording.begin()
        except BaseException:
            self.abandon(running)
            raise
        return running

    def end(
        self, running: Running, status: str, error: str | None = None, value: Any = None
    ) -> Ended:
        """Record how a cell ended; with ``--isolate`` the generators go back to before it."""
        running.stop_arrivals()
        recording, checkpoint = running.recording, running.checkpoint
        recording.abandon()
        after = snapshot(recording.text.uses)
        recorder = recording.recorder
        run = Run(
            number=running.number,
            name=checkpoint.name,
            seed=checkpoint.seed,
            values={n: s.values() for n, s in recorder.series.items()},
            start=checkpoint.snapshot.fingerprint,
            end=after.fingerprint,
            status=status,
            starts=dict(checkpoint.snapshot.fingerprints),
            ends=after.fingerprints,
            switches=determinism.switches(),
            error=error,
            notes=tuple(dict.fromkeys([*running.notes, *recorder.notes()])),
            code=recording.text.body,
            checkpoint=checkpoint.identity,
            turn=self._turns,
            partial=running.restored is not None and bool(left_out(running.restored)),
            observed=recording.end(checkpoint.snapshot, after, value),
        )
        # The cell itself may have dropped its checkpoint.
        runs = self.cells.setdefault(running.cell, Cell(checkpoint.name, deque())).runs
        base = _bases(runs).get(run.checkpoint)
        runs.append(run)
        self._trim(runs)
        self.latest = running.cell
        # A seed that the cell itself sets is no news from above.
        checkpoint.move, checkpoint.turn = seeding.last_move(), self._turns
        if running.before is not None:
            restore(running.before, strict=False)
        else:
            self._left_by = (running.cell, seeding.last_move())
        return Ended(run, base, running.is_first, running.met_other)

    def abandon(self, running: Running) -> None:
        """Forget a run whose end cannot be recorded; nothing stays patched."""
        running.recording.abandon()
        running.stop_arrivals()

    def _arrived(self, running: Running, names: list[str]) -> None:
        """A library that the cell imports joins the checkpoint in the state it has right then."""
        running.recording.arrived()
        checkpoint = running.checkpoint
        states = snapshot(()).states
        new = {n: states[n] for n in names if n in states and n not in checkpoint.snapshot.states}
        checkpoint.snapshot = checkpoint.snapshot.joined(new)

    def _met_other(self, checkpoint: Checkpoint, names: tuple[str, ...]) -> bool:
        """Whether what ran above leaves another state than when the checkpoint was taken.

        That can be told only if generators are on a known path since the cell's last run: from a
        seed, or from the rewind of a cell above, one that ran for the first time before this one
        did, if it ran last. Otherwise this cell, one below it, or other code has left them where
        they are.
        """
        seeded = seeding.last_move() != checkpoint.move
        above = list(itertools.takewhile(lambda key: key != checkpoint.cell, self.cells))
        if not seeded and self._left_by not in [(key, seeding.last_move()) for key in above]:
            return False
        met, taken = snapshot(names).fingerprints, checkpoint.snapshot.fingerprints
        # Without a seed cells in between may have been skipped: any state that a cell above has
        # left before will do.
        before = [] if seeded else [run for key in above for run in self.cells[key].runs]
        known = [run for run in before if run.turn <= checkpoint.turn]
        for name in taken.keys() & met.keys():
            if met[name] != taken[name]:
                # An object that no seed reaches is where the last run that used it has left it.
                runs = self.runs() if name.startswith("user:") else known
                if all(run.ends.get(name) != met[name] for run in runs):
                    return True
        return False

    def _keep(self, key: Key, checkpoint: Checkpoint) -> list[str]:
        self.kept[key] = checkpoint
        self.kept.move_to_end(key)
        notes = []
        while len(self.kept) > max(1, self.max_checkpoints):
            _, dropped = self.kept.popitem(last=False)
            notes.append(
                f"the checkpoint of {dropped.name} was dropped: {self.max_checkpoints} are kept"
            )
            if not any(other.cell == dropped.cell for other in self.kept.values()):
                del self.cells[dropped.cell]
        return notes

    def _trim(self, runs: deque[Run]) -> None:
        """Keep the newest runs, and those that runs of a kept checkpoint are compared with."""
        kept = {checkpoint.identity for checkpoint in self.kept.values()}
        while len(runs) > max(2, self.max_runs):
            bases = [run for identity, run in _bases(runs).items() if identity in kept]
            older = enumerate(itertools.islice(runs, len(runs) - 1))
            del runs[next((i for i, run in older if all(run is not base for base in bases)), 0)]

    # -- without a run -----------------------------------------------------------------------------

    def take(self, cell: str, name: str) -> tuple[Snapshot, list[str]]:
        """Take a cell's snapshot here, without a run; returns it, and what to say of it."""
        regime = _regime_for(cell)
        taken = snapshot()
        checkpoint = Checkpoint(cell, name, regime, taken, next(self._identities))
        self.cells.setdefault(cell, Cell(name, deque()))
        checkpoint.move, checkpoint.turn = seeding.last_move(), self._turns
        return taken, [*taken.notes, *self._keep(_key(cell, regime), checkpoint)]

    def keep(self) -> Callable[[], None]:
        """A call that brings back what is dropped or taken anew from now on."""
        cells, kept, latest = dict(self.cells), dict(self.kept), self.latest

        def go_back() -> None:
            self.cells = {**cells, **self.cells}
            self.kept = OrderedDict({**self.kept, **kept})
            self.latest = self.latest or latest

        return go_back

    # -- looking ---------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of the cells that have checkpoints or runs, oldest first."""
        return list(dict.fromkeys(cell.name for cell in self.cells.values()))

    def runs(self, name: str | None = None) -> list[Run]:
        """The kept runs of one cell, or of all, oldest first."""
        if name is None:
            return [run for cell in self.cells.values() for run in cell.runs]
        self._check(name)
        return [run for cell in self.cells.values() if cell.name == name for run in cell.runs]

    def pair(self, name: str) -> tuple[Run | None, Run]:
        """A cell's last run, and the one to compare it with: None if it is the first.

        Raises
        ------
        CheckpointError
            If no cell has that name, or it has not run.
        """
        runs = self.runs(name)
        if not runs:
            raise CheckpointError(f"{name} has not run to an end yet")
        run = max(runs, key=lambda run: run.turn)
        before = itertools.takewhile(lambda r: r is not run, runs)
        return _bases(before).get(run.checkpoint), run

    def latest_name(self) -> str:
        """The name of the cell that ran last; CheckpointError if none has run."""
        if self.latest is None or self.latest not in self.cells:
            raise CheckpointError("no checkpointed cell has run; %%rngcheckpoint makes a cell one")
        return self.cells[self.latest].name

    def find(self, name: str) -> Checkpoint:
        """The newest checkpoint of a cell, that of the seed in force if there is one."""
        self._check(name)
        found = [c for c in self.kept.values() if c.name == name]
        if not found:
            raise CheckpointError(f"{name} has runs, but no checkpoint")
        regime = seeding.in_force()
        fitting = [c for c in found if c.seed == (regime.seed if regime else None)]
        return (fitting or found)[-1]

    def drop(self, name: str) -> int:
        """Forget a cell's checkpoints and runs; returns how many checkpoints there were."""
        self._check(name)
        keys = [key for key, checkpoint in self.kept.items() if checkpoint.name == name]
        for key in keys:
            del self.kept[key]
        for cell in [key for key, cell in self.cells.items() if cell.name == name]:
            del self.cells[cell]
        return len(keys)

    def clear(self) -> None:
        """Forget everything, and the bounds that were set."""
        self.max_runs, self.max_checkpoints, self.budget = self._bounds
        self.cells.clear()
        self.kept.clear()
        self.latest = None

    def _check(self, name: str) -> None:
        if name not in self.names():
            known = ", ".join(self.names()) or "none yet"
            raise CheckpointError(f"no checkpoint is called {name!r}; there are: {known}")


def _bases(runs: Iterable[Run]) -> dict[int, Run]:
    """By checkpoint the run to compare with: the first that went to its end, else the first."""
    bases: dict[int, Run] = {}
    for run in runs:
        base = bases.setdefault(run.checkpoint, run)
        if base.status != "ok" and run.status == "ok":
            bases[run.checkpoint] = run
    return bases


def _regime_for(cell: str) -> Regime | None:
    """The seed in force, looking past what the cell itself has set when it ran before."""
    regime = seeding.in_force()
    while regime is not None and regime.cell == cell:
        regime = regime.before
    return regime


def _key(cell: str, regime: Regime | None) -> Key:
    if regime is None:
        return (cell, None, False, False)
    return (cell, regime.seed, regime.each_cell, regime.pin_entropy)


CHECKPOINTS = Checkpoints()


def runs(name: str | None = None) -> list[Run]:
    """The runs of checkpointed cells, oldest first.

    Parameters
    ----------
    name
        Of one cell; by default of all.

    Raises
    ------
    CheckpointError
        If no cell has that name.
    """
    return CHECKPOINTS.runs(name)
