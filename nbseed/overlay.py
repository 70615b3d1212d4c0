"""The losses of a cell's runs in one figure: whether they are the same, and where they part."""

from __future__ import annotations

import functools
import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .curves import (
    ENTRIES,
    Comparison,
    Curve,
    compare,
    decimate,
    gaps_of,
    legend_rows,
    non_finite,
    one_per_column,
    outcome_of,
    verdict_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .curves import Values
    from .run import Run

_COLUMNS = 2000  # more than a screen has pixels for
_LABEL = "nbseed: difference"  # marks our axes, so that a second overlay finds them

# Okabe and Ito's colours without yellow and black: told apart by colour-blind eyes, seen on white
# and on black. Widths and dashes say the same in grey. The first run takes the theme's own colour.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_WIDTHS = (2.4, 1.7, 1.3, 1.0, 0.7)  # within each other where curves coincide
_ENDS = {"interrupted": "s", "error": "P"}


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
        Only so many of the runs, the newest.
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
        raise ValueError(f"last is the number of runs to show, 1 or more; got {last!r}")
    shown = list(runs)[-last:] if last is not None else runs
    return _Drawing(compare(shown, metric)).draw(ax, log)


def as_png(ax: Axes) -> bytes:
    """The figure that `ax` stands in as PNG, under the user's ``savefig`` settings."""
    buffer = io.BytesIO()
    ax.figure.canvas.figure.savefig(buffer, format="png")  # of a subfigure, too
    return buffer.getvalue()


def on_any_ground(runs: Sequence[Run], metric: str = "loss") -> bytes:
    """The overlay as a small PNG in dark lines without a ground, whatever style is the user's.

    A dark page shows it with its colours turned.
    """
    from matplotlib import rc_context, rcParamsDefault

    plain = {k: v for k, v in rcParamsDefault.items() if k.startswith(_LOOKS)}
    with rc_context(
        {**plain, "figure.figsize": (5.4, 4.0), "savefig.dpi": 120, "savefig.transparent": True}
    ):
        return as_png(overlay(runs, metric=metric))


_LOOKS = ("axes.", "figure.", "font.", "grid.", "legend.", "lines.", "savefig.", "text.", "xtick.",
          "ytick.")  # fmt: skip


class _Drawing:
    """One figure in the making: which steps are shown, and how each run looks."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.shown = max((len(curve.values) for curve in comparison.curves), default=0)
        self.width = 1 if self.shown <= 2 * _COLUMNS else -(-self.shown // _COLUMNS)
        self.rows = legend_rows(comparison)
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
            notes += _log_axis(ax, [curve.values for curve in comparison.curves])
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
            ax.set_xlim(-1, 1)
        ax.set_title(verdict_of(comparison), wrap=True, parse_math=False)
        self._legend(ax, notes, own)
        return ax

    def _draw_curve(self, ax: Axes, curve: Curve, style: dict[str, Any]) -> None:
        values = curve.values
        if not len(values):
            return
        self._plot(ax, values, style)
        if curve.run.status in _ENDS:
            self._mark(ax, [len(values) - 1], [values[-1]], style, _ENDS[curve.run.status])
        edges = ax.get_xaxis_transform()  # steps across, the axes' height upwards
        row = 0.03 * (1 + self.comparison.curves.index(curve) % ENTRIES)
        for _, marker, height, found in non_finite(values):
            steps = one_per_column(found, self.width)
            self._mark(ax, steps, [abs(height - row)] * len(steps), style, marker, transform=edges)
            ax.margins(y=0.2)  # keeps the curves clear of the marks

    def _plot(self, ax: Axes, values: Values, style: dict[str, Any]) -> None:
        """A line, and a dot for each value that stands alone."""
        import numpy as np

        steps, kept = decimate(values, self.width)
        there = np.concatenate([[False], np.isfinite(kept), [False]])
        alone = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])
        ax.plot(steps, kept, **style | _dots(style, alone.tolist()))

    def _mark(
        self, ax: Axes, steps: Any, at: Any, style: dict[str, Any], marker: str, **more: Any
    ) -> None:
        look = style | {"linestyle": "none", "marker": marker, "alpha": 1, "markersize": 5} | more
        ax.plot(steps, at, **look)

    def _draw_differences(self, below: Axes) -> None:
        import numpy as np

        sizes: list[float] = []
        low = high = 0.0
        for curve, style in self.drawn.values():
            values = curve.values
            reference = self.comparison.reference[: len(values)]
            values = values[: len(reference)]
            if not len(values):
                continue
            if curve.parts is None:
                ends = [0, len(values) - 1]
                below.plot(ends, [0, 0], **style | _dots(style, [0] if len(values) == 1 else []))
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                apart = values - reference
            size = apart[np.isfinite(apart) & (apart != 0)]
            if len(size):
                low, high = min(low, float(size.min())), max(high, float(size.max()))
                sizes.append(np.abs(size).min())
            self._plot(below, apart, style)
            at = apart[curve.parts] if np.isfinite(apart[curve.parts]) else 0
            self._mark(below, [curve.parts], [at], style, "D", alpha=style.get("alpha", 1))
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
        if not parting or parting[0].parts is None:
            return
        step = parting[0].parts
        for axes in (ax, below):
            look = {"color": rcParams["text.color"], "linestyle": ":", "marker": ""}
            axes.axvline(step, linewidth=1, zorder=3, **look)
        left = step > 0.2 * self.shown  # there all differences are 0
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
            texts = [gaps] if (gaps := gaps_of(curve.values)) else []
            if curve.run.start != curves[0].run.start:
                texts.append(f"started from another state than {comparison.named([curves[0].run])}")
            for text in texts:
                of.setdefault(text, []).append(curve.run)
        said = [f"{comparison.named(runs)}: {text}" for text, runs in of.items()]
        if len(said) > ENTRIES:
            said[ENTRIES - 1 :] = [f"{len(said) - ENTRIES + 1} more such notes"]
        parts = [curve.parts for curve in comparison.parting if curve.parts is not None]
        first = comparison.chain[0] if comparison.chain else None
        if first is not None and any(step >= len(first.values) for step in parts):
            then = comparison.named([comparison.chain[1].run])
            said.append(f"from step {len(first.values)} on, the difference is from {then}")
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
            kinds = {
                "part": sum(curves[index].parts is not None for index in others),
                "identical": sum(curves[index].parts is None for index in others),
                "not finished": sum(curves[index].run.status != "ok" for index in others),
            }
            said = ", ".join(f"{count} {word}" for word, count in kinds.items() if count)
            thin = Line2D([], [], **self.styles[others[0]] | {"marker": ""})
            rows.append((thin, f"{len(others)} more: {said}"))
        rows += [(Line2D([], [], linestyle="none", marker=""), note) for note in notes]
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
        outcome = outcome_of(curves[0])
        if row[0] == 0:
            outcome = (*outcome[:-1], curves[0].run.status)
        return " · ".join([self.comparison.named([curve.run for curve in curves]), *outcome])


def _dots(style: dict[str, Any], alone: list[int]) -> dict[str, Any]:
    size = style["linewidth"] + 3
    return {"marker": "o", "markersize": size, "markeredgewidth": 0, "markevery": alone}


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


# matplotlib's own backends that only write files; all others show windows or widgets.
_STATIC = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


def _has_windows() -> bool:
    """Whether the backend in force is a GUI or ipympl; selects none, imports no pyplot."""
    import matplotlib

    backend = dict.get(matplotlib.rcParams, "backend")  # plain [] would select one
    if not isinstance(backend, str):
        return False
    name = backend.lower()
    return "inline" not in name and name not in _STATIC


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
