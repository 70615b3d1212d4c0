"""The losses of a cell's runs in one figure: whether they are the same, and where they part.

`compare` and `decimate` lay the data out and `verdict` says it in a sentence, without matplotlib;
`overlay` draws.
"""

from __future__ import annotations

import functools
import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .report import first_difference

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

    from .checkpoints import Run

    Values = np.ndarray[Any, np.dtype[np.float64]]
    Steps = np.ndarray[Any, np.dtype[np.intp]]

_COLUMNS = 2000  # more than a screen has pixels for
_ENTRIES = 6  # runs that the legend names one by one; more are put together or counted
_LABEL = "nbseed: difference"  # marks our axes, so that a second overlay finds them

# Okabe and Ito's colours without yellow and black: told apart by colour-blind eyes, seen on white
# and on black. Widths and dashes say the same in grey. The first run takes the theme's own colour.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_WIDTHS = (2.4, 1.7, 1.3, 1.0, 0.7)  # within each other where curves coincide
_ENDS = {"interrupted": "s", "error": "P"}


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
    return _verdict(compare(runs, metric))


def _verdict(comparison: Comparison) -> str:
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


def overlay(
    runs: Iterable[Run],
    ax: Axes | None = None,
    *,
    metric: str = "loss",
    last: int | None = None,
    log: bool = False,
) -> Axes:
    """Draw the runs of a cell over each other, and below it how far each is from the first.

    Curves that coincide lie within each other, the first one widest and palest. A dotted line marks
    the first step at which any bit differs. Squares end interrupted runs, crosses failed ones.

    Parameters
    ----------
    runs
        Runs of one cell, or of several.
    ax
        Where to draw. Its place is shared with the difference; a legend and a title are set.
        Without it a new figure is made, which pyplot knows of only if the backend has windows.
    metric
        Which of the recorded losses.
    last
        Show only as many steps at the end of the longest run. All steps are compared.
    log
        A logarithmic axis; symlog if values at or below 0 are to be seen.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the curves.

    Raises
    ------
    ValueError
        No runs, no run with that metric, or `last` below 1.
    """
    if last is not None and (isinstance(last, bool) or not hasattr(last, "__index__") or last < 1):
        raise ValueError(f"last is the number of steps to show, 1 or more; got {last!r}")
    return _Drawing(compare(runs, metric), last).draw(ax, log)


def as_png(ax: Axes) -> bytes:
    """The figure that `ax` stands in as PNG, under the user's ``savefig`` settings."""
    buffer = io.BytesIO()
    ax.figure.canvas.figure.savefig(buffer, format="png")  # of a subfigure, too
    return buffer.getvalue()


class _Drawing:
    """One figure in the making: which steps are shown, and how each run looks."""

    def __init__(self, comparison: Comparison, last: int | None) -> None:
        self.comparison, self.last = comparison, last
        longest = max((len(curve.values) for curve in comparison.curves), default=0)
        self.start = 0 if last is None else max(0, longest - last)
        self.shown = longest - self.start
        self.width = 1 if self.shown <= 2 * _COLUMNS else -(-self.shown // _COLUMNS)
        self.rows = _rows(comparison)
        self.styles = self._styles()
        # Of curves that are equal in bits and in looks, one is drawn: no pixel would differ.
        self.drawn: dict[tuple[Any, ...], tuple[Curve, dict[str, Any]]] = {}
        for curve, style in zip(comparison.curves, self.styles, strict=True):
            bits = len(curve.values) if curve.parts is None else curve
            self.drawn.setdefault((bits, id(style), curve.run.status), (curve, style))

    def _styles(self) -> list[dict[str, Any]]:
        """How to draw each curve: one look a row of the legend, and one for those it counts."""
        from matplotlib import rcParams

        unit = rcParams["lines.linewidth"] * (1 if self.shown <= 300 else 0.6)
        plain = {"color": rcParams["text.color"], "linestyle": "-"}
        rest = plain | {"alpha": 0.5, "linewidth": 0.5 * unit, "zorder": 2.1}
        styles: list[dict[str, Any]] = [rest for _ in self.comparison.curves]
        for rank, row in enumerate(self.rows):
            turn = rank - 1
            look = {
                "color": _COLOURS[turn % len(_COLOURS)],
                "linewidth": _WIDTHS[min(turn, len(_WIDTHS) - 1)] * unit,
                # Dashes cannot be told on a band of minima and maxima, and are slow there.
                "linestyle": _DASHES[turn % len(_DASHES)] if self.width == 1 else "-",
                "zorder": 2.2 + rank / 100,
            }
            if rank == 0:
                several = len(self.comparison.curves) > 1
                thick = {"alpha": 0.3, "linewidth": 5 * unit} if several else {"linewidth": unit}
                look = plain | thick | {"zorder": 2.0}
            for index in row:
                styles[index] = look
        return styles

    def draw(self, ax: Axes | None, log: bool) -> Axes:
        from matplotlib.ticker import MaxNLocator

        comparison, own = self.comparison, ax is None
        two = len(comparison.curves) > 1
        ax, below = _new_axes(two) if ax is None else (ax, _axes_below(ax) if two else None)
        for curve, style in self.drawn.values():
            self._draw_curve(ax, curve, style)
        notes = self._notes()
        if log:
            notes += _log_axis(ax, [curve.values[self.start :] for curve in comparison.curves])
        if below is not None:
            self._draw_differences(below)
            self._mark_parting(ax, below)
            ax.tick_params(labelbottom=False)
            ax.figure.align_ylabels([ax, below])
            ax.figure.sca(ax)  # what the user draws next is not meant for the difference
        if not comparison.curves:
            _say(ax, f"no {comparison.metric} values")
        ax.set_ylabel(comparison.metric, parse_math=False)
        bottom = below or ax
        bottom.set_xlabel("step")
        bottom.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        if self.shown == 1:
            ax.set_xlim(self.start - 1, self.start + 1)
        ax.set_title(_verdict(comparison), wrap=True, parse_math=False)
        self._legend(ax, notes, own)
        return ax

    def _draw_curve(self, ax: Axes, curve: Curve, style: dict[str, Any]) -> None:
        values = curve.values[self.start :]
        if not len(values):
            return
        self._plot(ax, values, style)
        if curve.run.status in _ENDS:
            self._mark(ax, [len(values) - 1], [values[-1]], style, _ENDS[curve.run.status])
        edges = ax.get_xaxis_transform()  # steps across, the axes' height upwards
        row = 0.03 * (1 + self.comparison.curves.index(curve) % _ENTRIES)
        for _, marker, height, found in _non_finite(values):
            steps = _one_per_column(found, self.width)
            self._mark(ax, steps, [abs(height - row)] * len(steps), style, marker, transform=edges)
            ax.margins(y=0.2)  # keeps the curves clear of the marks

    def _plot(self, ax: Axes, values: Values, style: dict[str, Any]) -> None:
        """A line, and a dot for each value that stands alone."""
        import numpy as np

        steps, kept = decimate(values, self.width)
        there = np.concatenate([[False], np.isfinite(kept), [False]])
        alone = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])
        ax.plot(steps + self.start, kept, **style | _dots(style, alone.tolist()))

    def _mark(
        self, ax: Axes, steps: Any, at: Any, style: dict[str, Any], marker: str, **more: Any
    ) -> None:
        look = style | {"linestyle": "none", "marker": marker, "alpha": 1, "markersize": 5} | more
        ax.plot([step + self.start for step in steps], at, **look)

    def _draw_differences(self, below: Axes) -> None:
        import numpy as np

        sizes: list[float] = []
        low = high = 0.0
        for curve, style in self.drawn.values():
            values = curve.values[self.start :]
            reference = self.comparison.reference[self.start :][: len(values)]
            values = values[: len(reference)]
            if not len(values):
                continue
            if curve.parts is None:
                ends = [self.start, self.start + len(values) - 1]
                below.plot(ends, [0, 0], **style | _dots(style, [0] if len(values) == 1 else []))
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                apart = values - reference
            size = apart[np.isfinite(apart) & (apart != 0)]
            if len(size):
                low, high = min(low, float(size.min())), max(high, float(size.max()))
                sizes.append(np.abs(size).min())
            self._plot(below, apart, style)
            if curve.parts >= self.start:
                step = curve.parts - self.start
                at = apart[step] if np.isfinite(apart[step]) else 0
                self._mark(below, [step], [at], style, "D", alpha=style.get("alpha", 1))
        if not self.comparison.parting:
            below.set(ylim=(-1, 1), yticks=[0])
            _say(below, "no bit differs")
        elif sizes:
            _symlog(below, low, high, max(min(sizes), max(high, -low) * 1e-18))
            tops = {0.0, -_decade(-low) if low else 0.0, _decade(high) if high else 0.0}
            below.set_yticks(sorted(tops))  # all decades would not fit
            below.set_yticks([], minor=True)
        else:  # only signs of zero or bits of NaN
            below.set(ylim=(-1, 1), yticks=[0])
        below.set_ylabel(f"minus\n{self._first}", fontsize="small", parse_math=False)

    def _mark_parting(self, ax: Axes, below: Axes) -> None:
        from matplotlib import rcParams
        from matplotlib.patheffects import withStroke

        parting = self.comparison.parting
        if not parting or parting[0].parts is None or parting[0].parts < self.start:
            return
        step = parting[0].parts
        for axes in (ax, below):
            axes.axvline(step, color=rcParams["text.color"], linestyle=":", linewidth=1, zorder=3)
        left = step > self.start + 0.2 * self.shown  # there all differences are 0
        below.annotate(
            f"step {step}",
            (step, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if left else 4, -3),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            fontsize="small",
            path_effects=[withStroke(linewidth=3, foreground=below.get_facecolor())],
        )

    def _notes(self) -> list[str]:
        """What the figure does not show as it is, a line each."""
        comparison, curves = self.comparison, self.comparison.curves
        of: dict[str, list[Run]] = {}
        for curve in curves:
            texts = [gaps] if (gaps := _gaps(curve.values)) else []
            if len(curve.values) <= self.start:
                texts.append(f"no step among the last {self.last}")
            if curve.run.start != curves[0].run.start:
                texts.append(f"not from the start of {comparison.named([curves[0].run])}")
            for text in texts:
                of.setdefault(text, []).append(curve.run)
        said = [f"{comparison.named(runs)}: {text}" for text, runs in of.items()]
        if len(said) > _ENTRIES:
            said[_ENTRIES - 1 :] = [f"{len(said) - _ENTRIES + 1} more such notes"]
        parts = [curve.parts for curve in comparison.parting if curve.parts is not None]
        first = comparison.chain[0] if comparison.chain else None
        if first is not None and any(step >= len(first.values) for step in parts):
            then = comparison.named([comparison.chain[1].run])
            said.append(f"from step {len(first.values)} on, the difference is from {then}")
        if self.start and parts and parts[0] < self.start:
            said.append(f"they part before the last {self.last} steps, which are shown")
        if self.width > 1:
            said.append(f"drawn: least and greatest value of every {self.width} steps")
        return said

    def _legend(self, ax: Axes, notes: Sequence[str], own: bool) -> None:
        from matplotlib.lines import Line2D

        curves = self.comparison.curves
        rows: list[tuple[Line2D, str]] = []
        for row in self.rows:
            status = curves[row[0]].run.status
            look = self.styles[row[0]] | {"marker": _ENDS.get(status, ""), "markersize": 5}
            rows.append((Line2D([], [], **look), self._label(row)))
        named = {index for row in self.rows for index in row}
        others = [index for index in range(len(curves)) if index not in named]
        if others:
            apart = sum(curves[index].parts is not None for index in others)
            kinds = {"part": apart, "identical": len(others) - apart}
            said = ", ".join(f"{count} {word}" for word, count in kinds.items() if count)
            rows.append((Line2D([], [], **self.styles[others[0]]), f"{len(others)} more: {said}"))
        rows += [(Line2D([], [], linestyle="none"), note) for note in notes]
        if not rows:
            return
        handles = [handle for handle, _ in rows]
        labels = [textwrap.fill(label, 90 if own else 60) for _, label in rows]
        if own:
            legend = ax.figure.legend(
                handles, labels, loc="outside lower left", frameon=False, fontsize="small"
            )
        else:
            legend = ax.legend(handles, labels, fontsize="x-small")
        for text in legend.get_texts():
            text.set_parse_math(False)

    @property
    def _first(self) -> str:
        return self.comparison.named([self.comparison.chain[0].run])

    def _label(self, row: list[int]) -> str:
        curves = [self.comparison.curves[index] for index in row]
        outcome = _outcome(curves[0])
        if row[0] == 0:
            outcome = (*outcome[:-1], curves[0].run.status)
        return " · ".join([self.comparison.named([curve.run for curve in curves]), *outcome])


def _dots(style: dict[str, Any], alone: list[int]) -> dict[str, Any]:
    size = style["linewidth"] + 3
    return {"marker": "o", "markersize": size, "markeredgewidth": 0, "markevery": alone}


def _outcome(curve: Curve) -> tuple[str, str, str]:
    """Seed, start and outcome as the legend says them."""
    run = curve.run
    seed = "no seed" if run.seed is None else f"seed {run.seed}"
    beside = "identical" if curve.parts is None else f"parts at step {curve.parts}"
    return seed, run.start[:8] or "start unknown", f"{run.status}, {beside}"


def _rows(comparison: Comparison) -> list[list[int]]:
    """The curves of each row of the legend: one a row, or, of many, those of one outcome."""
    curves = comparison.curves
    if len(curves) <= _ENTRIES:
        return [[index] for index in range(len(curves))]
    alike: dict[tuple[str, ...], list[int]] = {}
    for index, curve in enumerate(curves[1:], start=1):
        alike.setdefault(_outcome(curve), []).append(index)
    earliest = comparison.parting[:1]
    ranked = sorted(
        alike.values(),
        key=lambda row: (curves[row[0]] not in earliest, -len(row), curves[row[0]].parts or 0),
    )
    most = _ENTRIES - 1 if len(ranked) > _ENTRIES else _ENTRIES
    return [[0], *sorted(ranked[:most])]


def _non_finite(values: Values) -> list[tuple[str, str, int, Steps]]:
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


def _gaps(values: Values) -> str:
    """The same in words; empty if all are finite."""
    said = []
    for word, _, _, steps in _non_finite(values):
        if len(steps) == 1:
            said.append(f"{word} at step {steps[0]}")
        elif steps[0] + len(steps) == len(values):
            said.append(f"{word} from step {steps[0]} on")
        else:
            said.append(f"{len(steps)} {word}, first at step {steps[0]}")
    return "; ".join(said)


def _one_per_column(steps: Steps, width: int) -> Steps:
    import numpy as np

    return steps[np.unique(steps // width, return_index=True)[1]]


def _log_axis(ax: Axes, series: Sequence[Values]) -> list[str]:
    """Set the scale; what has to be said about it."""
    import numpy as np

    finite = [values[np.isfinite(values)] for values in series]
    if all((values > 0).all() for values in finite):
        ax.set_yscale("log")
        return []
    every = np.concatenate(finite)
    least = np.abs(every[every != 0]).min() if every.any() else 1.0
    linear = _symlog(ax, float(every.min()), float(every.max()), float(least))
    return [f"values at or below 0: the axis is linear within ±{linear:g}"]


def _symlog(ax: Axes, low: float, high: float, least: float) -> float:
    """Set a scale on which `least` is told from 0; returns where it stops to be linear."""
    linear = _decade(least)
    # Matplotlib's own limits overflow for extreme values on this scale.
    bottom, top = (3 * low if low < 0 else 0.0), (3 * high if high > 0 else 0.0)
    ax.set_ylim(max(bottom - linear, -1e308), min(top + linear, 1e308))
    ax.set_yscale("symlog", linthresh=linear, linscale=0.5)
    return linear


def _decade(size: float) -> float:
    """The power of 10 at or below a size."""
    return float(10.0 ** math.floor(math.log10(max(size, 1e-300))))


def _say(ax: Axes, text: str) -> None:
    ax.annotate(
        text,
        (0.5, 0.5),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        ha="center",
        fontsize="small",
    )


def _has_windows() -> bool:
    """Whether the backend in force is a GUI or ipympl; selects none, imports no pyplot."""
    import matplotlib

    backend = dict.get(matplotlib.rcParams, "backend")  # plain [] would select one
    if not isinstance(backend, str):
        return False
    name = backend.lower()
    return "inline" not in name and name not in _STATIC


_STATIC = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}


def _new_axes(two: bool) -> tuple[Axes, Axes | None]:
    """Axes in a figure of their own; if pyplot does not know it, a cell's last value shows it."""
    if _has_windows():
        from matplotlib import pyplot

        figure = pyplot.figure(layout="constrained")
    else:
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
    grid = figure.add_gridspec(2 if two else 1, height_ratios=(5, 2) if two else None)
    ax = figure.add_subplot(grid[0])
    if not _has_windows():
        ax._repr_png_ = functools.partial(as_png, ax)  # type: ignore[attr-defined]
    return ax, figure.add_subplot(grid[1], sharex=ax, label=_LABEL) if two else None


def _axes_below(ax: Axes) -> Axes:
    """Axes for the difference that take the lower part of the place of `ax`."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    axes: Axes
    for axes in ax.get_shared_x_axes().get_siblings(ax):
        if axes.get_label() == _LABEL and axes.get_figure() is ax.get_figure():
            axes.clear()
            axes.set_label(_LABEL)
            return axes
    below: Axes = make_axes_locatable(ax).append_axes("bottom", "40%", pad=0.08, sharex=ax)
    below.set_label(_LABEL)
    place = ax.get_subplotspec()
    if place is not None:  # so that constrained layout leaves room for the ticks and label below
        below.set_subplotspec(place)
    return below


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(words: Sequence[str], most: int = 6) -> str:
    """``a, b and c``."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + [words[-1]])
