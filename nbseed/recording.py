"""What is observed of a run from its beginning to its end, beside the states of the generators."""

from __future__ import annotations

import time
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from . import content, determinism, generators, losses, signs, watch
from .content import Contents
from .draws import Draws, count
from .inputs import own_modules, reached, sources
from .probe import Probe
from .snapshot import Snapshot
from .surroundings import surroundings
from .text import Text
from .unreached import processes_alive, unreached

BUDGET = 0.05
"""Seconds for comparing variables in one run, half before the cell and half after it."""

VALUE = "the cell's value"
"""Under this name the value of a cell's last expression is compared."""


@dataclass(frozen=True)
class Observed:
    """What a run was seen to meet, call and leave.

    Attributes
    ----------
    source
        The cell's body as Python, on the cell's own lines.
    functions
        The text of the notebook's functions that it reaches, by name.
    met, left
        What the variables held that it reads, before it ran, and those it assigns, after it.
    calls
        Entropy taken, seeds set, processes and threads started.
    draws
        How far each generator went.
    since
        How far a generator went since the cell itself has seeded it, as it ended on that path: by
        name, the seed and the distance.
    unreached
        What no rewind reaches, by the path to it.
    around
        Files, folders and environment variables that the code names: a digest or value by name.
    alive
        Worker processes that lived before the cell began.
    switches
        Threads, default dtype, flags and versions, as they were when it began.
    carried
        Variables that were put back before it ran.
    operators
        Operators without a deterministic kernel, if the run looked for them.
    """

    source: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    met: Contents = field(default_factory=lambda: Contents({}, {}))
    left: Contents = field(default_factory=lambda: Contents({}, {}))
    calls: tuple[watch.Call, ...] = ()
    draws: Mapping[str, Draws] = field(default_factory=dict)
    since: Mapping[str, tuple[str, Draws]] = field(default_factory=dict)
    unreached: Mapping[str, str] = field(default_factory=dict)
    around: Mapping[str, str] = field(default_factory=dict)
    alive: tuple[str, ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    operators: tuple[str, ...] | None = None


class Recording:
    """A run under observation: `begin` when the generators stand ready, then `end` or `abandon`."""

    def __init__(
        self,
        text: Text,
        namespace: MutableMapping[str, Any],
        carried: tuple[str, ...] = (),
        budget: float = BUDGET,
        probe: bool = False,
    ) -> None:
        self.text, self.namespace, self.carried, self.budget = text, namespace, carried, budget
        self.recorder = losses.Recorder(text.tracked)
        self.names = reached(namespace, text.reads)
        self.watch = watch.Watch(namespace, self.names)
        self.probe = Probe() if probe else None
        self.operators: tuple[str, ...] | None = None
        self._before: dict[str, Any] = {}
        self._began = 0.0

    def begin(self) -> None:
        """Note what the cell meets; from now on its losses and calls are seen."""
        functions = sources(self.namespace, self.names)
        texts = [self.text.source, *functions.values()]
        modules = own_modules(self.namespace, self.names)
        everything = {**self.namespace, **modules}
        self._before = {
            "functions": functions,
            "met": content.read(everything, [*self.names, *modules], self.budget / 2),
            "around": surroundings(texts, self.namespace, self.names),
            "unreached": unreached(self.namespace, self.names),
            "alive": processes_alive(),
            "switches": determinism.switches(),
        }
        losses.begin(self.recorder)
        watch.begin(self.watch)
        if self.probe is not None:
            self.probe.begin()
        self._began = time.perf_counter()

    def arrived(self) -> None:
        """A library has been imported: what it offers is seen from now on."""
        losses.patch()
        watch.patch()

    def end(self, before: Snapshot, after: Snapshot, value: Any = None) -> Observed:
        """What was seen; nothing stays patched.

        Parameters
        ----------
        value
            The cell's own: of its last expression.
        """
        took = time.perf_counter() - self._began
        self.abandon()
        calls = self.watch.calls()
        measures = signs.signs(self.text.source).measures
        names = [n for n in self.text.assigns if n not in measures and n.strip("_")]
        timed = {n: "a measured time" for n in self.text.assigns if n in measures}
        namespace = self.namespace
        if value is not None:
            namespace, names = {**namespace, VALUE: value}, [*names, VALUE]
        return Observed(
            source=self.text.source,
            calls=calls,
            left=_but(content.read(namespace, names, self.budget / 2), timed),
            draws=self._drawn(before, after, _bound(took)),
            since=_since(calls, after, _bound(took)),
            carried=self.carried,
            operators=self.operators,
            **self._before,
        )

    def _drawn(self, before: Snapshot, after: Snapshot, bound: int) -> dict[str, Draws]:
        """How far each generator went; one that was seen to be re-seeded needs no longer walk."""
        reseeded = {call.stream for call in self.watch.calls()}
        return {
            name: Draws("re-seeded") if name in reseeded and far.kind == "beyond" else far
            for name, far in drawn(before, after, bound).items()
        }

    def abandon(self) -> None:
        """See no more."""
        if self.probe is not None:
            self.operators = self.probe.end() if self.operators is None else self.operators
        watch.end(self.watch)
        losses.end(self.recorder)


def _but(contents: Contents, left_out: Mapping[str, str]) -> Contents:
    return Contents(contents.found, {**contents.left_out, **left_out})


def drawn(before: Snapshot, after: Snapshot, bound: int) -> dict[str, Draws]:
    """How far each generator went from one snapshot to another."""
    return {
        name: count(name, before.states[name], state, bound)
        for name, state in after.states.items()
        if name in before.states
    }


def _since(
    calls: tuple[watch.Call, ...], after: Snapshot, bound: int
) -> dict[str, tuple[str, Draws]]:
    own = {c.stream: c.last for c in calls if c.kind == "seed" and not c.site.through}
    found = {}
    for stream, last in own.items():
        name = "torch.cpu" if stream == "torch" else stream
        start = generators.seeded(stream, int(last)) if last.isdigit() else None
        if start is None or name not in after.states:
            continue
        far = count(name, start, after.states[name], bound)
        if far.kind in ("drawn", "still"):
            found[name] = (last, far)
    return found


def _bound(seconds: float) -> int:
    """Words that are counted at most: a power of ten that costs about 2% of what the cell took.

    A word costs 20 ns, and where no path is found 50 ns.
    """
    steps = (10**7, 10**6, 10**5)
    return next((words for words in steps if words * 5e-8 <= 0.02 * seconds), 10**4)
