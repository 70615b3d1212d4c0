"""The overlay answers in one look: same or not, and where do the runs part?"""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

np = pytest.importorskip("numpy")
matplotlib = pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402

from nbseed.curves import compare, decimate, verdict  # noqa: E402
from nbseed.overlay import as_png, overlay  # noqa: E402

START = "4f09c1d2" * 4


def run(number, values=None, status="ok", *, name="train", seed=3, start=START, **losses):
    if values is not None:
        losses["loss"] = values
    arrays = {key: np.array(value, dtype=float) for key, value in losses.items()}
    return SimpleNamespace(
        number=number, name=name, seed=seed, losses=arrays, start=start, end=START, status=status
    )


def curve(steps=100):
    noise = np.random.default_rng(0).standard_normal(steps)
    return 2 * np.exp(-np.arange(steps) / steps * 4) + 0.1 + 0.01 * noise


def parting(at, steps=100):
    values = curve(steps)
    values[at:] += 1e-9 * np.arange(1, steps - at + 1)
    return values


def below(ax):
    """The axes of the difference."""
    (axes,) = [axes for axes in ax.figure.axes if axes.get_label() == "nbseed: difference"]
    return axes


def legend(ax):
    found = ax.get_legend() or ax.figure.legends[0]
    return [text.get_text() for text in found.get_texts()]


def curves_of(ax):
    """What was drawn as a line, without the marks and the dotted line."""
    return [line for line in ax.lines if line.get_linestyle() not in ("None", ":")]


def marks(ax, marker):
    return [
        step
        for line in ax.lines
        if line.get_marker() == marker and line.get_linestyle() == "None"
        for step in line.get_xdata()
    ]


def said_on(ax):
    return [text.get_text() for text in ax.texts]


# -- the sentence ----------------------------------------------------------------------------------

NAN = np.nan
OTHER_NAN = np.array([0x7FF8000000000001], dtype="u8").view(float)[0]


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ([run(i, curve()) for i in (1, 2, 3)], "3 runs, bit-identical"),
        ([run(1, curve()), run(2, curve()[:34])], "2 runs, bit-identical over the common 34 steps"),
        ([run(1, [5, 4]), run(2, [5])], "2 runs, bit-identical over the common 1 step"),
        ([run(1, curve(1000))], "1 run, 1000 steps"),
        ([run(1, [5])], "1 run, 1 step"),
        (
            [run(1, curve()), run(2, curve()), run(3, parting(12))],
            "runs 1 and 3 part at step 12",
        ),
        (
            [run(1, curve()), run(2, parting(40)), run(3, parting(12))],
            "runs 1 and 3 part at step 12; 1 more differs",
        ),
        (
            [run(1, curve()), *(run(i, parting(10 * i)) for i in range(2, 7))],
            "runs 1 and 2 part at step 20; 4 more differ",
        ),
        ([run(1, [NAN, 1]), run(2, [NAN, 1])], "2 runs, bit-identical"),
        ([run(1, [1, NAN]), run(2, [1, OTHER_NAN])], "runs 1 and 2 part at step 1"),
        ([run(1, [0.0]), run(2, [-0.0])], "runs 1 and 2 part at step 0"),
        ([run(1, [1, 2]), run(2, acc=[1])], "1 run, 2 steps; run 2 has no loss"),
        (
            [run(1, [1]), run(2, [1]), run(3, []), run(4), run(5), run(8)],
            "2 runs, bit-identical; runs 3 to 5 and 8 have no loss",
        ),
        ([run(1, []), run(2, [])], "2 runs, no loss values"),
        (
            [run(1, [1, 2]), run(1, [1, 3], name="eval")],
            "run 1 of train and run 1 of eval part at step 1",
        ),
    ],
)
def test_the_title_says_whether_and_where(runs, sentence):
    assert verdict(runs) == sentence
    assert overlay(runs).get_title() == sentence


def test_an_interrupted_first_run_hides_no_difference_between_later_ones():
    runs = [run(1, curve()[:34], "interrupted"), run(2, curve()), run(3, parting(50))]
    assert verdict(runs) == "runs 2 and 3 part at step 50"
    assert "from step 34 on, the difference is from run 2" in legend(overlay(runs))


def test_another_metric_has_its_own_verdict_and_names_the_axis():
    runs = [run(1, curve(), acc=[1, 2]), run(2, curve(), acc=[1, 3])]
    assert verdict(runs, "acc") == "runs 1 and 2 part at step 1"
    assert overlay(runs, metric="acc").get_ylabel() == "acc"


def test_runs_may_come_from_any_iterable():
    assert verdict(run(i, [1]) for i in (1, 2)) == "2 runs, bit-identical"


# -- errors ----------------------------------------------------------------------------------------


def test_no_runs_is_a_clear_error():
    with pytest.raises(ValueError, match="no runs to overlay: a cell under %%rngcheckpoint"):
        overlay([])


def test_an_unknown_metric_names_those_that_exist():
    with pytest.raises(ValueError, match=r"^no run has the metric 'los'; recorded: loss, acc$"):
        overlay([run(1, loss=[1]), run(2, acc=[1])], metric="los")
    with pytest.raises(ValueError, match="nothing was recorded"):
        overlay([run(1), run(2)])


@pytest.mark.parametrize("last", [0, -3, 1.5, "9", True])
def test_last_must_be_a_number_of_steps(last):
    with pytest.raises(ValueError, match="1 or more; got"):
        overlay([run(1, [1])], last=last)


# -- the curves ------------------------------------------------------------------------------------


def test_coincident_runs_are_drawn_within_each_other():
    ax = overlay([run(i, curve()) for i in range(1, 7)])
    drawn = curves_of(ax)
    assert len(drawn) == 6
    for line in drawn:
        np.testing.assert_array_equal(line.get_ydata(), curve())
    widths = [line.get_linewidth() for line in drawn]
    assert widths == sorted(set(widths), reverse=True)
    order = [line.get_zorder() for line in drawn]
    assert order == sorted(set(order))
    assert drawn[0].get_alpha() < 0.5
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) > 4


def test_runs_differ_in_more_than_colour():
    ax = overlay([run(1, curve()), *(run(i, parting(10 * i)) for i in range(2, 7))])
    assert len({line.get_linewidth() for line in curves_of(ax)}) == 6
    assert {line.is_dashed() for line in curves_of(ax)} == {True, False}


def test_the_difference_from_the_first_run_is_on_a_symlog_axis():
    ax = overlay([run(1, curve()), run(2, curve()), run(3, parting(12))])
    lower = below(ax)
    assert lower.get_yscale() == "symlog"
    assert lower.get_ylabel() == "minus\nrun 1"
    np.testing.assert_array_equal(curves_of(lower)[2].get_ydata(), parting(12) - curve())
    assert lower.get_shared_x_axes().joined(ax, lower)
    assert len(lower.get_yticks()) == 2


def test_the_first_step_that_differs_is_marked_in_both():
    ax = overlay([run(1, curve()), run(2, parting(40)), run(3, parting(12))])
    for axes in (ax, below(ax)):
        dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
        assert [list(line.get_xdata()) for line in dotted] == [[12, 12]]
    assert said_on(below(ax)) == ["step 12"]
    assert sorted(marks(below(ax), "D")) == [12, 40]


def test_identical_runs_say_so_where_the_difference_would_be():
    ax = overlay([run(1, curve()), run(2, curve())])
    assert said_on(below(ax)) == ["no bit differs"]
    assert all(not np.any(line.get_ydata()) for line in below(ax).lines)


def test_one_run_needs_no_difference():
    ax = overlay([run(1, curve())])
    assert ax.figure.axes == [ax]
    assert ax.get_xlabel() == "step"


def test_only_signs_of_zero_differ():
    ax = overlay([run(1, [0.0, 1]), run(2, [-0.0, 1])])
    assert marks(below(ax), "D") == [0]
    assert "no bit differs" not in said_on(below(ax))


def test_unequal_lengths_end_where_they_end():
    ax = overlay(
        [run(1, curve()), run(2, curve()[:34], "interrupted"), run(3, curve()[:9], "error")]
    )
    assert [len(line.get_xdata()) for line in curves_of(ax)] == [100, 34, 9]
    assert marks(ax, "s") == [33]
    assert marks(ax, "P") == [8]


def test_what_is_not_finite_is_a_gap_with_a_mark_and_a_note():
    values = curve()
    values[40], values[60:63], values[80], values[95:] = NAN, np.inf, -np.inf, NAN
    ax = overlay([run(1, curve()), run(2, values), run(3, values)])
    gaps = np.isnan(curves_of(ax)[1].get_ydata())
    assert list(np.flatnonzero(gaps)) == [40, 60, 61, 62, 80, 95, 96, 97, 98, 99]
    assert marks(ax, "x") == 2 * [40, 95, 96, 97, 98, 99]
    assert marks(ax, "^") == 2 * [60, 61, 62]
    assert marks(ax, "v") == 2 * [80]
    notes = " ".join(legend(ax)[3:]).replace("\n", " ")
    assert notes == (
        "runs 2 and 3: 6 NaN (×), first at step 40; 3 inf (▲), first at step 60; "
        "-inf (▼) at step 80"
    )


def test_a_run_that_diverges_for_good_says_from_where():
    values = curve()
    values[70:] = NAN
    assert "run 2: NaN (×) from step 70 on" in legend(overlay([run(1, curve()), run(2, values)]))


def test_a_value_between_gaps_is_a_dot():
    ax = overlay([run(1, [1, NAN, 2, NAN, 3, 4])])
    assert curves_of(ax)[0].get_markevery() == [0, 2]


def test_one_point_can_be_seen():
    ax = overlay([run(1, [0.5]), run(2, [0.5])])
    assert [line.get_markevery() for line in ax.lines] == [[0], [0]]
    assert ax.get_xlim() == (-1, 1)


def test_runs_without_values_are_an_empty_figure_that_says_so():
    ax = overlay([run(1, []), run(2, [])])
    assert said_on(ax) == ["no loss values"]
    assert not ax.lines


# -- the legend ------------------------------------------------------------------------------------


def test_the_legend_gives_run_seed_start_and_outcome():
    runs = [
        run(1, curve()),
        run(2, curve()[:34], "interrupted"),
        run(3, parting(12), "error", seed=None, start="ab" * 16),
    ]
    assert legend(overlay(runs)) == [
        "run 1 · seed 3 · 4f09c1d2 · ok",
        "run 2 · seed 3 · 4f09c1d2 · interrupted, identical",
        "run 3 · no seed · abababab · error, parts at step 12",
        "run 3: started from another state than run 1",
    ]


def test_fifty_equal_runs_are_two_rows():
    ax = overlay([run(i, curve()) for i in range(1, 51)])
    assert legend(ax) == [
        "run 1 · seed 3 · 4f09c1d2 · ok",
        "runs 2 to 50 · seed 3 · 4f09c1d2 · ok, identical",
    ]


def test_fifty_runs_that_part_keep_a_short_legend_that_counts_the_rest():
    runs = [run(i, curve() if i % 2 else parting(i)) for i in range(1, 51)]
    runs[39].status = "error"
    rows = legend(overlay(runs))
    assert len(rows) == 7
    assert rows[1] == "run 2 · seed 3 · 4f09c1d2 · ok, parts at step 2"
    assert rows[2].startswith("runs 3, 5, 7, 9, 11, 13 and 18 more")
    assert rows[-1] == "21 more: 21 part, 1 not finished"


def test_notes_do_not_grow_with_the_runs():
    runs = [run(i, np.where(np.arange(100) > i, NAN, curve())) for i in range(1, 41)]
    assert legend(overlay(runs))[-1] == "35 more such notes"


def test_dollars_and_underscores_in_names_are_only_text():
    runs = [run(1, [1], name="_a$x$"), run(1, [1], name="b", **{"_$y": [1]})]
    ax = overlay(runs)
    assert legend(ax)[0].startswith("run 1 of _a$x$ · ")
    as_png(ax)
    as_png(overlay(runs, metric="_$y"))


# -- options ---------------------------------------------------------------------------------------


def test_last_takes_the_newest_runs():
    ax = overlay([run(1, curve()), run(2, parting(12)), run(3, parting(12))], last=2)
    assert ax.get_title() == "2 runs, bit-identical"
    assert [row.split(" ·")[0] for row in legend(ax)] == ["run 2", "run 3"]


def test_last_may_exceed_what_there_is_and_come_from_numpy():
    assert overlay([run(1, curve())], last=np.int64(1000)).get_title() == "1 run, 100 steps"


def test_log_is_log_where_all_is_positive():
    assert overlay([run(1, curve())], log=True).get_yscale() == "log"


def test_log_hides_no_value_at_or_below_zero():
    ax = overlay([run(1, [0.5, 0.02, 0, -1]), run(2, [NAN] * 4)], log=True)
    assert ax.get_yscale() == "symlog"
    assert "values at or below 0: the axis is linear within ±0.01" in legend(ax)
    low, high = ax.get_ylim()
    assert low < -1
    assert high > 0.5


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values", [[], [NAN] * 3, [np.inf, -np.inf], [0, 0], [5e-324, 0], [1e300, -1e300], [1e-320, 2]]
)
def test_extreme_values_are_drawn_without_a_warning(values, log):
    as_png(overlay([run(1, values), run(2, values), run(3, [1, 2, 3])], log=log))


# -- decimation ------------------------------------------------------------------------------------


def test_decimation_keeps_the_least_and_greatest_of_every_column():
    values = np.random.default_rng(0).standard_normal(1003)
    steps, kept = decimate(values, 10)
    np.testing.assert_array_equal(values[steps], kept)
    for first in range(0, 1003, 10):
        column, chosen = values[first : first + 10], kept[(steps >= first) & (steps < first + 10)]
        assert {column.min(), column.max()} == set(chosen)


def test_a_column_without_a_finite_value_is_a_gap():
    steps, kept = decimate(np.array([1, 2, 3, NAN, np.inf, NAN, 4, NAN, 5]), 3)
    assert list(steps) == [0, 2, 3, 6, 8]
    np.testing.assert_array_equal(kept, [1, 3, NAN, 4, 5])


def test_long_runs_are_decimated_and_the_figure_says_so():
    values = curve(100_000)
    values[54_321] = 9.0
    ax = overlay([run(1, values), run(2, values)])
    assert len(ax.lines[0].get_xdata()) <= 4000
    assert ax.lines[0].get_ydata().max() == 9.0
    assert "drawn: least and greatest value of every 50 steps" in legend(ax)


def test_short_runs_are_drawn_whole():
    assert not [row for row in legend(overlay([run(1, curve(4000))])) if row.startswith("drawn")]


# -- the user's figures, colours and backend -------------------------------------------------------


def test_dark_themes_colour_the_text_and_the_first_run():
    from matplotlib import style

    with style.context("dark_background"):
        ax = overlay([run(1, curve()), run(2, parting(12))])
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    shown = [ax.title, ax.yaxis.label, *below(ax).texts, *ax.figure.legends[0].get_texts()]
    assert {artist.get_color() for artist in (*shown, *dotted, ax.lines[0])} == {"white"}


def test_line_settings_of_the_user_do_not_spoil_the_looks():
    with matplotlib.rc_context({"lines.marker": "o", "lines.linestyle": ":", "lines.linewidth": 3}):
        ax = overlay([run(1, curve()), run(2, curve())])
        handles = ax.figure.legends[0].legend_handles
    assert [line.get_markevery() for line in ax.lines] == [[], []]
    assert ax.lines[0].get_linewidth() == 15
    assert all(handle.get_marker() in ("", "None") for handle in handles)


@pytest.mark.parametrize("layout", [None, "tight", "constrained"])
def test_axes_of_the_user_are_drawn_in_and_their_neighbours_stay(layout):
    figure = Figure(layout=layout)
    left, right = figure.subplots(1, 2)
    figure.draw_without_rendering()
    place = right.get_window_extent()
    assert overlay([run(1, curve()), run(2, parting(12))], left) is left
    figure.draw_without_rendering()
    assert len(figure.axes) == 3
    assert not figure.legends
    upper, lower = left.get_window_extent(), below(left).get_window_extent()
    assert upper.y0 > lower.y1
    assert upper.x0 == lower.x0
    assert right.get_window_extent().width == pytest.approx(place.width, rel=0.1)
    assert figure.gca() is left


def test_axes_can_be_drawn_in_again():
    figure = Figure()
    ax = figure.subplots()
    overlay([run(1, curve()), run(2, parting(12))], ax)
    ax.clear()
    overlay([run(1, curve()), run(2, curve())], ax)
    assert len(figure.axes) == 2
    assert said_on(below(ax)) == ["no bit differs"]
    figure.draw_without_rendering()


def test_a_subfigure_serves():
    left, _ = Figure(layout="constrained").subfigures(1, 2)
    assert as_png(overlay([run(1, curve()), run(2, curve())], left.subplots()))


def test_a_cell_can_show_the_axes_that_come_back():
    assert overlay([run(1, curve())])._repr_png_().startswith(b"\x89PNG")


def in_fresh_python(code):
    env = {"PATH": "", "MPLCONFIGDIR": matplotlib.get_configdir()}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


LOADED = "import sys; print(*[m for m in ('numpy', 'matplotlib', 'torch') if m in sys.modules])"


def test_import_brings_in_neither_matplotlib_nor_numpy():
    assert in_fresh_python(f"import nbseed.overlay; {LOADED}") == []


def test_the_check_of_imports_can_fail():
    assert "matplotlib" in in_fresh_python(f"import nbseed.overlay, matplotlib; {LOADED}")


DRAW = """
import sys
import numpy as np
from types import SimpleNamespace as Run
from nbseed.overlay import overlay
runs = [Run(number=i, name="a", seed=1, losses={"loss": np.ones(3)}, start="", end="", status="ok")
        for i in (1, 2)]
ax = overlay(runs)
assert ax.figure.canvas is not None
"""


@pytest.mark.parametrize("backend", ["agg", "svg", "module://matplotlib_inline.backend_inline"])
def test_backends_without_windows_get_a_figure_that_pyplot_does_not_know(backend):
    code = f"import matplotlib; matplotlib.rcParams['backend'] = {backend!r}\n{DRAW}"
    assert in_fresh_python(f"{code}\nprint('matplotlib.pyplot' in sys.modules)") == ["False"]


def test_no_backend_is_selected_by_drawing():
    assert in_fresh_python(f"{DRAW}\nprint('matplotlib.pyplot' in sys.modules)") == ["False"]


@pytest.mark.parametrize("backend", ["webagg", "nbagg"])
def test_backends_with_windows_get_a_figure_of_pyplot(backend, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    made = []
    monkeypatch.setattr(pyplot, "figure", lambda **how: made.append(Figure(**how)) or made[-1])
    with matplotlib.rc_context():
        dict.__setitem__(matplotlib.rcParams, "backend", backend)
        try:
            ax = overlay([run(1, curve())])
        finally:
            dict.__setitem__(matplotlib.rcParams, "backend", "agg")
    assert made == [ax.figure]
    assert not hasattr(ax, "_repr_png_")


def test_no_figure_is_left_open():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    before = pyplot.get_fignums()
    overlay([run(1, curve()), run(2, curve())])
    assert pyplot.get_fignums() == before


def test_the_comparison_is_plain_data():
    comparison = compare([run(1, curve()), run(2, parting(12)), run(3)])
    assert [each.parts for each in comparison.curves] == [None, 12]
    assert [each.number for each in comparison.silent] == [3]
    assert comparison.named(comparison.silent) == "run 3"
