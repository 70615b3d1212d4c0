"""Why two runs differ, told from hand-made records: each room's causes, their order and words."""

from __future__ import annotations

import re
from array import array

import pytest

from nbseed import content
from nbseed.content import Contents
from nbseed.draws import Draws
from nbseed.recording import Observed
from nbseed.run import Run
from nbseed.unreached import COMPILED, GRADIENTS, GRAPH, ITERATOR, PERSISTENT, POOL
from nbseed.watch import Call
from nbseed.watch.site import Site
from nbseed.why import Explanation, explain, warnings_of
from nbseed.why.cause import cut, listed, place, times

START, END, OTHER = "4f09c1d2" * 4, "0b1c2d3e" * 4, "77777777" * 4

ROOMS = (
    "how the runs ended",
    "the cell's code and its functions",
    "the variables it reads",
    "seeds",
    "entropy that no seed controls",
    "switches, clocks and kernels",
    "files, folders and environment variables",
    "what a rewind does not reach",
)


def run(number: int, observed: Observed | None = None, **kinds) -> Run:
    return Run(**{
        "number": number, "name": "train", "seed": 3, "values": {}, "start": START, "end": END,
        "status": "ok", "ends": {"python": START}, "observed": observed, **kinds,
    })  # fmt: skip


def differing(before: Observed | None, now: Observed | None, first=None, second=None):
    """What is said of two runs whose Python generator ended in two states."""
    base = run(1, before, **(first or {}))
    return explain(base, run(2, now, **{"ends": {"python": OTHER}, **(second or {})}))


def met(functions=None, **values) -> Observed:
    return Observed(met=content.read(values, tuple(values)), functions=functions or {})


def site(line=0, text="", call="", through="", users=True, library="", importing="") -> Site:
    return Site(line, text, call, through, users, library, importing)


def entropy(what: str, count: int = 1, **where) -> Call:
    return Call("entropy", what, "", site(**where), count)


def reseed(stream: str, value: str, count: int = 1, **where) -> Call:
    return Call("seed", f"{stream}.seed()", stream, site(**where), count, (value,), int(value),
        value)  # fmt: skip


def started(kind: str, what: str, count: int = 1, **where) -> Call:
    return Call(kind, what, "", site(**where), count)


def first(told: Explanation):
    """Of the likeliest cause: its weight, words, evidence and remedy."""
    cause = told.causes[0]
    return cause.weight, cause.said, cause.evidence, cause.remedy


EVERYTHING = Observed(
    source=(
        "import os, time, torch\nnp.random.seed(int(time.time()))\ng.seed()\n"
        "while time.time() < end:\n    x = torch.empty(3)\nfor n in set(names):\n    f(n)\n"
        "for name in os.listdir('data'):\n    f(name)"
    ),
    calls=(
        entropy("uuid.uuid4()", line=2),
        reseed("numpy", "3", line=3),
        started("process", "ForkProcess", line=4),
        started("thread", "Thread", line=5),
    ),
    unreached={
        "a": PERSISTENT, "b": POOL, "c": ITERATOR, "d": COMPILED, "e": GRAPH, "f": GRADIENTS,
    },
    alive=("ForkProcess-1",),
    operators=("cumsum",),
    around={"file data.csv": "1234"},
    switches={"threads": 2},
)  # fmt: skip


# -- no cause without a difference -----------------------------------------------------------------


@pytest.mark.parametrize("observed", [None, Observed(), EVERYTHING])
@pytest.mark.parametrize("other", [None, Observed(), EVERYTHING])
def test_equal_runs_have_no_cause_whatever_was_observed(observed, other):
    told = explain(run(1, observed), run(2, other, code="x = 1", partial=True))
    assert (told.same, told.causes, told.ruled_out, told.in_short) == (True, (), (), "")


def test_equal_outcomes_but_another_end_are_not_the_same():
    told = explain(run(1), run(2, status="interrupted"))
    assert told.same is False
    assert told.in_short == "run 2 was interrupted, run 1 went to its end"


@pytest.mark.parametrize("before", [None, Observed()])
@pytest.mark.parametrize("now", [None, Observed()])
def test_a_difference_of_which_nothing_is_known_accuses_nothing(before, now):
    told = differing(before, now)
    assert (told.same, told.causes, told.in_short) == (False, (), "")
    assert told.ruled_out == ROOMS
    assert (told.draws, told.not_compared, told.known, told.restart) == ((), (), (), ())


@pytest.mark.parametrize("pair", [(None, EVERYTHING), (EVERYTHING, None), (EVERYTHING, EVERYTHING)])
def test_a_run_that_was_not_observed_wrong_foots_nobody(pair):
    told = differing(*pair)
    assert told.causes
    assert [c.weight for c in told.causes] == sorted((c.weight for c in told.causes), reverse=True)
    for cause in told.causes:
        assert cause.said
        assert cause.remedy.count("`") % 2 == 0
        assert cause.is_likely is (cause.weight >= 50)


@pytest.mark.parametrize("source", ["def (", "x = '\0'", "((((" * 500, "", "\n", "%time x\n!ls"])
def test_a_text_that_is_no_python_gives_no_cause(source):
    told = differing(Observed(source=source), Observed(source=source), {"code": source},
        {"code": source})  # fmt: skip
    assert told.causes == ()


def test_an_explanation_is_made_once():
    base, other = run(1), run(2, ends={"python": OTHER})
    assert explain(base, other) is explain(base, other)


# -- how the runs ended ----------------------------------------------------------------------------

FAILED = {"status": "error", "error": "ValueError: no"}


@pytest.mark.parametrize(
    ("base", "other", "said"),
    [
        ({}, FAILED, "run 2 ended by ValueError: no, run 1 went to its end"),
        (FAILED, {}, "run 2 went to its end, run 1 ended by ValueError: no"),
        (FAILED, {"status": "interrupted"},
         "run 2 was interrupted, run 1 ended by ValueError: no"),
        (FAILED, {"status": "error", "error": "KeyError: 'x'"},
         "run 2 ended by KeyError: 'x', run 1 ended by ValueError: no"),
    ],
)  # fmt: skip
def test_an_end_before_the_end_comes_first(base, other, said):
    losses = {"values": {"loss": array("d", [1, 2, 3])}}, {"values": {"loss": array("d", [1, 2])}}
    told = differing(EVERYTHING, EVERYTHING, {**base, **losses[0]}, {**other, **losses[1]})
    assert first(told) == (
        100, said, ("loss: compared over the common 2 steps",), "run the cell to its end",
    )  # fmt: skip


def test_the_same_error_twice_is_no_cause():
    assert differing(None, None, FAILED, FAILED).causes == ()


# -- code ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "edits"),
    [
        ("lr = 0.1", "lr = 0.2", ("now lr = 0.2 (was lr = 0.1)",)),
        ("x = 1", "x = 1\ny = 2", ("new: y = 2",)),
        ("x = 1\ny = 2", "y = 2", ("gone: x = 1",)),
        ("def (", "def ((", ("now def (( (was def ()",)),
        ("", "x = 1", ("new: x = 1",)),
        ("x = 1", "x = " + "1" * 80, (f"now x = {'1' * 63}... (was x = 1)",)),
    ],
)
def test_a_changed_cell_is_told_line_by_line(before, now, edits):
    assert first(differing(None, None, {"code": before}, {"code": now})) == (
        98,
        "the cell's code was changed",
        edits,
        "compare runs of one code: another variant, another NAME (`%%rngcheckpoint NAME`)",
    )


def test_of_many_edits_four_are_told():
    before = "\n".join(f"a{i} = 1\nb{i} = 1" for i in range(6))
    now = "\n".join(f"a{i} = 2\nb{i} = 1" for i in range(6))
    evidence = differing(None, None, {"code": before}, {"code": now}).causes[0].evidence
    assert len(evidence) == 5
    assert evidence[0] == "now a0 = 2 (was a0 = 1)"
    assert evidence[-1] == "and 2 more places"


def test_code_too_deep_to_be_parsed_is_compared_as_text():
    deep = "-" * 20000
    changed = differing(None, None, {"code": f"{deep}1"}, {"code": f"{deep}2"})
    assert [cause.weight for cause in changed.causes] == [98]
    assert differing(None, None, {"code": f"{deep}1 + 1"}, {"code": f"{deep}1  + 1"}).causes == ()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("x = 1", "x  =  1"),
        ("x = 1", "x = 1  # a note"),
        ("x = 1", "\n\nx = 1\n"),
        ("f(1, 2)", "f(\n    1,\n    2,\n)"),
    ],
)
def test_layout_and_comments_are_no_change(before, now):
    assert differing(None, None, {"code": before}, {"code": now}).causes == ()


def functions(values: dict) -> dict:
    names: dict = {}
    for text in values.values():
        exec(text, names)
    return {name: names[name] for name in values}


def code(**texts) -> Observed:
    return met(texts, **functions(texts))


def test_changed_functions_are_one_cause():
    one = {"f": "def f():\n    return 1\n", "g": "def g():\n    return 1\n"}
    two = {name: text.replace("1", "2") for name, text in one.items()}
    assert first(differing(code(**one), code(**two))) == (
        96,
        "f and g were changed",
        ("f: now return 2 (was return 1)", "g: now return 2 (was return 1)"),
        "run the first definition again, or `--reset` to start from the new one",
    )
    told = differing(code(**one), code(**{**one, "g": two["g"]}))
    assert [cause.said for cause in told.causes] == ["g was changed"]
    assert differing(code(**one), code(**one)).causes == ()


def test_a_class_that_kept_something_is_told_from_one_that_was_changed():
    text = "class Bag:\n    def add(self):\n        return 1\n"
    names: dict = {"__name__": "__main__"}
    exec(f"{text}    seen = 0\n", names)
    before = met({"Bag": text}, Bag=names["Bag"])
    names["Bag"].seen = 1
    told = differing(before, met({"Bag": text}, Bag=names["Bag"]))
    weight, said, evidence, remedy = first(told)
    assert (weight, said) == (93, "Bag kept something from an earlier call")
    assert evidence[0].startswith("Bag (type): ")
    assert remedy == (
        "set what the class Bag keeps back at the head of the cell, or define it there"
    )


def test_other_draws_are_a_cause_only_where_there_is_no_better_one():
    one = {"draws": {"torch.cpu": Draws("drawn", 640), "numpy": Draws("drawn", 4)}}
    two = {"draws": {"torch.cpu": Draws("drawn", 672), "numpy": Draws("drawn", 4)}}
    told = differing(Observed(**one), Observed(**two))
    line = "torch.cpu: 672 words, run 1: 640 words"
    assert told.draws == (line,)
    assert first(told) == (
        52,
        f"another number of draws ({line})",
        (line,),
        "look for what decides how often the cell draws: a length, a condition, a cache",
    )
    better = differing(Observed(**one), Observed(**two), {"code": "x"}, {"code": "y"})
    assert [cause.weight for cause in better.causes] == [98]
    assert better.draws == (line,)


def test_draws_after_a_seed_of_the_cells_own_count_from_it():
    one = Observed(draws={"python": Draws("re-seeded")}, since={"python": ("3", Draws("drawn", 4))})
    two = Observed(draws={"python": Draws("drawn", 9)}, since={"python": ("3", Draws("drawn", 6))})
    assert differing(one, two).draws == (
        "python: 6 words after seed 3, run 1: 4 words after seed 3",
    )
    same = Observed(draws={"python": Draws("drawn", 9)}, since=one.since)
    assert differing(one, same).draws == ()


# -- variables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "said", "remedy"),
    [
        (0.1, 0.2, "x is 0.2, was 0.1", "`x = 0.1`"),
        ("a", "b", "x is 'b', was 'a'", "`x = 'a'`"),
        (1, 1.0, "x is a float, was an int", "`x = 1`"),
        (0.0, -0.0, "x is -0.0, was 0.0", "`x = 0.0`"),
        ([1], [1, 2], "x was not what run 1 met", None),
    ],
)
def test_another_value_is_named_and_set_back(before, now, said, remedy):
    told = differing(met(x=before), met(x=now))
    cause = told.causes[0]
    assert (len(told.causes), cause.weight, cause.said) == (1, 95, said)
    back = (
        "`%%rngcheckpoint train --with x` puts it back before each run "
        "(make it anew first, and add `--reset` once)"
    )
    assert cause.remedy == (f"{remedy}; or {back}" if remedy else back)
    assert "the variables it reads" not in told.ruled_out


def test_the_plainest_variable_is_told_first():
    told = differing(met(data=[1], lr=0.1), met(data=[2], lr=0.2))
    cause = told.causes[0]
    assert cause.said == "lr and data were not what run 1 met"
    assert [line.partition(":")[0] for line in cause.evidence] == ["lr (float)", "data (list)"]
    assert "--with lr,data` puts them back" in cause.remedy


def test_an_iterator_that_went_on_cannot_go_back():
    numbers = iter([1, 2, 3])
    before = met(batches=numbers)
    next(numbers)
    cause = differing(before, met(batches=numbers)).causes[0]
    assert cause.weight == 95
    assert cause.remedy == "make batches inside the cell: a live iterator cannot go back"


def test_a_variable_that_was_none_before_is_named():
    assert first(differing(met(), met(x=1, y="a"))) == (
        92,
        "x and y were none of the notebook's variables in run 1",
        ("x is a int now", "y is a str now"),
        "`del x, y`, or run the cell that makes it before run 1, with `--reset`",
    )
    late = Observed(met=Contents({}, {"x": "no time left"}))
    assert differing(late, met(x=1)).causes == ()


def test_what_was_left_out_is_not_ruled_out():
    now = Observed(
        met=Contents({}, {"big": "no time left"}), left=Contents({}, {"y": "no time left"})
    )
    told = differing(Observed(), now)
    assert "the variables it reads, as far as they were compared" in told.ruled_out
    assert "the variables it reads" not in told.ruled_out
    assert told.not_compared == (
        "big (no time left)",
        "y (no time left)",
        "%config NBSeed.compare_seconds = 1 gives more time",
    )


def test_what_was_not_looked_into_is_named():
    held = content.Content("Pool", "0" * 32, {}, opaque=("", ".lock"))
    told = differing(Observed(), Observed(met=Contents({"p": held}, {})))
    assert told.not_compared == ("not looked into: p and p.lock",)


# -- seeds and entropy -----------------------------------------------------------------------------


def test_a_seed_made_of_the_clock_is_named_with_what_it_gave():
    source = "import time\nnp.random.seed(int(time.time()))"
    one = Observed(source=source, calls=(reseed("numpy", "17", line=2),))
    two = Observed(source=source, calls=(reseed("numpy", "18", line=2),))
    weight, said, evidence, remedy = first(differing(one, two))
    assert (weight, said) == (97, "a seed is made of the clock (line 2)")
    assert evidence[-1] == "numpy.seed() got 18, before 17 (line 2)"
    assert remedy == "give it a number, such as 3"


@pytest.mark.parametrize(("line", "at"), [(4, " (line 4)"), (0, "")])
def test_another_seed_at_one_place(line, at):
    told = differing(Observed(calls=(reseed("numpy", "1", line=line),)),
        Observed(calls=(reseed("numpy", "2", line=line),)))  # fmt: skip
    assert first(told) == (
        91, f"numpy.seed() got another seed{at}", (f"numpy.seed() got 2, before 1{at}",),
        "seed with the same number in both runs",
    )  # fmt: skip


def test_a_seed_in_one_run_only_is_a_cause_in_either():
    call = reseed("numpy", "1", 3, line=2, through="fit of lib")
    seen, where = Observed(calls=(call,)), "numpy.seed() (line 2) in fit of lib"
    for before, now, has, lacks in ((Observed(), seen, 2, 1), (seen, Observed(), 1, 2)):
        assert first(differing(before, now)) == (
            80,
            f"numpy was re-seeded by fit of lib (line 2) in run {has} only",
            (f"run {has} re-seeded numpy 3 times: {where}; run {lacks} did not",),
            "seed numpy after that call, or not at all in it",
        )  # fmt: skip


def test_a_seed_that_an_import_set_weighs_more():
    call = reseed("python", "0", line=1, through="mine", importing="mine")
    weight, _, _, remedy = first(differing(Observed(), Observed(calls=(call,))))
    assert weight == 94
    assert remedy == "`import mine` in a cell above, before the checkpoint is taken; then `--reset`"


def test_a_library_that_seeds_over_the_user_is_known_though_nothing_differs():
    own, over = reseed("numpy", "3", line=1), reseed("numpy", "0", 2, line=2, through="fit of lib")
    said = (
        "fit of lib re-seeds numpy 2 times (line 2): numpy.seed(); "
        "what is drawn after it does not depend on your seed"
    )
    observed = Observed(calls=(own, over))
    assert explain(run(1, observed), run(2, observed)).known == (said,)
    assert warnings_of(run(1)) == []
    for calls in ((over,), (own,), (own, reseed("numpy", "3", through="fit of lib")),
                  (own, reseed("numpy", "0", through="set_seed of lib"))):  # fmt: skip
        assert warnings_of(run(1, Observed(calls=calls))) == []


PIN = (
    "`%seed 3 --pin-entropy`, or hand a seeded generator to it "
    "(`rng=`, `random_state=`, `v0=` or the like)"
)


@pytest.mark.parametrize(
    ("what", "users", "remedy"),
    [
        ("np.random.default_rng()", True, "`np.random.default_rng(3)`, or `%seed 3 --pin-entropy`"),
        ("a NumPy generator", True, "give it a seed"),
        ("RandomState()", False,
         PIN),
        ("uuid.uuid4()", True, "`uuid.UUID(int=random.getrandbits(128), version=4)`"),
        ("random.seed()", True, "`random.seed(3)`"),
        ("np.random.seed()", True, "`np.random.seed(3)`, or `%seed 3 --pin-entropy`"),
        ("torch.seed()", True, "`torch.manual_seed(3)`"),
        ("os.urandom()", True, "`random.randbytes(n)`"),
        ("secrets.token_hex()", True, "`random.randbytes(n)`, `random.randrange(n)`"),
        ("mystery()", True, "give it a seed"),
    ],
)  # fmt: skip
def test_entropy_is_named_with_its_line_and_a_remedy(what, users, remedy):
    call = entropy(what, 2, line=3, text=f"x = {what}", users=users)
    assert first(differing(Observed(), Observed(calls=(call,)))) == (
        90,
        f"{what} without a seed (line 3)",
        (f"line 3, x = {what}: {what} 2 times, which no seed controls",),
        remedy,
    )


def test_entropy_of_the_first_run_alone_is_said_to_be_that():
    call = entropy("uuid.uuid4()", line=3, text="f()", through="f")
    told = differing(Observed(calls=(call,)), Observed())
    assert told.in_short == "uuid.uuid4() without a seed (line 3 in f)"
    assert told.causes[0].evidence == (
        "line 3, f(): uuid.uuid4() once by way of f, in the first run, which no seed controls",
    )


# -- switches, clocks and kernels ------------------------------------------------------------------


def test_other_switches_are_told_with_how_to_set_them_back():
    one, two = {"threads": 8, "numpy": "1.26"}, {"threads": 2, "numpy": "2.0"}
    assert first(differing(None, None, {"switches": one}, {"switches": two})) == (
        88,
        "threads: 2 now, 8 before",
        ("threads: 2 now, 8 in run 1", "numpy: 2.0 now, 1.26 in run 1"),
        "`torch.set_num_threads(8)`; set numpy back to 1.26",
    )
    assert differing(None, None, {"switches": one}, {"switches": {"other": 1}}).causes == ()


def test_a_loop_by_the_clock_is_told_with_its_steps():
    source = "while time.time() < end:\n    step()"
    values = [{"values": {"loss": array("d", [1.0] * count)}} for count in (5, 7)]
    weight, said, evidence, remedy = first(differing(Observed(), Observed(source=source), *values))
    assert (weight, said) == (82, "the clock decides how many steps run (line 1)")
    assert evidence[-1] == "loss: 7 steps, run 1 5"
    assert remedy == "count steps, not seconds: `for step in range(n)`"


GPU = {"ends": {"python": START, "torch.cuda:0": END}}


@pytest.mark.parametrize(
    ("operators", "benchmark", "weight", "said"),
    [
        (("cumsum", "put"), False, 86, "cumsum and put have no deterministic kernel"),
        (None, False, 25, "kernels on the GPU may add in another order"),
        (None, True, 45, "cuDNN's benchmark picks kernels by their speed"),
    ],
)
def test_kernels_are_suspected_where_all_draws_were_the_same(operators, benchmark, weight, said):
    switches = {"cudnn.benchmark": benchmark}
    values = [{**GPU, "switches": switches, "values": {"loss": array("d", [x])}} for x in (1, 2)]
    told = differing(Observed(), Observed(operators=operators), *values)
    assert [(cause.weight, cause.said) for cause in told.causes] == [(weight, said)]
    assert told.in_short == (said if weight >= 50 else "")


def test_kernels_that_were_looked_for_and_not_found_are_not_suspected():
    values = [{**GPU, "values": {"loss": array("d", [x])}} for x in (1, 2)]
    assert differing(Observed(), Observed(operators=()), *values).causes == ()


# -- files, folders, environment -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("file a.csv", "file a.csv: another content"),
        ("folder data", "folder data: other entries"),
        ("environment variable MODE", "environment variable MODE: 2, was 1"),
        ("environment variable HF_TOKEN", "environment variable HF_TOKEN: another value"),
        ("environment variable MY_API_KEY", "environment variable MY_API_KEY: another value"),
    ],
)
def test_what_stands_around_the_cell_and_changed(name, evidence):
    told = differing(Observed(around={name: "1"}), Observed(around={name: "2"}))
    assert first(told) == (
        66, f"the {name} was changed", (evidence,),
        "read what the first run has read: a copy under another name, or set it back",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "now", "said", "evidence"),
    [
        ({}, {"file a": "1"}, "the file a was not there before", ("file a: new",)),
        ({"file a": "1"}, {}, "the file a was there before", ("file a: gone",)),
        ({"file a": "1"}, {"file b": "1"}, "the file b was not there before",
         ("file b: new", "file a: gone")),
    ],
)  # fmt: skip
def test_what_came_and_went_around_the_cell(before, now, said, evidence):
    told = differing(Observed(around=before), Observed(around=now))
    assert [(c.weight, c.said, c.evidence) for c in told.causes] == [(58, said, evidence)]


# -- what no rewind reaches ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "weight", "said"),
    [
        (PERSISTENT, 97, "x keeps persistent workers, which a rewind does not reach"),
        (POOL, 70,
         "worker processes were at work, and no rewind reaches their generators or their order"),
        (ITERATOR, 60, "x goes on from an earlier run"),
        (GRADIENTS, 53, "x still had gradients of an earlier run"),
        (GRAPH, 45, "x holds a CUDA graph"),
        (COMPILED, 30, "x holds compiled code"),
    ],
)  # fmt: skip
def test_things_out_of_a_rewinds_reach(kind, weight, said):
    told = differing(Observed(), Observed(unreached={"x": kind}))
    assert [(cause.weight, cause.said) for cause in told.causes] == [(weight, said)]
    assert told.in_short == (said if weight >= 50 else "")


def test_gradients_that_both_runs_met_or_that_are_zeroed_are_no_cause():
    held = Observed(unreached={"w": GRADIENTS})
    assert differing(held, held).causes == ()
    zeroed = Observed(source="optimizer.zero_grad()", unreached={"w": GRADIENTS})
    assert differing(Observed(), zeroed).causes == ()


@pytest.mark.parametrize(
    ("call", "weight", "evidence"),
    [
        (started("process", "Popen", line=2), 38, "Popen was started once (line 2)"),
        (started("process", "ForkProcess", 4, through="map of mp"), 70,
         "ForkProcess was started 4 times by map of mp"),
        (started("thread", "Thread", 1200, line=1), 40, "Thread was started 1,200 times (line 1)"),
    ],
)  # fmt: skip
def test_processes_and_threads_that_were_started(call, weight, evidence):
    told = differing(Observed(), Observed(calls=(call,)))
    assert [(cause.weight, cause.evidence) for cause in told.causes] == [(weight, (evidence,))]


def test_a_loaders_workers_take_their_seed_from_a_rewound_stream():
    call = started("process", "ForkProcess", 2, library="torch")
    assert differing(Observed(), Observed(calls=(call,))).causes == ()


def test_generators_that_were_not_rewound_are_named():
    notes = ("not rewound: user:rng is gone", "kept with it: x (8 bytes)")
    told = differing(None, None, {"notes": notes[:1]}, {"partial": True, "notes": notes})
    assert first(told) == (
        85, "some generators were not rewound", notes[:1],
        "`%%rngcheckpoint train --reset` takes it anew, with what is there now",
    )  # fmt: skip


# -- perhaps, ranking, after a restart -------------------------------------------------------------


def test_an_order_that_nothing_fixes_is_only_perhaps_the_cause():
    observed = Observed(source="for n in set(names):\n    f(n)")
    told = differing(observed, observed)
    assert [(cause.weight, cause.is_likely) for cause in told.causes] == [(44, False)]
    assert re.fullmatch(r".* takes an order that nothing fixes \(line 1\)", told.causes[0].said)
    assert told.in_short == ""
    assert told.ruled_out == ROOMS
    assert len(told.restart) == 1
    assert "is another in each process; sorted(...) fixes it" in told.restart[0]
    fixed = Observed(source=observed.source, switches={"PYTHONHASHSEED": "0"})
    assert explain(run(1, fixed), run(2, fixed)).restart == ()


def test_the_likeliest_comes_first_and_the_others_are_counted():
    one = met(lr=0.1)
    two = Observed(met=met(lr=0.2).met, calls=(entropy("uuid.uuid4()", line=1),),
        unreached={"net": COMPILED})  # fmt: skip
    told = differing(one, two, {"code": "x = 1"}, {"code": "x = 2"})
    assert [cause.weight for cause in told.causes] == [98, 95, 90, 30]
    assert told.in_short == "the cell's code was changed; 2 more in %rng why"
    assert told.ruled_out == tuple(ROOMS[i] for i in (0, 3, 5, 6))


# -- phrases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["a"], "a"),
        (("a", "b"), "a and b"),
        (list("abcd"), "a, b, c and d"),
        (list("abcde"), "a, b, c, d and 1 more"),
    ],
)
def test_names_are_listed(names, said):
    assert listed(names) == said


def test_places_counts_and_long_lines():
    assert (place(3), place(2, "step")) == ("line 3", "line 2 of step")
    assert (times(1), times(0), times(1234)) == ("once", "0 times", "1,234 times")
    assert cut("x" * 70) == "x" * 70
    assert cut("x" * 71) == "x" * 67 + "..."
