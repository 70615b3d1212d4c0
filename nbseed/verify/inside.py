"""In the notebook's kernel: what a cell meets, draws and leaves, as text for the other side.

The calls come as expressions of silent requests before and after each cell, so that nothing enters
the notebook's variables, its history or its count of cells; no library is imported by them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from IPython.core.getipython import get_ipython

from .. import archive, cells, determinism, generators, seeding
from ..recording import Recording
from ..run import Run
from ..snapshot import Snapshot, snapshot
from ..text import parsed, text_of

_BUDGET = 1.0  # seconds for reading variables: nobody waits for this cell


class _Watched:
    """A cell that runs: the states that it began with, and what is seen of it."""

    def __init__(self, shell: Any, text: str) -> None:
        generators.look_into(shell.user_ns)  # the notebook may have loaded nbseed, or unloaded it
        body = cells.body_of(text)
        transform: Callable[[str], str] = shell.transform_cell
        of_cell = text_of(text, body, parsed(body, transform), transform, shell.user_ns)
        self.taken = snapshot()
        self.recording = Recording(of_cell, shell.user_ns, budget=_BUDGET)
        self.stop_arrivals = seeding.on_arrival(self._arrived)
        self.recording.begin()

    def _arrived(self, names: list[str]) -> None:
        """A library has come with the state that it has right then."""
        self.recording.arrived()
        states = snapshot(()).states
        new = {n: states[n] for n in names if n in states and n not in self.taken.states}
        self.taken = self.taken.joined(new)

    def end(self) -> Run:
        self.stop_arrivals()
        after: Snapshot = snapshot()
        recorder = self.recording.recorder
        self.recording.abandon()
        return Run(
            number=1,
            name="cell",
            seed=None,
            values={name: series.values() for name, series in recorder.series.items()},
            start=self.taken.fingerprint,
            end=after.fingerprint,
            status="ok",
            starts=dict(self.taken.fingerprints),
            ends=after.fingerprints,
            switches=determinism.switches(),
            notes=tuple(dict.fromkeys([*after.notes, *recorder.notes()])),
            code=self.recording.text.body,
            observed=self.recording.end(self.taken, after),
        )


_watched: _Watched | None = None


def seed(number: int) -> str:
    """Seed every generator before the first cell; returns ""."""
    seeding.seed(number)
    return ""


def before(text: str) -> str:
    """A cell begins; returns ""."""
    global _watched
    _watched = None
    _watched = _Watched(get_ipython(), text)
    return ""


def after() -> str:
    """The cell has ended: its run as JSON, with the recorded values in base64."""
    global _watched
    if _watched is None:
        return ""
    watched, _watched = _watched, None
    run = watched.end()
    values = {
        name: base64.b64encode(archive.doubles(numbers)).decode()
        for name, numbers in run.values.items()
    }
    return json.dumps({"run": archive.dump(run), "values": values})


def load(text: str) -> Run | None:
    """On the other side: the run that `after` made the text of; None if it saw none."""
    if not text:
        return None
    found = json.loads(text)
    return archive.load(
        found["run"],
        {
            name: archive.from_doubles(base64.b64decode(data))
            for name, data in found["values"].items()
        },
    )
