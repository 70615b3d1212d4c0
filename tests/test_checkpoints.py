"""Checkpoints and runs in memory: what a cell rewinds to, and what is kept of each execution."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import nbseed
from nbseed import generators, losses, seeding, watch
from nbseed.checkpoint import Checkpoint
from nbseed.checkpoints import Checkpoints
from nbseed.errors import CheckpointError
from nbseed.rewinding import left_out
from nbseed.run import Run
from nbseed.snapshot import Restored, snapshot
from nbseed.text import Text


@pytest.fixture
def store():
    return Checkpoints()


def draw(count=1):
    return [random.random() for _ in range(count)]


def run(store, cell="a", body=draw, status="ok", error=None, value=None, text=None, **options):
    """One execution of a cell; returns what it drew and how it ended."""
    name = cell.partition(":")[2] or cell
    running = store.begin(cell, name, text or Text(f"body of {name}"), **options)
    drawn = body()
    return drawn, store.end(running, status, error, value)


RNG = Text("rng.random()", reads=("rng",), uses=("rng",))

# -- rewinding -------------------------------------------------------------------------------------


def test_a_second_run_draws_what_the_first_one_drew(store):
    drawn, first = run(store, body=lambda: (random.gauss(0, 1), np.random.standard_normal(3)))
    random.seed(99)
    np.random.seed(99)
    again, second = run(store, body=lambda: (random.gauss(0, 1), np.random.standard_normal(3)))
    assert drawn[0] == again[0]
    assert drawn[1].tolist() == again[1].tolist()
    assert (first.run.start, first.run.end) == (second.run.start, second.run.end)
    assert first.run.start != first.run.end
    assert (first.is_first, first.base) == (True, None)
    assert (second.is_first, second.base) == (False, first.run)


def test_the_first_run_draws_as_without_a_checkpoint(store):
    random.seed(5)
    plain = draw(3)
    random.seed(5)
    assert run(store, body=lambda: draw(3))[0] == plain


def test_a_run_holds_what_it_was(store):
    seeding.seed(3)
    _, ended = run(store, "name:train", lambda: losses.track("x", 0.25))
    found = ended.run
    assert (found.number, found.name, found.seed, found.status) == (1, "train", 3, "ok")
    assert (found.error, found.notes, found.code) == (None, (), "body of train")
    assert found.losses["x"].tolist() == [0.25]
    assert found.losses["x"].dtype == np.float64
    assert found.starts == found.ends == snapshot(()).fingerprints
    assert found.start == found.end == snapshot(()).fingerprint
    assert found.switches["python"] == sys.version.split()[0]
    assert repr(found) == (
        f"Run(number=1, name='train', seed=3, start='{found.start}', end='{found.end}', "
        "status='ok', error=None)"
    )
    with pytest.raises(AttributeError):
        found.number = 2


def test_runs_are_numbered_over_all_seeds_of_a_cell(store):
    for seed in (3, 4, 3, 3):
        seeding.seed(seed)
        run(store, "a")
        run(store, "b")
    assert [(r.name, r.number, r.seed) for r in store.runs()] == [
        ("a", 1, 3), ("a", 2, 4), ("a", 3, 3), ("a", 4, 3),
        ("b", 1, 3), ("b", 2, 4), ("b", 3, 3), ("b", 4, 3),
    ]  # fmt: skip


# -- the seed in force -----------------------------------------------------------------------------


def test_a_checkpoint_belongs_to_the_seed_in_force(store):
    unseeded, _ = run(store)
    seeding.seed(3)
    draw()
    three, first = run(store)
    seeding.seed(4)
    four, other = run(store)
    again, _ = run(store)
    seeding.seed(3)
    back, third = run(store)
    assert (again, back) == (four, three)
    assert len({*unseeded, *three, *four}) == 3
    assert [e.is_first for e in (first, other, third)] == [True, True, False]
    assert third.base == first.run
    assert other.run.checkpoint != first.run.checkpoint == third.run.checkpoint


def test_each_cell_has_checkpoints_of_its_own(store):
    seeding.seed(3)
    run(store)
    seeding.seed(3, each_cell=True)
    assert run(store)[1].is_first
    seeding.seed(3)
    assert not run(store)[1].is_first


@pytest.mark.parametrize("option", ["deterministic", "strict"])
def test_switches_and_strictness_are_no_other_seed(store, option):
    seeding.seed(3)
    run(store)
    seeding.seed(3, **{option: True})
    assert not run(store)[1].is_first


def test_entropy_that_is_fed_from_the_seed_is_another_seed(store):
    seeding.seed(3)
    run(store)
    seeding.seed(3, pin_entropy=True)
    _, pinned = run(store, body=lambda: np.random.default_rng().random())
    seeding.seed(3)
    _, plain = run(store)
    assert (pinned.is_first, plain.is_first) == (True, False)
    assert "numpy.entropy" in pinned.run.starts
    assert pinned.run.starts["numpy.entropy"] != pinned.run.ends["numpy.entropy"]
    assert "numpy.entropy" not in plain.run.ends


def test_a_cell_that_seeds_itself_rewinds_to_before_it(store):
    def body():
        first = draw()
        seeding.seed(7, cell="a")
        return first + draw()

    seeding.seed(3)
    one, first = run(store, body=body)
    assert seeding.in_force().seed == 7
    two, second = run(store, body=body)
    three, third = run(store, body=body)
    assert one == two == three
    assert [e.is_first for e in (first, second, third)] == [True, False, False]
    assert [e.run.seed for e in (first, second, third)] == [3, 3, 3]
    assert not any(e.met_other for e in (second, third))
    _, other = run(store, "b")
    assert other.run.seed == 7


def test_a_cell_that_seeds_itself_with_none_in_force_before(store):
    def body():
        seeding.seed(7, cell="a")
        return draw()

    one, first = run(store, body=body)
    two, second = run(store, body=body)
    assert one == two
    assert (first.run.seed, second.run.seed) == (None, None)
    assert (second.is_first, second.met_other) == (False, False)


# -- options ---------------------------------------------------------------------------------------


def test_reset_takes_the_snapshot_anew(store):
    one, first = run(store)
    two, second = run(store, reset=True)
    three, third = run(store)
    assert one != two
    assert three == two
    assert [e.is_first for e in (first, second, third)] == [True, True, False]
    assert (second.base, third.base) == (None, second.run)
    assert [r.number for r in store.runs("a")] == [1, 2, 3]
    assert len(store.kept) == 1


def test_isolate_leaves_the_generators_as_they_were(store):
    draw()
    before = random.getstate()
    one, first = run(store, isolate=True)
    assert random.getstate() == before
    draw(5)
    moved = random.getstate()
    two, second = run(store, isolate=True, status="error", error="E")
    assert random.getstate() == moved
    assert one == two
    assert first.run.end == second.run.end != first.run.start


def test_what_is_tracked_is_recorded_until_the_end(store):
    def body():
        losses.assigned("x", 1)
        losses.assigned("y", 2)
        losses.track("z", 3)

    _, ended = run(store, body=body, text=Text("", tracked=("x", "q")))
    losses.track("z", 4)
    assert {n: v.tolist() for n, v in ended.run.losses.items()} == {"x": [1.0], "z": [3.0]}
    assert ended.run.notes == ("q was never assigned",)


@pytest.mark.parametrize(
    ("status", "error"), [("error", "ValueError: no"), ("interrupted", None), ("ok", None)]
)
def test_a_run_is_kept_however_it_ends_and_the_next_one_rewinds(store, status, error):
    one, first = run(store, status=status, error=error)
    two, second = run(store)
    assert (first.run.status, first.run.error) == (status, error)
    assert one == two
    assert second.base == first.run
    assert first.run.end == second.run.end


def test_runs_are_compared_with_the_first_that_went_to_its_end(store):
    _, broken = run(store, status="error", error="E")
    _, second = run(store, status="interrupted")
    _, whole = run(store)
    _, last = run(store)
    assert (second.base, whole.base, last.base) == (broken.run, broken.run, whole.run)


def test_an_abandoned_run_leaves_nothing_open(store):
    running = store.begin("a", "a", Text(""))
    store.abandon(running)
    assert (losses._recorders, watch._watches) == ([], [])
    assert store.runs() == []
    one = draw()
    assert run(store)[0] == one


def test_a_checkpoint_dropped_by_its_own_cell_ends_well(store):
    _, ended = run(store, body=lambda: store.drop("a"))
    assert ended.run.number == 1
    assert store.runs("a") == [ended.run]


def test_a_run_that_cannot_begin_leaves_nothing_open(store, monkeypatch):
    def broken(*args):
        raise OSError("oh")

    monkeypatch.setattr("nbseed.recording.watch.begin", broken)
    with pytest.raises(OSError, match="oh"):
        store.begin("a", "a", Text(""))
    assert (losses._recorders, watch._watches, seeding._arrivals) == ([], [], [])


# -- variables that are carried --------------------------------------------------------------------


def test_carried_variables_are_put_back_before_each_run(store):
    space = {"items": [1, 2], "count": 5, "values": np.arange(3.0), "other": [1]}
    carry = ("items", "count", "values")
    items, values = space["items"], space["values"]

    def body():
        met = (list(space["items"]), space["count"], space["values"].tolist(), list(space["other"]))
        space["items"].append(9)
        space["count"] += 1
        space["values"] += 1
        space["other"].append(9)
        return met

    met = [run(store, body=body, namespace=space, carry=carry) for _ in range(3)]
    assert [drawn for drawn, _ in met] == [
        ([1, 2], 5, [0.0, 1.0, 2.0], [1]),
        ([1, 2], 5, [0.0, 1.0, 2.0], [1, 9]),
        ([1, 2], 5, [0.0, 1.0, 2.0], [1, 9, 9]),
    ]
    assert space["items"] is items
    assert space["values"] is values
    assert met[0][1].run.notes[0].startswith("kept with it: items, count, values (")
    assert met[1][1].run.notes == ()
    assert [ended.run.observed.carried for _, ended in met] == [carry] * 3


def test_a_run_without_them_puts_nothing_back_and_one_with_them_does_again(store):
    space = {"items": [1]}

    def body():
        space["items"].append(len(space["items"]))
        return list(space["items"])

    seen = [
        run(store, body=body, namespace=space, carry=carry)[0]
        for carry in (("items",), (), ("items",))
    ]
    assert seen == [[1, 1], [1, 1, 2], [1, 1]]


@pytest.mark.parametrize("before", [(), ("other",)])
def test_variables_named_later_are_kept_as_now_and_begin_anew(store, before):
    space = {"items": [1], "other": [0]}

    def body():
        space["items"].append(2)
        return [*space["items"]], draw()

    (_, first), base = run(store, body=body, namespace=space, carry=before)
    (met, drawn), ended = run(store, body=body, namespace=space, carry=("items",))
    (again, redrawn), last = run(store, body=body, namespace=space, carry=("items",))
    assert met == again == [1, 2, 2]
    assert first == drawn == redrawn
    kept, said = ended.run.notes
    assert kept.startswith("kept with it: items (")
    assert said == "items kept as now, not as the first run met them"
    assert last.run.notes == ()
    assert (ended.is_first, ended.base) == (False, None)
    assert last.base is ended.run
    assert base.run.checkpoint != ended.run.checkpoint == last.run.checkpoint


def test_a_reset_keeps_them_anew(store):
    space = {"count": 1}

    def body():
        space["count"] += 1
        return space["count"]

    counts = [
        run(store, body=body, namespace=space, carry=("count",), reset=reset)[0]
        for reset in (False, False, True, False)
    ]
    assert counts == [2, 2, 3, 3]


def test_what_cannot_be_carried_is_refused_and_nothing_has_changed(store):
    before = random.getstate()
    with pytest.raises(CheckpointError) as caught:
        store.begin("a", "a", Text(""), {"count": 1, "other": 2}, ("count", "cout"))
    assert str(caught.value) == (
        "--with cout: there is no variable of that name; there are: count, other"
    )
    with pytest.raises(CheckpointError) as caught:
        store.begin("a", "a", Text(""), {"lines": (n for n in range(3))}, ("lines",))
    assert str(caught.value).startswith("--with lines: ")
    assert (store.names(), dict(store.kept), store.runs()) == ([], {}, [])
    assert (losses._recorders, watch._watches) == ([], [])
    assert random.getstate() == before


def test_a_refused_reset_leaves_the_old_checkpoint(store):
    space = {"count": 1}
    one, _ = run(store, namespace=space, carry=("count",))
    with pytest.raises(CheckpointError):
        store.begin("a", "a", Text(""), space, ("none",), reset=True)
    two, ended = run(store, namespace=space, carry=("count",))
    assert one == two
    assert ended.run.number == 2


def test_a_variable_that_its_content_no_longer_fits_is_refused_and_nothing_has_moved(store):
    space = {"model": torch.nn.Linear(2, 2), "count": 1}
    run(store, namespace=space, carry=("count", "model"))
    space["model"], space["count"] = torch.nn.Linear(3, 3), 7
    draw()
    before = random.getstate()
    with pytest.raises(CheckpointError) as caught:
        store.begin("a", "a", Text(""), space, ("count", "model"))
    assert str(caught.value).startswith("--with model: ")
    assert random.getstate() == before
    assert space["count"] == 7


def test_variables_go_back_to_where_they_were_if_the_generators_cannot(store, monkeypatch):
    space = {"items": [1]}
    run(store, body=lambda: space["items"].append(2), namespace=space, carry=("items",))

    def broken(*args, **kwargs):
        raise OSError("oh")

    monkeypatch.setattr("nbseed.rewinding.restore", broken)
    with pytest.raises(OSError, match="oh"):
        store.begin("a", "a", Text(""), space, ("items",))
    assert space["items"] == [1, 2]


def test_making_copies_moves_no_generator(store):
    class Drawing:
        def __deepcopy__(self, memo):
            random.random()
            return self

    space = {"drawing": Drawing()}
    random.seed(5)
    plain = draw(3)
    random.seed(5)
    one, _ = run(store, body=lambda: draw(3), namespace=space, carry=("drawing",))
    two, _ = run(store, body=lambda: draw(3), namespace=space, carry=("drawing",))
    assert plain == one == two


def test_a_model_and_its_optimizer_go_back_in_place(store):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    space = {"model": model, "optimizer": optimizer}

    def body():
        loss = model(torch.rand(3, 2)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), [p.tolist() for p in model.parameters()]

    drawn = [run(store, body=body, namespace=space, carry=("model", "optimizer"))[0]
             for _ in range(3)]  # fmt: skip
    assert drawn[0] == drawn[1] == drawn[2]
    assert (space["model"], space["optimizer"]) == (model, optimizer)


# -- what is observed ------------------------------------------------------------------------------


def test_what_a_run_meets_calls_and_leaves_is_observed(store):
    space = {"a": 1, "b": [1, 2]}
    text = Text("x = a + b[0]", "\nx = a + b[0]", ("a", "b"), ("a", "b", "x"), ("x",))

    def body():
        random.random()
        space["x"] = 2

    _, ended = run(store, body=body, namespace=space, text=text, value=7.5)
    seen = ended.run.observed
    assert seen.source == "\nx = a + b[0]"
    assert {n: c.kind for n, c in seen.met.found.items()} == {"a": "int", "b": "list"}
    assert {n: c.parts[""] for n, c in seen.left.found.items()} == {
        "x": "2", "the cell's value": "7.5",
    }  # fmt: skip
    assert str(seen.draws["python"]) == "2 words"
    assert seen.draws["numpy"].kind == "still"
    assert (seen.calls, seen.unreached, seen.carried, seen.operators) == ((), {}, (), None)
    assert seen.switches["python"] == sys.version.split()[0]


@pytest.mark.parametrize("name", ["elapsed", "t0", "_", "__"])
def test_measured_times_and_names_for_nothing_are_not_observed(store, name):
    source = f"import time\n{name} = time.time()\nx = 1"
    space = {name: 1.0, "x": 1}
    _, ended = run(store, namespace=space, text=Text(source, source, assigns=(name, "x")))
    assert list(ended.run.observed.left.found) == ["x"]


def test_a_budget_of_nothing_compares_nothing(store):
    store.budget = 0
    _, ended = run(store, namespace={"a": [1], "b": 2}, text=Text("a", "a", ("a", "b")))
    assert ended.run.observed.met.found == {}
    assert list(ended.run.observed.met.left_out) == ["a", "b"]


@pytest.mark.parametrize(("probe", "operators"), [(False, None), (True, ())])
def test_a_probe_asks_for_operators_and_puts_the_switches_back(store, probe, operators):
    before = torch.are_deterministic_algorithms_enabled()
    running = store.begin("a", "a", Text(""), probe=probe)
    assert torch.are_deterministic_algorithms_enabled() is (probe or before)
    assert store.end(running, "ok").run.observed.operators == operators
    assert torch.are_deterministic_algorithms_enabled() is before


# -- objects of the user's -------------------------------------------------------------------------


def test_the_objects_that_a_cell_reads_are_rewound(store):
    space = {"rng": np.random.default_rng(1), "other": np.random.default_rng(2)}
    generators.look_into(space)

    def body():
        return space["rng"].random(), space["other"].random()

    one, first = run(store, body=body, text=RNG)
    two, second = run(store, body=body, text=RNG)
    assert one[0] == two[0]
    assert one[1] != two[1]
    assert [n for n in first.run.starts if n.startswith("user:")] == ["user:rng"]
    assert first.run.ends["user:rng"] == second.run.ends["user:rng"]


def test_an_object_replaced_under_its_name_is_rewound_and_a_lost_one_is_said(store):
    space = {"rng": np.random.default_rng(1)}
    generators.look_into(space)
    one, _ = run(store, body=lambda: space["rng"].random(), text=RNG)
    space["rng"] = np.random.default_rng(77)
    two, _ = run(store, body=lambda: space["rng"].random(), text=RNG)
    assert one == two
    space["rng"] = 5
    _, third = run(store, text=RNG)
    assert third.run.notes == ("not rewound, no longer there: user:rng",)
    space["rng"] = random.Random(5)
    _, fourth = run(store, text=RNG)
    (note,) = fourth.run.notes
    assert note.startswith("not rewound: user:rng: ")


def test_what_the_checkpoint_does_not_hold_is_said(store):
    run(store)
    nbseed.register("mine", random.Random(3))
    _, ended = run(store)
    assert ended.run.notes == ("not in the checkpoint: mine",)
    nbseed.unregister("mine")


def test_numpy_that_comes_with_the_first_recorded_values_is_in_the_checkpoint():
    code = """
        import sys
        from nbseed import losses, seeding
        from nbseed.checkpoints import Checkpoints
        from nbseed.text import Text

        seeding.seed(3)
        store = Checkpoints()
        for _ in range(2):
            running = store.begin("a", "a", Text(""))
            losses.track("x", 1)
            ended = store.end(running, "ok")
        print(ended.run.notes, sorted(ended.run.starts) == sorted(ended.run.ends), ended.met_other)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("() True False\n", "")


@pytest.mark.parametrize(
    ("restored", "said"),
    [
        (Restored(("python",)), []),
        (Restored((), missing=("a", "b")), ["not rewound, no longer there: a, b"]),
        (Restored((), uncovered=("a", "b")), ["not in the checkpoint: a, b"]),
        (Restored((), unfit={"a": "a: too short"}), ["not rewound: a: too short"]),
    ],
)
def test_what_a_rewind_could_not_do_is_a_sentence_each(restored, said):
    assert left_out(restored) == said


# -- the stale-checkpoint trap ---------------------------------------------------------------------
# Steps: a digit seeds, a small letter runs the checkpointed cell of that name, which draws once, a
# capital one runs it edited, so that it draws twice, x draws outside of any, "-" resets the next
# cell, "i" isolates it, "%" is a cell under %%seed. Expected: the steps at which another state was
# met than when the checkpoint was taken.


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # plain re-runs
        ("3a", []),
        ("3aaaa", []),
        ("aaaa", []),
        ("axa", []),
        ("3axa", []),
        ("3abab", []),
        ("abab", []),
        ("3abba", []),
        ("3abaabb", []),
        ("3abcac", []),
        ("3abcacbcba", []),
        ("3abcb", []),
        ("ia-ia", []),
        ("3aibab", []),
        ("3xaxbab", []),
        # full re-runs, top to bottom
        ("3abc3abc", []),
        ("3xaxb3xaxb", []),
        ("3abc3abc3a", []),
        ("3abc3ab", []),
        ("3a%b3a%b", []),
        ("3ab%a", []),
        ("3ab%b", []),
        ("3ab%a%b%", []),
        ("3a4a3a4a", []),
        ("3ab4ab3ab4ab", []),
        ("3aAA", []),
        ("3abiab", []),
        ("3abiaxb", []),
        # what is above has changed
        ("3a3xa", [4]),
        ("3xa3a", [4]),
        ("3a3xa3a", [4]),
        ("3ab3Ab", [5]),
        ("3abAb", [4]),
        ("3abaxb", [5]),
        ("3ab-ab", [5]),
        ("3ab3xab", [5]),
        ("3a3a3xxa", [7]),
        ("3a4a3xa", [6]),
        ("3a%3xa", [5]),
        ("3axb3ab", [6]),
        ("3abc3xabc", [6]),
    ],
)
def test_another_state_than_the_checkpoints_is_met_only_if_what_is_above_changed(
    store, steps, expected
):
    met, options = [], {}
    for index, step in enumerate(steps):
        if step.isdigit():
            seeding.seed(int(step))
        elif step == "x":
            draw()
        elif step == "%":
            with seeding.isolated(5):
                draw()
        elif step == "-":
            options["reset"] = True
        elif step == "i":
            options["isolate"] = True
        else:
            count = 2 if step.isupper() else 1
            _, ended = run(store, step.lower(), lambda n=count: draw(n), **options)
            options = {}
            if ended.met_other:
                met.append(index)
    assert met == expected


def test_seeds_and_cells_of_their_own_are_no_news_from_above(store):
    def seeded(cell):
        seeding.seed_now(seeding.derive(3, cell))
        return run(store, cell)[1].met_other

    seeding.seed(3, each_cell=True)
    assert not any(seeded(cell) for cell in "abcabacbaa")


def test_an_object_that_goes_on_below_is_no_news_from_above(store):
    space = {"rng": np.random.default_rng(1)}
    generators.look_into(space)

    def cell(name):
        return run(store, name, lambda: space["rng"].random(), text=RNG)[1]

    found = []
    for _ in range(2):
        seeding.seed(3)
        found += [cell("a"), cell("b"), cell("a")]
    assert [e.met_other for e in found] == [False] * 6


# -- bounds ----------------------------------------------------------------------------------------


def test_runs_are_bounded_and_the_first_of_each_checkpoint_stays():
    store = Checkpoints(max_runs=4)
    for seed in (3, 3, 3, 4, 4, 4, 4, 4):
        seeding.seed(seed)
        _, ended = run(store)
    assert [(r.number, r.seed) for r in store.runs("a")] == [(1, 3), (4, 4), (7, 4), (8, 4)]
    assert ended.base.number == 4
    seeding.seed(3)
    assert run(store)[1].base.number == 1
    assert [r.number for r in store.runs("a")] == [1, 4, 8, 9]


def test_the_run_that_went_to_its_end_stays_not_the_broken_one_before_it():
    store = Checkpoints(max_runs=3)
    run(store, status="error", error="E")
    for _ in range(5):
        _, ended = run(store)
    assert [r.number for r in store.runs("a")] == [2, 5, 6]
    assert ended.base.number == 2


def test_more_checkpoints_than_runs_are_bounded_too():
    store = Checkpoints(max_runs=3)
    for seed in range(6):
        seeding.seed(seed)
        run(store)
    for _ in range(5):
        run(store, reset=True)
    assert [r.number for r in store.runs("a")] == [4, 5, 11]


def test_checkpoints_are_bounded_and_the_one_used_longest_ago_goes():
    store = Checkpoints(max_checkpoints=2)
    run(store, "a")
    run(store, "b")
    run(store, "a")
    _, ended = run(store, "c")
    assert ended.run.notes == ("the checkpoint of b was dropped: 2 are kept",)
    assert store.names() == ["a", "c"]
    with pytest.raises(CheckpointError) as caught:
        store.runs("b")
    assert str(caught.value) == "no checkpoint is called 'b'; there are: a, c"
    assert run(store, "b")[1].is_first


def test_a_cell_that_keeps_a_checkpoint_keeps_its_runs():
    store = Checkpoints(max_checkpoints=1)
    seeding.seed(3)
    run(store)
    seeding.seed(4)
    _, ended = run(store)
    assert ended.run.notes == ("the checkpoint of a was dropped: 1 are kept",)
    assert [r.seed for r in store.runs("a")] == [3, 4]


def test_a_cell_that_runs_inside_another_may_push_its_checkpoint_out():
    store = Checkpoints(max_checkpoints=1)
    _, outer = run(store, "a", lambda: run(store, "b"))
    assert (outer.run.name, outer.run.number) == ("a", 1)
    assert [r.name for r in store.runs()] == ["b", "a"]


# -- looking ---------------------------------------------------------------------------------------


def test_runs_by_name_are_those_of_all_cells_of_that_name(store):
    for cell in ("id:1:x", "id:2:x"):
        running = store.begin(cell, "same", Text(""))
        store.end(running, "ok")
    assert [r.number for r in store.runs("same")] == [1, 1]
    assert store.names() == ["same"]
    assert store.drop("same") == (2, 0)
    assert (store.runs(), store.names()) == ([], [])


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ((), "no checkpoint is called 'x'; there are: none yet"),
        (("a", "b"), "no checkpoint is called 'x'; there are: a, b"),
    ],
)
@pytest.mark.parametrize("look", [Checkpoints.runs, Checkpoints.find, Checkpoints.drop])
def test_an_unknown_name_is_an_error_that_names_those_there_are(store, cells, text, look):
    for cell in cells:
        run(store, cell)
    with pytest.raises(CheckpointError) as caught:
        look(store, "x")
    assert str(caught.value) == text
    assert store.names() == list(cells)


def test_find_gives_the_checkpoint_of_the_seed_in_force_else_the_newest(store):
    for seed in (3, 4):
        seeding.seed(seed)
        run(store)
    found = store.find("a")
    assert isinstance(found, Checkpoint)
    assert found.seed == 4
    seeding.seed(3)
    assert store.find("a").seed == 3
    seeding.seed(9)
    assert store.find("a").seed == 4


def test_a_cell_whose_checkpoint_is_gone_says_so(store):
    run(store)
    store.kept.clear()
    with pytest.raises(CheckpointError) as caught:
        store.find("a")
    assert str(caught.value) == "a has runs, but no checkpoint"


def test_drop_forgets_a_cell_and_the_next_run_is_its_first(store):
    seeding.seed(3)
    run(store, "a")
    seeding.seed(4)
    run(store, "a")
    run(store, "b")
    assert store.drop("a") == (2, 0)
    assert store.names() == ["b"]
    _, ended = run(store, "a")
    assert (ended.is_first, ended.run.number) == (True, 1)


def test_a_pair_is_the_last_run_and_the_one_it_is_compared_with(store):
    _, broken = run(store, status="error", error="E")
    assert store.pair("a") == (None, broken.run)
    _, second = run(store, status="interrupted")
    assert store.pair("a") == (broken.run, second.run)
    _, whole = run(store)
    assert store.pair("a") == (broken.run, whole.run)
    _, last = run(store)
    run(store, "b")
    assert store.pair("a") == (whole.run, last.run)


def test_a_pair_belongs_to_one_checkpoint(store):
    seeding.seed(3)
    _, first = run(store)
    seeding.seed(4)
    _, other = run(store)
    assert store.pair("a") == (None, other.run)
    seeding.seed(3)
    _, again = run(store)
    assert store.pair("a") == (first.run, again.run)
    _, anew = run(store, reset=True)
    assert store.pair("a") == (None, anew.run)


def test_a_pair_of_two_cells_of_one_name_is_that_of_the_last_one(store):
    for cell in ("id:1:x", "id:2:x", "id:1:x"):
        ended = store.end(store.begin(cell, "same", Text("")), "ok")
    base, last = store.pair("same")
    assert last is ended.run
    assert base.number == 1
    assert base.checkpoint == last.checkpoint


def test_a_pair_of_a_cell_that_has_not_ended_is_an_error(store):
    running = store.begin("a", "a", Text(""))
    with pytest.raises(CheckpointError) as caught:
        store.pair("a")
    assert str(caught.value) == "a has not run to an end yet"
    store.abandon(running)
    with pytest.raises(CheckpointError) as caught:
        store.pair("b")
    assert str(caught.value) == "no checkpoint is called 'b'; there are: a"


def test_the_latest_name_is_that_of_the_cell_that_ran_last(store):
    text = "no checkpointed cell has run; %%rngcheckpoint makes a cell one"
    with pytest.raises(CheckpointError) as caught:
        store.latest_name()
    assert str(caught.value) == text
    run(store, "a")
    run(store, "b")
    assert store.latest_name() == "b"
    store.drop("b")
    with pytest.raises(CheckpointError) as caught:
        store.latest_name()
    assert str(caught.value) == text


def test_the_public_function_looks_into_the_store_of_the_process():
    from nbseed.checkpoints import CHECKPOINTS

    assert nbseed.runs() == []
    _, ended = run(CHECKPOINTS, "a")
    assert nbseed.runs() == nbseed.runs("a") == [ended.run]
    assert isinstance(ended.run, nbseed.Run)
    with pytest.raises(nbseed.NbseedError) as caught:
        nbseed.runs("b")
    assert str(caught.value) == "no checkpoint is called 'b'; there are: a"
    assert nbseed.Run is Run
