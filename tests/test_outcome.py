"""What a run came to beside another: losses bit by bit, generators by their ends, variables."""

from __future__ import annotations

import math
from array import array

import numpy as np
import pytest

from nbseed import content
from nbseed.outcome import Outcome, compare, first_difference
from nbseed.recording import Observed
from nbseed.run import Run

START, END, OTHER = "4f09c1d2" * 4, "0b1c2d3e" * 4, "77777777" * 4


def run(number=1, *, ends=None, losses=None, left=None):
    contents = None if left is None else content.read(left, tuple(left))
    return Run(
        number=number,
        name="train",
        seed=3,
        values={n: array("d", v) for n, v in (losses or {}).items()},
        start=START,
        end=END,
        status="ok",
        ends=ends or {},
        observed=None if contents is None else Observed(left=contents),
    )


NAN_2 = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]


@pytest.mark.parametrize(
    ("one", "two", "step"),
    [
        ([], [], None),
        ([], [1], None),
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 2, 4], 2),
        ([1, 2, 3], [0, 2, 4], 0),
        ([1, 2], [1, 2, 3], None),
        ([1, 2, 3], [1, 3], 1),
        ([math.nan, 1], [math.nan, 2], 1),
        ([math.nan], [math.nan], None),
        ([math.nan], [NAN_2], 0),
        ([math.inf, -math.inf], [math.inf, math.inf], 1),
        ([math.inf], [math.inf], None),
        ([0.0], [-0.0], 0),
        ([-0.0], [-0.0], None),
        ([1.0], [1.0 + 2**-52], 0),
        ([5e-324], [0.0], 0),
    ],
)
def test_the_first_step_at_which_any_bit_differs(one, two, step):
    first, second = np.array(one, dtype=float), np.array(two, dtype=float)
    assert first_difference(first, second) == step
    assert first_difference(second, first) == step


def test_series_that_are_views_are_compared_too():
    values = np.arange(10.0)
    assert first_difference(values[::2], np.array([0.0, 2.0, 5.0])) == 2
    assert type(first_difference(values, values + 1)) is int


def test_only_generators_and_losses_of_both_are_compared():
    base = run(ends={"python": START, "numpy": END}, losses={"a": [1, 2], "b": [1]})
    other = run(2, ends={"python": END, "torch.cpu": END}, losses={"a": [1, 3, 4], "c": [1]})
    found = compare(base, other)
    assert found == Outcome(("python",), (("a", 1, 2.0, 3.0),), {"a": 2}, {"a": (2, 3)},
        ("b", "c"))  # fmt: skip
    assert found.same is False
    assert compare(base, base).same is True


@pytest.mark.parametrize(
    "kinds",
    [
        {"ends": {"python": OTHER}},
        {"losses": {"a": [2]}},
        {"losses": {"a": [1, 2]}},
        {"losses": {}},
        {"left": {"x": 2}},
    ],
)
def test_any_difference_is_one(kinds):
    same = {"ends": {"python": END}, "losses": {"a": [1]}, "left": {"x": 1}}
    base = run(**same)
    assert compare(base, run(2, **same)).same is True
    assert compare(base, run(2, **{**same, **kinds})).same is False


@pytest.mark.parametrize(
    ("before", "after", "other"),
    [
        ({"x": 1, "y": [1, 2]}, {"x": 1, "y": [1, 2]}, ()),
        ({"x": 1, "y": [1, 2]}, {"x": 1, "y": [2, 1]}, ("y",)),
        ({"x": 1}, {"x": 1.0}, ("x",)),
        ({"x": 0.0}, {"x": -0.0}, ("x",)),
        ({"x": math.nan}, {"x": math.nan}, ()),
        ({"x": np.arange(3)}, {"x": np.arange(3)}, ()),
        ({"b": 1, "a": 1}, {"a": 2, "b": 2}, ("a", "b")),
        ({"x": 1}, {"y": 1}, ()),
        (None, {"x": 1}, ()),
        ({"x": 1}, None, ()),
    ],
)
def test_variables_of_both_runs_are_compared_by_their_content(before, after, other):
    assert compare(run(left=before), run(2, left=after)).values == other
