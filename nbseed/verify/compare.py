"""What differs between runs of a notebook, cell by cell, and why: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import outcome, report, why
from ..run import Run
from . import outputs
from .execution import Cell, Executed
from .outputs import Parted

SAME, DIFFERS, FOLLOWS, LEFT_OUT = "same", "differs", "follows", "left out"


@dataclass(frozen=True)
class Cause:
    """Why a cell differs: in a few words, with evidence, and what to type against it."""

    said: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True)
class CellVerdict:
    """One cell of a notebook in all runs.

    Attributes
    ----------
    cell
        The cell.
    kind
        ``same``, ``differs``, ``follows`` (it differs, and a cell before it is why), ``left out``.
    differences
        What differs, a sentence each.
    causes
        Why, the likeliest first; of a cell that follows none.
    saved
        How it differs from what the notebook's file holds of it, a sentence each.
    notes
        What was set aside or could not be compared.
    pictures
        Pairs of pictures that differ.
    moved
        The generators that it drew from or set.
    """

    cell: Cell
    kind: str
    differences: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    saved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pictures: tuple[tuple[bytes, bytes], ...] = field(repr=False, default=())
    moved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """A notebook in all its runs.

    Attributes
    ----------
    name
        What it is called.
    runs
        How many there were.
    cells
        Each code cell.
    seed
        The seed that was set before the first cell, or None.
    compared_with_saved
        How many runs of cells were compared with what the file holds.
    """

    name: str
    runs: int
    cells: tuple[CellVerdict, ...]
    seed: int | None = None
    compared_with_saved: int = 0

    @property
    def first(self) -> CellVerdict | None:
        """The first cell that differs between the runs."""
        return next((cell for cell in self.cells if cell.kind in (DIFFERS, FOLLOWS)), None)

    @property
    def first_unlike_saved(self) -> CellVerdict | None:
        """The first cell that differs from what the file holds."""
        return next((cell for cell in self.cells if cell.saved), None)

    @property
    def is_reproducible(self) -> bool:
        return self.first is None and self.first_unlike_saved is None


def judge(
    name: str,
    cells: Sequence[Cell],
    executions: Sequence[Sequence[Executed]],
    seed: int | None = None,
    with_saved: bool = True,
) -> Verdict:
    """What becomes of a notebook whose cells were executed two or more times."""
    known = _Known()
    verdicts, count = [], 0
    for number, cell in enumerate(cells):
        executed = [execution[number] for execution in executions]
        verdict = _of_cell(cell, executed, known)
        if with_saved and not cell.left_out:
            now, then = _reports(executed[0].outputs), _reports(cell.saved)
            count += min(len(now), len(then))
            verdict = _beside_saved(verdict, now, then)
        verdicts.append(verdict)
    return Verdict(name, len(executions), tuple(verdicts), seed, count)


class _Known:
    """What is known above a cell: which generators stood alike, and what differed."""

    def __init__(self) -> None:
        self.alike: set[str] = set()  # generators that once stood in the same state in all runs
        self.told: set[str] = set()  # that were left elsewhere by a cell that differs
        self.variables: set[str] = set()  # assigned by such cells


def _of_cell(cell: Cell, executed: Sequence[Executed], known: _Known) -> CellVerdict:
    if cell.left_out:
        return CellVerdict(cell, LEFT_OUT, notes=(cell.left_out,))
    base = executed[0]
    found: list[str] = []
    parted: list[Parted] = []
    notes: list[str] = []
    elsewhere: list[str] = []
    worst: Executed | None = None
    for number, other in enumerate(executed[1:], 2):
        shown = outputs.compare(base.outputs, other.outputs)
        notes += [f"set aside: {what}" for what in shown.set_aside]
        notes += [f"not compared: {what}" for what in shown.not_compared]
        apart = _apart(base.run, other.run) if base.run and other.run else []
        elsewhere += apart
        sentences = [
            *_of_draws(apart, base.run, other.run),
            *_of_losses(base.run, other.run),
            *(p.said for p in shown.parted),
        ]
        if sentences and worst is None:
            worst, parted = other, list(shown.parted)
            found = sentences if number == 2 else [f"run {number}: {s}" for s in sentences]
    for each in executed:
        if each.unseen:
            notes.append(f"not looked into: {each.unseen}")
    moved = tuple(dict.fromkeys(n for e in executed if e.run for n in _moved(e.run)))
    kind, causes = SAME, tuple[Cause, ...]()
    if worst is not None:
        kind, causes = _why(base.run, worst.run, elsewhere, known, cell)
        known.told |= set(elsewhere)
        if base.run and base.run.observed:
            known.variables |= set(base.run.observed.left.found)
    _learn(known, [e.run for e in executed if e.run])
    return CellVerdict(
        cell,
        kind,
        tuple(found),
        causes,
        notes=tuple(dict.fromkeys(notes)),
        pictures=tuple(p.pictures for p in parted if p.pictures),
        moved=moved,
    )


def _learn(known: _Known, runs: Sequence[Run]) -> None:
    for name, mark in runs[0].ends.items() if runs else ():
        if all(run.ends.get(name) == mark for run in runs):
            known.alike.add(name)


def _moved(run: Run) -> list[str]:
    """The generators that a cell drew from, or set."""
    return [name for name, end in run.ends.items() if run.starts.get(name, end) != end]


def _apart(base: Run, run: Run) -> list[str]:
    """Generators that a cell leaves elsewhere than in the first run, and that it has moved.

    One that no cell draws from is in another state in each process, and nobody minds.
    """
    found = []
    for name in base.ends.keys() & run.ends.keys():
        if base.ends[name] == run.ends[name]:
            continue
        made = name not in base.starts  # what a library brings begins where it came
        if made or name in _moved(base) or name in _moved(run):
            found.append(name)
    return sorted(found)


def _of_draws(apart: Sequence[str], base: Run | None, run: Run | None) -> list[str]:
    if base is None or run is None:
        return []
    said = []
    stood = [n for n in apart if n in base.starts and base.starts[n] != run.starts.get(n)]
    others = [name for name in apart if name not in stood]
    if stood:
        said.append(f"draws from {_list(stood)}, which stood in another state")
    for name in others:
        first, now = (r.observed.draws.get(name) if r.observed else None for r in (base, run))
        if first is not None and now is not None and first != now:
            said.append(f"other draws: {name} {first}, then {now}")
        else:
            said.append(f"{name} ends in another state")
    return said


def _of_losses(base: Run | None, run: Run | None) -> list[str]:
    if base is None or run is None:
        return []
    beside = outcome.compare(base, run)
    said = [
        f"{'losses part' if name == 'loss' else f'{name} parts'} at step {step} "
        f"({first!r}, then {second!r})"
        for name, step, first, second in beside.parted
    ]
    said += [
        f"{name}: {before} values, then {now}" for name, (before, now) in beside.unequal.items()
    ]
    said += [f"{name} was recorded in one run only" for name in beside.lacking]
    return said


def _why(
    base: Run | None, run: Run | None, elsewhere: Iterable[str], known: _Known, cell: Cell
) -> tuple[str, tuple[Cause, ...]]:
    """Whether a cell differs by itself or because of those before it, and why."""
    if base is None or run is None:
        return DIFFERS, ()
    stood = [n for n in elsewhere if n in base.starts and base.starts[n] != run.starts.get(n)]
    unseeded = [name for name in stood if name not in known.alike | known.told]
    if unseeded:
        return DIFFERS, (_unseeded(unseeded, cell),)
    if stood:
        return FOLLOWS, ()
    if base.observed and run.observed:
        before, now = base.observed.met.found, run.observed.met.found
        other = {n for n in now if n in before and now[n].digest != before[n].digest}
        if other & known.variables:
            return FOLLOWS, ()
    found = why.explain(base, run, differs=True)
    causes = [Cause(c.said, c.evidence, c.remedy) for c in found.causes]
    causes = causes or [Cause(said) for said in found.restart] or _looks(base.code)
    return DIFFERS, tuple(causes)


_OF_A_PROCESS = (
    (r"\bhash\(", "hash() of text is another in each process", "`nbseed kernel install`"),
    (r"\bid\(", "id() is another in each process", ""),
    (r"\b(?:perf_counter|monotonic|process_time|time\.time|time_ns)\b|\bnow\(|\btoday\(",
     "the clock", "print no times, or begin the cell with `# nbseed: skip`"),
    (r"\bgetpid\b|\bget_ident\b", "the number of the process", ""),
    (r"\btempfile\b|\bmkdtemp\b|\bmkstemp\b", "the random name of a temporary file", ""),
    (r"\buuid[14]\b|\bsecrets\b|\burandom\b", "entropy that no seed controls", ""),
)  # fmt: skip


def _looks(code: str) -> list[Cause]:
    """What the code mentions that is another in each process: the last that is tried."""
    return [
        Cause(f"perhaps {what}", (), remedy)
        for pattern, what, remedy in _OF_A_PROCESS
        if re.search(pattern, code)
    ]


_SEEDS = {
    "python": "random.seed(3)",
    "numpy": "numpy.random.seed(3)",
    "torch": "torch.manual_seed(3)",
}


def _unseeded(names: Sequence[str], cell: Cell) -> Cause:
    by_hand = [_SEEDS.get(name.partition(".")[0], "") for name in names]
    alone = f", or `{'; '.join(dict.fromkeys(by_hand))}`," if all(by_hand) else ""
    return Cause(
        f"no cell has seeded {_list(names)} before cell {cell.number} draws from "
        f"{'it' if len(names) == 1 else 'them'}",
        ("a new process begins with a state of its own",),
        f"`%load_ext nbseed` and `%seed 3`{alone} in the first cell",
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


# -- what an earlier run has left in the notebook's file -------------------------------------------


def _reports(shown: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The runs that nbseed's own outputs hold."""
    found: list[Mapping[str, Any]] = []
    for output in shown:
        data = output.get("data", {})
        held = data.get(report.MIME) if isinstance(data, Mapping) else None
        if isinstance(held, Mapping) and held.get("version") == report.VERSION:
            runs = held.get("runs")
            if isinstance(runs, list) and all(map(_is_whole, runs)):
                found += runs
    return found


def _is_whole(run: Any) -> bool:
    return isinstance(run, Mapping) and all(
        isinstance(run.get(key), kind)
        for key, kind in (("name", str), ("starts", Mapping), ("ends", Mapping))
    )


def _beside_saved(
    verdict: CellVerdict, now: Sequence[Mapping[str, Any]], then: Sequence[Mapping[str, Any]]
) -> CellVerdict:
    said: list[str] = []
    notes: list[str] = []
    for number, (run, saved) in enumerate(zip(now, then, strict=False), 1):
        what = f"{saved['name']}, run {number}" if len(then) > 1 else saved["name"]
        for verb, key in (("starts", "starts"), ("ends", "ends")):
            other = _unlike(run, saved, key)
            if other:
                marks = [f"{n} (saved {saved[key][n][:8]}, now {run[key][n][:8]})" for n in other]
                said.append(f"{what} {verb} elsewhere than in the saved notebook: {_list(marks)}")
                break  # the end follows from the start
        first, second = (r.get("switches") for r in (saved, run))
        if said and isinstance(first, Mapping) and isinstance(second, Mapping):
            notes += [
                f"saved with {name.removesuffix(' version')} {first[name]}, here {second[name]}"
                for name in first
                if name in second and first[name] != second[name]
            ]
    if then and len(now) < len(then):
        said.append(f"the saved notebook holds {len(then)} runs of it, here there were {len(now)}")
    return CellVerdict(
        verdict.cell,
        verdict.kind,
        verdict.differences,
        verdict.causes,
        tuple(said),
        tuple(dict.fromkeys([*verdict.notes, *notes])),
        verdict.pictures,
        verdict.moved,
    )


def _unlike(run: Mapping[str, Any], saved: Mapping[str, Any], key: str) -> list[str]:
    """Generators that the cell draws from, and that stand elsewhere than they were saved."""

    def moved(of: Mapping[str, Any], name: str) -> bool:
        return bool(of["starts"].get(name) != of["ends"].get(name))

    return sorted(
        name
        for name, mark in saved[key].items()
        if name in run[key]
        and run[key][name] != mark
        and isinstance(mark, str)
        and (moved(run, name) or moved(saved, name))
    )
