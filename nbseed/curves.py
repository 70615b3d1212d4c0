"""The losses of runs beside the first of them, laid out as data: what agrees, and what parts where.

No picture is made here, so matplotlib is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .outcome import first_difference

if TYPE_CHECKING:
    import numpy as np

    from .run import Run

    Values = np.ndarray[Any, np.dtype[np.float64]]
    Steps = np.ndarray[Any, np.dtype[np.intp]]

ENTRIES = 6
"""Runs that a legend names one by one; more are put together or counted."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One run's values, and where they leave the reference.

    Attributes
    ----------
    run
        The run.
    values
        float64, shape (steps,), steps > 0; the run's own memory.
    base
        The run it parts from; the first one if it does not part.
    parts
        The first step, counted from 0, at which any bit differs, or None.
    """

    run: Run
    values: Values
    base: Run
    parts: int | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs beside the first of them.

    Attributes
    ----------
    metric
        The loss that is compared.
    curves
        The runs that have values of it, in the order given.
    silent
        The runs that have none.
    reference
        The first run's values, carried on past its end by the first longer run that agrees with it:
        an interrupted first run hides no difference between the later ones.
    chain
        The runs the reference is made of.
    """

    metric: str
    curves: tuple[Curve, ...]
    silent: tuple[Run, ...]
    reference: Values
    chain: tuple[Curve, ...]

    @property
    def parting(self) -> list[Curve]:
        """The curves that differ, the earliest first."""
        return sorted(
            (curve for curve in self.curves if curve.parts is not None),
            key=lambda curve: (curve.parts, curve.run.number),
        )

    def named(self, runs: Iterable[Run]) -> str:
        """``run 2``, ``runs 1, 3 and 5 to 9``; with the cells' names if there are several."""
        names = {run.name for run in (*(c.run for c in self.curves), *self.silent)}
        if len(names) > 1:
            return _listed([f"run {run.number} of {run.name}" for run in runs])
        spans: list[list[int]] = []
        for number in sorted({run.number for run in runs}):
            if spans and number == spans[-1][1] + 1:
                spans[-1][1] = number
            else:
                spans.append([number, number])
        said = []
        for low, high in spans:
            pair = [str(low)] if high == low else [str(low), str(high)]
            said += pair if high < low + 2 else [f"{low} to {high}"]
        return f"run{'' if said == [str(spans[0][0])] else 's'} {_listed(said)}"


def compare(runs: Iterable[Run], metric: str = "loss") -> Comparison:
    """Lay the runs' values side by side, bit by bit; ValueError if no run has the metric."""
    import numpy as np

    runs = list(runs)
    if not runs:
        raise ValueError("no runs to overlay: a cell under %%rngcheckpoint records one each time")
    if not any(metric in run.losses for run in runs):
        names = list(dict.fromkeys(name for run in runs for name in run.losses))
        known = f"recorded: {', '.join(names)}" if names else "nothing was recorded"
        raise ValueError(f"no run has the metric {metric!r}; {known}")
    curves: list[Curve] = []
    chain: list[Curve] = []
    silent: list[Run] = []
    reference = np.empty(0)
    for run in runs:
        values = np.asarray(run.losses.get(metric, ()), dtype=np.float64)
        if not len(values):
            silent.append(run)
            continue
        parts = first_difference(reference, values)
        base = next((c.run for c in chain if len(c.values) > (parts or 0)), run)
        curve = Curve(run, values, base, parts)
        curves.append(curve)
        if parts is None and len(values) > len(reference):
            reference = values
            chain.append(curve)
    return Comparison(metric, tuple(curves), tuple(silent), reference, tuple(chain))


def verdict(runs: Iterable[Run], metric: str = "loss") -> str:
    """One sentence: whether the runs are the same, and where they part.

    Examples
    --------
    - ``3 runs, bit-identical``
    - ``2 runs, bit-identical over the common 340 steps``
    - ``runs 1 and 3 part at step 12; 4 more differ``
    """
    return verdict_of(compare(runs, metric))


def verdict_of(comparison: Comparison) -> str:
    curves, parting = comparison.curves, comparison.parting
    if not curves:
        return f"{_count(len(comparison.silent), 'run')}, no {comparison.metric} values"
    runs, lengths = _count(len(curves), "run"), {len(curve.values) for curve in curves}
    if parting:
        first, *others = parting
        said = f"{comparison.named([first.base, first.run])} part at step {first.parts}"
        if others:
            said += f"; {len(others)} more {'differs' if len(others) == 1 else 'differ'}"
    elif len(curves) == 1:
        said = f"{runs}, {_count(min(lengths), 'step')}"
    else:
        said = f"{runs}, bit-identical"
        if len(lengths) > 1:
            said += f" over the common {_count(min(lengths), 'step')}"
    if comparison.silent:
        have = "has" if len(comparison.silent) == 1 else "have"
        said += f"; {comparison.named(comparison.silent)} {have} no {comparison.metric}"
    return said


def decimate(values: Values, width: int) -> tuple[Steps, Values]:
    """The least and the greatest finite value of every `width` steps, where they stand.

    Parameters
    ----------
    values
        float64, shape (steps,).
    width
        Steps a column; 1 keeps every step.

    Returns
    -------
    steps, values
        Arrays of one length, at most two entries a column, in the order of the steps; copies. NaN
        stands for a value, or a whole column, that is not finite: a gap.
    """
    import numpy as np

    if width == 1:
        return np.arange(len(values)), np.where(np.isfinite(values), values, np.nan)
    columns = -(-len(values) // width)
    padded = np.full(columns * width, np.nan)
    padded[: len(values)] = values
    table = padded.reshape(columns, width)
    finite = np.isfinite(table)
    least = np.where(finite, table, np.inf).argmin(axis=1)
    greatest = np.where(finite, table, -np.inf).argmax(axis=1)
    starts = np.arange(columns) * width
    steps = np.unique(np.concatenate([starts + least, starts + greatest]))
    kept = values[steps]
    return steps, np.where(np.isfinite(kept), kept, np.nan)


def outcome_of(curve: Curve) -> tuple[str, str, str]:
    """Seed, start and outcome as the legend says them."""
    run = curve.run
    seed = "no seed" if run.seed is None else f"seed {run.seed}"
    beside = "identical" if curve.parts is None else f"parts at step {curve.parts}"
    return seed, run.start[:8] or "start unknown", f"{run.status}, {beside}"


def legend_rows(comparison: Comparison) -> list[list[int]]:
    """The curves of each row of the legend: one a row, or, of many, those of one outcome."""
    curves = comparison.curves
    if len(curves) <= ENTRIES:
        return [[index] for index in range(len(curves))]
    alike: dict[tuple[str, ...], list[int]] = {}
    for index, curve in enumerate(curves[1:], start=1):
        alike.setdefault(outcome_of(curve), []).append(index)
    earliest = comparison.parting[:1]
    ranked = sorted(
        alike.values(),
        key=lambda row: (curves[row[0]] not in earliest, -len(row), curves[row[0]].parts or 0),
    )
    most = ENTRIES - 1 if len(ranked) > ENTRIES else ENTRIES
    return [[0], *sorted(ranked[:most])]


def non_finite(values: Values) -> list[tuple[str, str, int, Steps]]:
    """What is not finite: word, marker, edge of the axes (0 below, 1 above), and its steps."""
    import numpy as np

    if np.isfinite(values).all():
        return []
    kinds = [
        ("NaN (×)", "x", 0, np.isnan(values)),
        ("inf (▲)", "^", 1, np.isposinf(values)),
        ("-inf (▼)", "v", 0, np.isneginf(values)),
    ]
    return [(w, marker, edge, np.flatnonzero(at)) for w, marker, edge, at in kinds if at.any()]


def gaps_of(values: Values) -> str:
    """The same in words; empty if all are finite."""
    said = []
    for word, _, _, steps in non_finite(values):
        if len(steps) == 1:
            said.append(f"{word} at step {steps[0]}")
        elif steps[0] + len(steps) == len(values):
            said.append(f"{word} from step {steps[0]} on")
        else:
            said.append(f"{len(steps)} {word}, first at step {steps[0]}")
    return "; ".join(said)


def one_per_column(steps: Steps, width: int) -> Steps:
    import numpy as np

    return steps[np.unique(steps // width, return_index=True)[1]]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(words: Sequence[str], most: int = 6) -> str:
    """``a, b and c``."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + [words[-1]])
