"""Nobody is accused falsely, and what is to be typed is right: explanations of hand-made runs."""

from __future__ import annotations

import math
from array import array

import pytest

from nbseed import content
from nbseed.answer import Answer
from nbseed.content import Contents
from nbseed.draws import Draws
from nbseed.recording import Observed
from nbseed.run import Run
from nbseed.unreached import COMPILED, GRADIENTS, ITERATOR, PERSISTENT
from nbseed.watch import Call
from nbseed.watch.site import Site
from nbseed.why import explain

START, END, OTHER = "4f09c1d2" * 4, "0b1c2d3e" * 4, "77777777" * 4


def run(number, observed=None, **kinds):
    return Run(**{
        "number": number, "name": "train", "seed": 3, "values": {}, "start": START, "end": END,
        "status": "ok", "ends": {"python": START}, "observed": observed, **kinds,
    })  # fmt: skip


def differing(before, now, first=None, second=None):
    base = run(1, before, **(first or {}))
    return explain(base, run(2, now, **{"ends": {"python": OTHER}, **(second or {})}))


def met(functions=None, **values):
    return Observed(met=content.read(values, tuple(values)), functions=functions or {})


def site(line=0, text="", call="", through="", users=True, library="", importing=""):
    return Site(line, text, call, through, users, library, importing)


def entropy(what, count=1, **where):
    return Call("entropy", what, "", site(**where), count)


def reseed(stream, value, count=1, **where):
    return Call("seed", f"{stream}.seed()", stream, site(**where), count, (value,), int(value),
        value)  # fmt: skip


def said(told):
    return [(cause.weight, cause.said) for cause in told.causes]


# -- what is not known -----------------------------------------------------------------------------

SEEN = Observed(
    source="x = f(lr)",
    functions={"f": "def f(x):\n    return x\n"},
    met=content.read({"lr": 0.1, "names": ["a"]}, ("lr", "names")),
    calls=(reseed("numpy", "3", line=1),),
    draws={"python": Draws("drawn", 4)},
    around={"working directory": "12", "file a.csv": "34"},
    unreached={"w": GRADIENTS},
    switches={"threads": 2},
)


@pytest.mark.parametrize(("before", "now"), [(None, SEEN), (SEEN, None)])
def test_what_is_not_known_of_one_run_is_no_difference(before, now):
    told = differing(before, now)
    assert (told.causes, told.draws, told.in_short) == ((), (), "")


def test_what_one_run_alone_tells_is_told_though_nothing_is_known_of_the_other():
    call = entropy("uuid.uuid4()", line=1, text="f()")
    for before, now in ((None, Observed(calls=(call,))), (Observed(calls=(call,)), None)):
        cause = differing(before, now).causes[0]
        assert cause.said == "uuid.uuid4() without a seed (line 1)"
        assert cause.evidence == ("line 1, f(): uuid.uuid4() once, which no seed controls",)


# -- seeds and entropy -----------------------------------------------------------------------------


def test_a_line_that_both_runs_ran_is_not_said_to_be_of_the_first_run():
    both = entropy("uuid.uuid4()", line=3, text="a = uuid.uuid4()")
    alone = entropy("uuid.uuid4()", line=5, text="b = uuid.uuid4()")
    told = differing(Observed(calls=(both, alone)), Observed(calls=(both,)))
    assert told.causes[0].evidence == (
        "line 3, a = uuid.uuid4(): uuid.uuid4() once, which no seed controls",
        "line 5, b = uuid.uuid4(): uuid.uuid4() once, in the first run, which no seed controls",
    )


def test_a_seed_that_an_edit_moved_to_another_line_is_the_same_seed():
    texts = {"code": "random.seed(3)\nf()"}, {"code": "# first\nrandom.seed(3)\nf()"}
    calls = [(reseed("python", "3", line=n, call="random.seed(3)"),) for n in (1, 2)]
    one, two = (Observed(calls=seeds) for seeds in calls)
    assert differing(one, two, *texts).causes == ()
    assert said(differing(one, two)) == [
        (80, "python was re-seeded (line 2) in run 2 only")
    ]  # by the same code: another branch was taken
    other = Observed(calls=(reseed("python", "4", line=2, call="random.seed(3)"),))
    assert said(differing(one, other, *texts)) == [
        (80, "python was re-seeded (line 2) in run 2 only")
    ]


def test_seeds_of_one_run_only_are_told_in_the_order_they_came():
    calls = tuple(reseed("numpy", str(n), line=n) for n in range(1, 9))
    told = differing(Observed(), Observed(calls=calls))
    assert said(told) == [(80, "numpy was re-seeded (line 1) in run 2 only")]
    assert told.causes[0].evidence == tuple(
        f"run 2 re-seeded numpy once: numpy.seed() (line {n}); run 1 did not" for n in range(1, 9)
    )


def test_a_seed_of_the_clock_that_was_the_same_in_both_runs_is_not_to_blame():
    source = "random.seed(int(time.time()) // 10**9)"
    one = Observed(source=source, calls=(reseed("python", "1", line=1),))
    assert [cause for cause in differing(one, one).causes if cause.is_likely] == []
    two = Observed(source=source, calls=(reseed("python", "2", line=1),))
    assert said(differing(one, two))[0] == (97, "a seed is made of the clock (line 1)")


@pytest.mark.parametrize("function", ["", "f"])
def test_a_call_that_was_seen_to_take_entropy_is_no_torch_generators(function):
    text = "random.seed()"
    seen = {"source": text} if not function else {"functions": {"f": f"def f():\n    {text}\n"}}
    call = entropy("random.seed()", line=1, through=function)
    told = differing(Observed(**seen), Observed(**seen, calls=(call,)))
    assert [cause.remedy for cause in told.causes] == ["`random.seed(3)`"]


def test_a_torch_generator_that_seeds_itself_is_read_from_the_text():
    seen = Observed(functions={"f": "def f():\n    g.seed()\n"})
    cause = differing(seen, seen).causes[0]
    assert (cause.weight, cause.said) == (84, "g.seed() without a seed (line 2 of f)")
    assert cause.remedy == "`g.manual_seed(3)`"


# -- words and evidence ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "other", "words"),
    [
        ("ok", "error", "run 2 ended by an error, run 1 went to its end"),
        ("error", "interrupted", "run 2 was interrupted, run 1 ended by an error"),
    ],
)
def test_an_error_without_a_text_is_an_error(base, other, words):
    values = {"values": {"loss": array("d", [1])}}
    told = differing(None, None, {"status": base, **values}, {"status": other, **values})
    assert told.in_short == words
    assert told.causes[0].evidence == ("loss: compared over the common 1 step",)


def test_lines_that_are_only_indented_otherwise_are_named():
    before = "for i in range(3):\n    x = f()\n    y = g()"
    now = "for i in range(3):\n    x = f()\ny = g()"
    assert differing(None, None, {"code": before}, {"code": now}).causes[0].evidence == (
        "other blanks: y = g()",
    )
    blanks = differing(None, None, {"code": "x = 'a  b'"}, {"code": "x = 'a b'"})
    assert blanks.causes[0].evidence == ("other blanks: x = 'a b'",)
    text = "x = '''a\nb'''"
    longer = differing(None, None, {"code": text}, {"code": text.replace("\n", "\n\n")})
    assert longer.causes[0].evidence == ("other blank lines",)


def test_a_function_whose_text_is_not_known_is_changed_if_its_code_is():
    def step():
        return 1

    one, kept = met(step=step), step
    step.calls = [1]
    told = differing(one, met(step=kept))
    assert said(told) == [(93, "step kept something from an earlier call")]

    def step():
        return 2

    cause = differing(one, met(step=step)).causes[0]
    assert (cause.weight, cause.said) == (96, "step was changed")
    assert cause.evidence == ("step: other code",)


# -- what is to be typed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "remedy"),
    [
        ("a" * 100, "b", None),  # too long to be typed
        (b"a" * 100, b"b", None),
        (10**80, 1, None),
        (math.nan, 1.0, "`x = float('nan')`"),
        (-math.inf, 1.0, "`x = float('-inf')`"),
        (None, True, "`x = None`"),
        ([1], 2, None),
        ("<b>`", "b", "`x = '<b>`'`"),
    ],
)
def test_what_is_to_be_typed_is_python(before, now, remedy):
    said = differing(met(x=before), met(x=now)).causes[0].remedy
    back = (
        "`%%rngcheckpoint train --with x` puts it back before each run "
        "(make it anew first, and add `--reset` once)"
    )
    assert said == (f"{remedy}; or {back}" if remedy else back)


@pytest.mark.parametrize(
    ("name", "typed"),
    [("train", "train"), ("größe-1", "größe-1"), ("my run", "'my run'"), ("it's", "'it'\"'\"'s'")],
)
def test_a_name_is_quoted_where_it_is_to_be_typed(name, typed):
    named = {"name": name}
    remedy = differing(met(x=[1]), met(x=[2]), named, named).causes[0].remedy
    assert remedy.startswith(f"`%%rngcheckpoint {typed} --with x` ")


@pytest.mark.parametrize(
    ("reason", "helps"),
    [
        ("the time ran out", True),
        ("4.0 GB, over the budget", True),
        ("no time is given for it", True),
        ("it holds over 20000 objects", False),
        ("ValueError while it was read", False),
        ("a measured time", False),
    ],
)
def test_more_time_is_advised_where_it_helps(reason, helps):
    told = differing(Observed(), Observed(left=Contents({}, {"x": reason})))
    tip = "%config NBSeed.compare_seconds = 1 gives more time"
    assert told.not_compared == (f"x ({reason})", *([tip] if helps else []))


# -- what a rewind does not reach ------------------------------------------------------------------


@pytest.mark.parametrize("only", ["before", "now"])
def test_workers_that_lived_before_either_run_are_named(only):
    pair = [
        Observed(alive=("Worker-1", "Worker-2") if w == only else ()) for w in ("before", "now")
    ]
    cause = differing(*pair).causes[0]
    assert cause.weight == 70
    assert cause.evidence == ("alive before the cell began: Worker-1 and Worker-2",)


@pytest.mark.parametrize(
    ("observed", "said"),
    [
        (
            {"unreached": {"a": PERSISTENT, "b": PERSISTENT}},
            "a and b keep persistent workers, which a rewind does not reach",
        ),
        ({"unreached": {"a": COMPILED, "b[0]": COMPILED}}, "a and b[0] hold compiled code"),
        ({"unreached": {"a": ITERATOR, "b": ITERATOR}}, "a and b go on from an earlier run"),
        ({"operators": ("cumsum", "put")}, "cumsum and put have no deterministic kernel"),
    ],
)
def test_several_things_are_named_in_one_sentence(observed, said):
    told = differing(Observed(), Observed(**observed))
    assert [cause.said for cause in told.causes] == [said]


def test_another_working_directory_is_another_folder():
    told = differing(*(Observed(around={"working directory": n}) for n in "12"))
    assert told.causes[0].said == "the working directory was changed"
    assert told.causes[0].evidence == ("working directory: another folder",)


def test_iterators_whose_change_is_told_as_a_variables_are_not_told_twice():
    def numbers():
        yield from (1, 2, 3)

    it = numbers()
    one = Observed(met=content.read({"it": it}, ("it",)), unreached={"it": ITERATOR})
    next(it)
    two = Observed(met=content.read({"it": it}, ("it",)), unreached={"it": ITERATOR})
    told = differing(one, two)
    assert said(told) == [(95, "it was not what run 1 met")]
    assert differing(one, one).causes == ()  # made anew before the second run


# -- on the page -----------------------------------------------------------------------------------


def test_names_and_values_with_markup_are_text_on_the_page():
    evil = "<script>alert(1)</script>"
    told = differing(
        Observed(met=content.read({"d": {evil: 1}}, ("d",)), around={f"file {evil}": "1"}),
        Observed(met=content.read({"d": {evil: 2}}, ("d",)), around={f"file {evil}": "2"}),
        {"code": f"x = '{evil}'", "name": evil},
        {"code": f"y = '{evil}'", "name": evil},
    )
    assert [cause.weight for cause in told.causes] == [98, 95, 66]
    assert all(evil in "".join(cause.evidence) for cause in told.causes)
    page = Answer("head", told)._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4
