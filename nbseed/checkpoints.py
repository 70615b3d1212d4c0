"""Checkpoints and runs: the snapshot that a cell starts from, and what became of each execution."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import Any

from . import determinism, generators, rewinding, seeding
from .checkpoint import (
    Cell,
    Checkpoint,
    Ended,
    Running,
    bases_of,
    key_of,
    regime_for,
    regime_of,
)
from .errors import CheckpointError, FileError
from .recording import BUDGET, Recording
from .rewinding import left_out
from .run import Run, Runs
from .snapshot import Snapshot, restore, snapshot
from .store import Kept, Key, Store
from .text import Text

MAX_RUNS = 50
"""Runs kept for one cell; those that others of the same checkpoint are compared with stay."""
MAX_CHECKPOINTS = 200
"""Checkpoints kept in all; the one that was used longest ago goes first."""


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
        self.store = Store()

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
        keep: bool = False,
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
        keep
            Go on from what the store has of the cell, and keep the run there.

        Raises
        ------
        CheckpointError
            If a variable cannot be carried or put back; nothing has changed.
        """
        namespace = {} if namespace is None else namespace
        regime = regime_for(cell)
        key = key_of(cell, regime)
        before = snapshot() if isolate else None
        notes: list[str] = []
        store = self._recalled(name, key, reset, notes) if keep else None
        checkpoint = self.kept.get(key)
        restored, met_other, awaited = None, False, frozenset[str]()
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
            awaited = frozenset(filter(generators.can_arrive, restored.missing))
            missing = tuple(name for name in restored.missing if name not in awaited)
            restored = replace(restored, missing=missing)
            notes += left_out(restored)
        self._turns += 1
        record = self.cells.setdefault(cell, Cell(name, deque()))
        record.name, record.number = name, record.number + 1
        recording = Recording(text, namespace, carry, self.budget, probe)
        running = Running(
            cell,
            checkpoint,
            record.number,
            recording,
            before,
            restored,
            met_other,
            notes,
            store=store,
            awaited=awaited,
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
        if running.store is not None:
            run = self._stored(running.store, running.cell, checkpoint, run)
        # The cell itself may have dropped its checkpoint.
        runs = self.cells.setdefault(running.cell, Cell(checkpoint.name, deque())).runs
        base = bases_of(runs).get(run.checkpoint)
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
        libraries = {name.partition(".")[0] for name in names}
        back = [name for name in running.awaited if name.partition(".")[0] in libraries]
        if back:
            done = restore(checkpoint.snapshot.only(back), strict=False, names=())
            running.notes += left_out(replace(done, uncovered=()))
            running.awaited -= set(back)
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
            bases = [run for identity, run in bases_of(runs).items() if identity in kept]
            older = enumerate(itertools.islice(runs, len(runs) - 1))
            del runs[next((i for i, run in older if all(run is not base for base in bases)), 0)]

    # -- beyond the kernel -------------------------------------------------------------------------

    def recall(self, name: str | None = None) -> None:
        """Take in what the store has of a cell's name, or of all, and is not here yet.

        Raises
        ------
        FileError
            If the store cannot be read; what is here stays.
        """
        for each in [name] if name is not None else self.store.names():
            for kept in self.store.checkpoints(each):
                self._take_in(kept)

    def _take_in(self, kept: Kept) -> None:
        here = self.kept.get(kept.key)
        if here is None or here.row != kept.row:
            if here is not None and here.row > kept.row:
                return
            regime = regime_of(kept.key)
            here = Checkpoint(
                kept.key.cell, kept.name, regime, Snapshot.of(kept.snapshot), next(self._identities)
            )
            # Where a seed leads to now can be compared with where it led then.
            here.move = seeding.last_move() if regime is None else -1
            here.row = kept.row
            self._keep(kept.key, here)
        cell = self.cells.setdefault(kept.key.cell, Cell(kept.name, deque()))
        for number, run in self.store.runs(kept.row, here.seen, max(2, self.max_runs)):
            self._turns += 1
            run = replace(run, checkpoint=here.identity, turn=self._turns)
            cell.runs.append(run)
            cell.number = max(cell.number, run.number)
            here.seen, here.turn = number, self._turns
        self._trim(cell.runs)

    def _recalled(self, name: str, key: Key, reset: bool, notes: list[str]) -> Store | None:
        """The store, once what it has of a cell is here; None, and a note, if it cannot be read."""
        before = self.kept.get(key)
        try:
            self.recall(name)
        except FileError as error:
            notes.append(f"this run is kept in memory only: {error}")
            return None
        here = self.kept.get(key)
        if here is not None and here is not before and not reset:
            kept = sum(run.checkpoint == here.identity for run in self.cells[here.cell].runs)
            runs = "1 run" if kept == 1 else f"{kept} runs"
            notes.append(f"the checkpoint and {runs} come from {self.store.path}")
            notes += here.snapshot.notes
        return self.store

    def _stored(self, store: Store, cell: str, checkpoint: Checkpoint, run: Run) -> Run:
        """Keep a run and its checkpoint on disk; returns the run, with a note if that failed."""
        key = key_of(cell, checkpoint.regime)
        kept = checkpoint.snapshot.to_store(checkpoint.seed)
        first = not checkpoint.row
        try:
            checkpoint.row, checkpoint.seen = store.add(
                key, checkpoint.name, kept, run, checkpoint.row
            )
        except FileError as error:
            return replace(run, notes=(*run.notes, f"this run is kept in memory only: {error}"))
        if first:
            beside = (
                f", without {', '.join(checkpoint.carried.names)}" if checkpoint.carried else ""
            )
            return replace(run, notes=(*run.notes, f"kept in {store.path}{beside}"))
        return run

    # -- without a run -----------------------------------------------------------------------------

    def take(self, cell: str, name: str) -> tuple[Snapshot, list[str]]:
        """Take a cell's snapshot here, without a run; returns it, and what to say of it."""
        regime = regime_for(cell)
        taken = snapshot()
        checkpoint = Checkpoint(cell, name, regime, taken, next(self._identities))
        self.cells.setdefault(cell, Cell(name, deque()))
        checkpoint.move, checkpoint.turn = seeding.last_move(), self._turns
        return taken, [*taken.notes, *self._keep(key_of(cell, regime), checkpoint)]

    def keep(self) -> Callable[[], None]:
        """A call that brings back what is dropped or taken anew from now on."""
        cells, kept, latest = dict(self.cells), dict(self.kept), self.latest

        def go_back() -> None:
            dropped = [key for key, here in kept.items() if here.row and key not in self.kept]
            self.cells = {**cells, **self.cells}
            self.kept = OrderedDict({**self.kept, **kept})
            self.latest = self.latest or latest
            for key in dropped:
                here = self.kept[key]
                for run in self.cells[key.cell].runs:
                    if run.checkpoint == here.identity:
                        self._stored(self.store, key.cell, here, run)

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
        return bases_of(before).get(run.checkpoint), run

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

    def drop(self, name: str) -> tuple[int, int]:
        """Forget a cell's checkpoints and runs; returns how many checkpoints were here and on disk.

        Raises
        ------
        CheckpointError
            If no cell has that name.
        FileError
            If they cannot be taken out of the store; they are still there then.
        """
        self._check(name)
        kept = self.store.drop(name)
        keys = [key for key, checkpoint in self.kept.items() if checkpoint.name == name]
        for key in keys:
            del self.kept[key]
        for cell in [key for key, cell in self.cells.items() if cell.name == name]:
            del self.cells[cell]
        return len(keys), kept

    def clear(self) -> None:
        """Forget everything, and the bounds that were set."""
        self.max_runs, self.max_checkpoints, self.budget = self._bounds
        self.cells.clear()
        self.kept.clear()
        self.latest = None
        self.store = Store()

    def _check(self, name: str) -> None:
        if name not in self.names():
            self.recall(name)
        if name not in self.names():
            known = ", ".join(self.names()) or "none yet"
            raise CheckpointError(f"no checkpoint is called {name!r}; there are: {known}")


CHECKPOINTS = Checkpoints()


def runs(name: str | None = None) -> Runs:
    """The runs of checkpointed cells, oldest first; those that were kept on disk too.

    Parameters
    ----------
    name
        Of one cell; by default of all.

    Raises
    ------
    CheckpointError
        If no cell has that name.
    FileError
        If there is a store, and it cannot be read.
    """
    CHECKPOINTS.recall(name)
    return Runs(CHECKPOINTS.runs(name))
