"""A run's outcome in one line, in HTML, and as data."""

from __future__ import annotations

import html
import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest

from nbseed import content, report
from nbseed.checkpoint import Ended
from nbseed.checkpoints import Checkpoints
from nbseed.draws import Draws
from nbseed.recording import Observed
from nbseed.run import Run
from nbseed.text import Text
from nbseed.watch import Call
from nbseed.watch.site import Site

START, END, OTHER = "4f09c1d2" * 4, "0b1c2d3e" * 4, "77777777" * 4


def seen(met=None, left=None, **kinds):
    """What a run met and left, from its variables."""
    contents = {
        name: content.read(space, tuple(space), seconds=5)
        for name, space in (("met", met or {}), ("left", left or {}))
    }
    return Observed(**contents, **kinds)


def words(count, kind="drawn"):
    return Draws(kind, count)


def run(number=1, status="ok", *, ends=None, starts=None, name="train", **kinds):
    arrays = {n: np.array(v, dtype=np.float64) for n, v in kinds.pop("losses", {}).items()}
    return Run(
        number=number,
        name=name,
        seed=kinds.pop("seed", 3),
        values=arrays,
        start=START,
        end=END,
        status=status,
        starts={"python": START, "numpy": START} if starts is None else starts,
        ends={"python": END, "numpy": START} if ends is None else ends,
        **kinds,
    )


def first(**kinds):
    return Ended(run(**kinds), None, True, False)


def again(base=None, met_other=False, **kinds):
    return Ended(run(2, **kinds), base or run(), False, met_other)


ERROR = {"status": "error", "error": "ValueError: no"}


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        # the first run
        (first(), "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from python"),
        (
            first(seed=None, ends={}),
            "train, run 1: checkpoint 4f09c1d2 taken, no seed in force; no known generator moved",
        ),
        (
            first(losses={"loss": [1, 2], "a": [3]}),
            (
                "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from python; 2 losses; "
                "1 value of a"
            ),
        ),
        (
            first(losses={"loss": [1], "a": [3, 4]}, **ERROR),
            (
                "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from python; 1 loss; "
                "2 values of a; ended by ValueError: no"
            ),
        ),
        (
            first(status="interrupted"),
            "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from python; interrupted",
        ),
        (
            first(status="error"),
            (
                "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from python; ended by "
                "an error"
            ),
        ),
        (
            first(ends={f"user:r{i}": END for i in range(8)}, starts={}),
            "train, run 1: checkpoint 4f09c1d2 taken under seed 3; no known generator moved",
        ),
        (
            first(
                ends={f"user:r{i}": END for i in range(8)},
                starts={f"user:r{i}": START for i in range(8)},
            ),
            (
                "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from user:r0, user:r1, "
                "user:r2, user:r3, user:r4, user:r5 and 2 more"
            ),
        ),
        (
            first(starts={"torch.cuda": START}, ends={"torch.cuda:0": END}),
            "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from torch.cuda:0",
        ),
        # a later run that is the same
        (again(), "train, run 2: rewound to 4f09c1d2; same draws"),
        (
            again(run(ends={"python": START}), ends={"python": START}),
            "train, run 2: rewound to 4f09c1d2; no known generator moved",
        ),
        (
            again(run(losses={"loss": [1, 2]}), losses={"loss": [1, 2]}),
            "train, run 2: rewound to 4f09c1d2; same draws; losses bit-identical (2 steps)",
        ),
        (
            again(run(losses={"a": [1]}), losses={"a": [1]}),
            "train, run 2: rewound to 4f09c1d2; same draws; a bit-identical (1 step)",
        ),
        # that differs
        (
            again(ends={"python": OTHER, "numpy": END}),
            "train, run 2: rewound to 4f09c1d2; other draws: python, numpy ended elsewhere",
        ),
        (
            again(run(losses={"loss": [1, 2, 0.1]}), losses={"loss": [1, 2, 0.2]}),
            "train, run 2: rewound to 4f09c1d2; same draws; losses part at step 2 (0.1, now 0.2)",
        ),
        (
            again(run(losses={"a": [math.nan]}), losses={"a": [math.inf]}),
            "train, run 2: rewound to 4f09c1d2; same draws; a parts at step 0 (nan, now inf)",
        ),
        (
            again(run(losses={"loss": [1, 2, 3]}), losses={"loss": [1]}),
            (
                "train, run 2: rewound to 4f09c1d2; same draws; losses bit-identical over the "
                "common 1 step (3, now 1)"
            ),
        ),
        (
            again(run(losses={"loss": [1], "b": [1]}), losses={"loss": [1], "a": [1]}),
            (
                "train, run 2: rewound to 4f09c1d2; same draws; losses bit-identical (1 step); "
                "recorded in one run only: a, b"
            ),
        ),
        # that did not come to its end, or whose base did not
        (
            again(ends={"python": OTHER}, **ERROR),
            "train, run 2: rewound to 4f09c1d2; ended by ValueError: no",
        ),
        (
            again(run(**ERROR), **ERROR),
            "train, run 2: rewound to 4f09c1d2; ended by ValueError: no, as run 1; same draws",
        ),
        (
            again(run(**ERROR), status="error", error="KeyError: 'x'"),
            (
                "train, run 2: rewound to 4f09c1d2; ended by KeyError: 'x'; run 1 was ended by "
                "ValueError: no; same draws"
            ),
        ),
        (
            again(run(status="interrupted", losses={"loss": [1]}), losses={"loss": [1, 2]}),
            (
                "train, run 2: rewound to 4f09c1d2; run 1 was interrupted; same draws; losses "
                "bit-identical over the common 1 step (1, now 2)"
            ),
        ),
        (
            again(run(status="interrupted"), status="interrupted", ends={"python": OTHER}),
            "train, run 2: rewound to 4f09c1d2; interrupted, as run 1",
        ),
        # whose base is gone
        (
            Ended(run(7), None, False, False),
            "train, run 7: rewound to 4f09c1d2; drew from python",
        ),
    ],
)
def test_an_outcome_is_one_line(ended, said):
    assert report.sentence(ended) == said
    assert report.text([ended]) == said
    assert report.data([ended])["runs"][0]["text"] == said
    assert Page(report.as_html([ended])).text.partition(" ")[2] == said


MOVED = {"python": END, "numpy": END}
ELSEWHERE = {"python": OTHER, "numpy": OTHER}


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        # draws in the first line
        (
            first(ends=MOVED, observed=seen(draws={"python": words(1), "numpy": words(1248)})),
            "drew from python (1 word), numpy (1,248 words)",
        ),
        (
            first(
                ends=MOVED,
                observed=seen(draws={"python": Draws("re-seeded"), "numpy": words(9, "beyond")}),
            ),
            "drew from python (re-seeded), numpy (more than 9 words)",
        ),
        (
            first(ends=MOVED, observed=seen(draws={"numpy": Draws("moved")})),
            "drew from python, numpy",
        ),
        # and where they differ
        (
            again(
                run(ends=MOVED, observed=seen(draws={"python": words(2), "numpy": words(4)})),
                ends=ELSEWHERE,
                observed=seen(draws={"python": words(3), "numpy": words(0, "still")}),
            ),
            "other draws: python 3 words, run 1 2 words, numpy nothing, run 1 4 words",
        ),
        (
            again(
                run(ends=MOVED, observed=seen(draws={"python": words(2), "numpy": words(4)})),
                ends=ELSEWHERE,
                observed=seen(draws={"python": words(3), "numpy": words(4)}),
            ),
            "other draws: python 3 words, run 1 2 words; numpy ended elsewhere",
        ),
        (
            again(
                run(ends=MOVED, observed=seen(draws={"python": words(2)})),
                ends=ELSEWHERE,
                observed=seen(draws={"numpy": words(3)}),
            ),
            "other draws: python, numpy ended elsewhere",
        ),
    ],
)
def test_draws_are_counted_where_they_tell_something(ended, said):
    parts = report.sentence(ended).split("; why: ")[0].partition("; ")[2]
    assert parts == said


@pytest.mark.parametrize(
    ("before", "now", "losses", "said"),
    [
        ({"x": 1}, {"x": 1}, {}, "same draws"),
        ({"x": 1}, {"x": 2}, {}, "same draws; x differs"),
        ({"x": 1, "y": 1}, {"x": 2, "y": 2}, {}, "same draws; x, y differ"),
        (
            {f"x{i}": 1 for i in range(8)},
            {f"x{i}": 2 for i in range(8)},
            {},
            "same draws; x0, x1, x2, x3, x4, x5 and 2 more differ",
        ),
        (
            {"the cell's value": 1},
            {"the cell's value": 2},
            {},
            "same draws; the cell's value differs",
        ),
        # where losses part, that says it already
        ({"x": 1}, {"x": 2}, {"loss": [2]}, "same draws; losses part at step 0 (1.0, now 2.0)"),
        (
            {"x": 1},
            {"x": 2},
            {"loss": [1]},
            "same draws; losses bit-identical (1 step); x differs",
        ),
    ],
)
def test_variables_that_came_out_otherwise_are_named(before, now, losses, said):
    old = {"loss": [1]} if losses else {}
    ended = again(
        run(losses=old, observed=seen(left=before)), losses=losses, observed=seen(left=now)
    )
    assert report.sentence(ended) == f"train, run 2: rewound to 4f09c1d2; {said}"
    assert report.data([ended])["runs"][0]["values"] == [n for n in now if before[n] != now[n]]


@pytest.mark.parametrize(
    ("base", "now", "why"),
    [
        # a cause stands at the end, in a few words
        (
            {"observed": seen(met={"lr": 0.1})},
            {"observed": seen(met={"lr": 0.2}), "ends": {"python": OTHER}},
            "lr is 0.2, was 0.1",
        ),
        ({"code": "x = 1"}, {"code": "x = 2", "losses": {"a": [1]}}, "the cell's code was changed"),
        # several: how many more there are
        (
            {"code": "x = 1", "observed": seen(met={"lr": 0.1})},
            {"code": "x = 2", "observed": seen(met={"lr": 0.2}), "ends": {"python": OTHER}},
            "the cell's code was changed; 1 more in %rng why",
        ),
        # none was found, or nothing differs
        ({}, {"ends": {"python": OTHER}}, None),
        ({"observed": seen(met={"lr": 0.1})}, {"observed": seen(met={"lr": 0.2})}, None),
        ({"code": "x = 1"}, {"code": "x = 2"}, None),
        # a run that did not finish says so itself
        ({"code": "x = 1"}, {"code": "x = 2", "status": "error", "error": "E"}, None),
        ({"code": "x = 1", "status": "interrupted"}, {"code": "x = 2"}, None),
    ],
)
def test_the_cause_stands_at_the_end_in_a_few_words(base, now, why):
    ended = again(run(**base), **now)
    said = report.sentence(ended)
    assert said.partition("; why: ")[2] == (why or "")
    assert Page(report.as_html([ended])).text.endswith(said.partition(": ")[2])
    found = report.data([ended])["runs"][0]["why"]
    if why:
        assert found[0] == why.partition(";")[0]


STALE = (
    "the cells before this one now leave another state than when its checkpoint was taken; "
    "--reset takes it anew"
)


def test_notes_stand_below_the_line():
    ended = again(met_other=True, notes=("one is not covered", "two is cut"))
    lines = [
        "train, run 2: rewound to 4f09c1d2; same draws",
        "  note: one is not covered",
        "  note: two is cut",
        f"  note: {STALE}",
    ]
    assert report.text([ended]) == "\n".join(lines)
    assert report.data([ended])["runs"][0]["notes"] == ["one is not covered", "two is cut", STALE]
    page = Page(report.as_html([ended])).text
    assert all(note in page for note in ("one is not covered", "two is cut", STALE))


@pytest.mark.parametrize(
    ("through", "value", "said"),
    [
        (
            "label_colors",
            "0",
            [
                (
                    "label_colors re-seeds numpy 2 times (line 4): np.random.seed(0); what is "
                    "drawn after it does not depend on your seed"
                )
            ],
        ),
        ("label_colors", "3", []),  # the user's own seed again
        ("seed_everything", "0", []),  # its name says that it seeds
        ("", "0", []),  # the cell itself
    ],
)
def test_a_seed_that_a_function_sets_over_the_cells_own_is_said_after_the_first_run(
    through, value, said
):
    own = Site(2, "np.random.seed(3)", "np.random.seed(3)", "", True, "", "")
    call = f"np.random.seed({value})"
    inside = Site(4, "colors = label_colors(5)", call, through, True, "", "")
    calls = (
        Call("seed", "np.random.seed()", "numpy", own, 1, ("3",), 1),
        Call("seed", "np.random.seed()", "numpy", inside, 2, (value,), 2),
    )
    assert report.notes(first(observed=seen(calls=calls))) == said
    assert report.notes(again(observed=seen(calls=calls))) == []


def test_several_runs_of_a_cell_are_several_lines():
    ended = [first(), again(), Ended(run(3), run(), False, False)]
    assert report.text(ended).splitlines() == [
        "train, run 1: checkpoint 4f09c1d2 taken under seed 3; drew from python",
        "train, run 2: rewound to 4f09c1d2; same draws",
        "train, run 3: rewound to 4f09c1d2; same draws",
    ]


@pytest.mark.parametrize(("count", "left_out"), [(20, None), (21, 1), (5000, 4980)])
def test_a_cell_that_ran_very_often_shows_its_last_runs_and_says_so(count, left_out):
    ended = [Ended(run(n + 1), run(), False, False) for n in range(count)]
    lines = report.text(ended).splitlines()
    assert lines[-1] == f"train, run {count}: rewound to 4f09c1d2; same draws"
    assert [line for line in lines if line.startswith("train")] == lines[-20:]
    assert lines[:-20] == (
        [f"{left_out} earlier runs of this cell are not shown"] if left_out else []
    )
    page = Page(report.as_html(ended)).text
    assert page.count("train, run") == 20
    assert (f"{left_out} earlier runs are not shown" in page) is bool(left_out)
    assert [r["number"] for r in report.data(ended)["runs"]] == list(range(count - 19, count + 1))


# -- HTML ------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The visible text of a page, its tags and their attributes; tags must be closed in order."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tags, self.attributes, self._open = "", [], [], []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


EVIL = """<script>alert("1")</script> & 'x'"""


@pytest.mark.parametrize(
    "ended",
    [
        first(name=EVIL),
        again(notes=(EVIL,)),
        again(status="error", error=EVIL),
        again(run(losses={EVIL: [1]}), losses={EVIL: [2]}),
        first(ends={EVIL: END}, starts={EVIL: START}),
        again(run(), ends={"python": OTHER, EVIL: END}),
        again(
            run(observed=seen(met={EVIL: 1}, left={EVIL: 1})),
            observed=seen(met={EVIL: 2}, left={EVIL: 2}),
        ),
    ],
)
def test_names_and_texts_of_the_users_are_text_in_html(ended):
    page = report.as_html([ended])
    assert "<script" not in page
    read = Page(page)
    assert set(read.tags) == {"div", "span", "b"}
    if EVIL in report.text([ended]):
        assert EVIL in read.text
    assert html.escape(EVIL) in page or EVIL not in report.text([ended])


@pytest.mark.parametrize(
    ("ended", "mark", "word"),
    [
        (first(), "●", "checkpoint taken"),
        (again(), "=", "same as the first run"),
        (again(ends={"python": OTHER}), "≠", "differs from the first run"),
        (again(run(losses={"a": [1]}), losses={"a": [2]}), "≠", "differs from the first run"),
        (again(status="interrupted"), "!", "not finished"),
        (first(**ERROR), "!", "not finished"),
    ],
)
def test_a_sign_and_its_word_say_the_outcome_without_colour(ended, mark, word):
    page = Page(report.as_html([ended]))
    assert page.text.startswith(f"{mark} ")
    assert ("aria-label", word) in page.attributes
    assert ("title", word) in page.attributes
    assert ("role", "img") in page.attributes


# -- data ------------------------------------------------------------------------------------------


def test_the_data_of_a_run_holds_its_fingerprints():
    ended = again(
        run(losses={"loss": [1, 2]}),
        losses={"loss": [1, 3]},
        ends={"python": OTHER, "numpy": START},
        switches={"threads": 2},
        notes=("a note",),
    )
    found = report.data([first(), ended])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["version"] == 1
    assert found["runs"][1] == {
        "name": "train",
        "number": 2,
        "seed": 3,
        "status": "ok",
        "error": None,
        "start": START,
        "end": END,
        "starts": {"python": START, "numpy": START},
        "ends": {"python": OTHER, "numpy": START},
        "steps": {"loss": 2},
        "switches": {"threads": 2},
        "notes": ["a note"],
        "first": False,
        "text": "train, run 2: rewound to 4f09c1d2; other draws: python ended elsewhere; losses "
        "part at step 1 (2.0, now 3.0)",
        "compared_with": 1,
        "same": False,
        "elsewhere": ["python"],
        "parted": {"loss": 1},
        "values": [],
        "why": [],
    }
    assert found["runs"][0]["first"] is True
    assert "same" not in found["runs"][0]


def test_the_data_of_a_real_run_is_json():
    store = Checkpoints()
    for status in ("ok", "error", "ok"):
        running = store.begin("a", "a", Text(""))
        running.recording.recorder.add("x", math.nan)
        ended = store.end(running, status, "E: x" if status == "error" else None)
    found = report.data([ended])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["runs"][0]["same"] is True
    assert found["runs"][0]["starts"] == dict(ended.run.starts)
    assert all(len(mark) == 32 for mark in found["runs"][0]["ends"].values())


def test_the_mime_type_is_our_own():
    assert report.MIME == "application/vnd.nbseed.runs+json"


def test_the_same_draws_are_claimed_only_of_what_was_rewound():
    said = report.sentence(again(partial=True))
    assert said == "train, run 2: rewound to 4f09c1d2; same draws from what was rewound"
