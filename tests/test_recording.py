"""A run under observation: what is seen of it, and that nothing stays behind."""

from __future__ import annotations

import linecache
import os
import random
import threading
import uuid
import warnings

import numpy as np
import pytest

from nbseed import losses, watch
from nbseed.draws import Draws
from nbseed.recording import BUDGET, VALUE, Observed, Recording, drawn
from nbseed.snapshot import Snapshot, snapshot
from nbseed.text import Text
from nbseed.unreached import ITERATOR


def observed(namespace: dict, text: Text, does=lambda: None, value=None, **kinds) -> Observed:
    recording = Recording(text, namespace, **kinds)
    before = snapshot(())
    recording.begin()
    try:
        does()
    finally:
        seen = recording.end(before, snapshot(()), value)
    return seen


def held(contents) -> dict[str, str]:
    return {name: content.parts.get("", "") for name, content in contents.found.items()}


class Loud:
    """Whatever is asked of it fails."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("asked")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __repr__(self) -> str:
        raise RuntimeError("shown")

    def __bool__(self) -> bool:
        raise RuntimeError("asked")

    def __len__(self) -> int:
        raise RuntimeError("counted")

    __hash__ = None  # type: ignore[assignment]


# -- what is seen ----------------------------------------------------------------------------------


def test_of_an_empty_cell_nothing_is_seen():
    seen = observed({}, Text(""))
    assert (seen.source, seen.functions, seen.calls, seen.since, seen.unreached) == (
        "", {}, (), {}, {},
    )  # fmt: skip
    assert (seen.met.found, seen.left.found, seen.left.left_out) == ({}, {}, {})
    assert seen.draws["python"] == Draws("still")
    assert (seen.carried, seen.operators) == ((), None)
    assert "working directory" in seen.around


def test_what_the_cell_reads_is_seen_before_and_what_it_assigns_after():
    names = {"lr": 1, "other": 5}
    text = Text("y = lr; lr = 2", "y = lr; lr = 2", ("lr",), ("lr",), ("y", "lr"))
    seen = observed(names, text, lambda: names.update(lr=2, y=1))
    assert held(seen.met) == {"lr": "1"}
    assert held(seen.left) == {"y": "1", "lr": "2"}
    assert seen.source == "y = lr; lr = 2"


def test_names_that_are_not_there_or_were_never_assigned_are_left_alone():
    seen = observed({}, Text("", "", ("gone",), ("gone",), ("never",)))
    assert (seen.met.found, seen.left.found) == ({}, {})


@pytest.mark.parametrize("value", [0, "", False, [], np.zeros(0)])
def test_the_cells_value_is_compared_under_a_name_of_its_own(value):
    names: dict = {}
    seen = observed(names, Text("x"), value=value)
    assert list(seen.left.found) == [VALUE]
    assert names == {}


def test_a_cell_without_a_value_has_none_to_compare():
    assert observed({}, Text("x = 1")).left.found == {}


def test_a_measured_time_and_a_throwaway_are_not_compared():
    source = "import time\nt0 = time.time()\n_ = 1\nx = 2"
    names = {"t0": 1.5, "_": 1, "__": 2, "x": 2}
    seen = observed(names, Text(source, source, (), (), ("t0", "_", "__", "x")))
    assert held(seen.left) == {"x": "2"}
    assert seen.left.left_out == {"t0": "a measured time"}


def test_the_functions_that_it_reaches_are_kept_as_text():
    names: dict = {"__name__": "__main__", "lr": 0.1}
    exec("def rate(): return lr\ndef step(): return rate()", names)
    seen = observed(names, Text("step()", "step()", ("step",), ("step",)))
    assert set(seen.met.found) == {"step", "rate", "lr"}
    assert seen.functions == {}  # their text stands nowhere


def test_draws_are_counted_from_the_start():
    seen = observed({}, Text(""), lambda: (random.random(), np.random.rand(2)))
    assert seen.draws["python"] == Draws("drawn", 2)
    assert seen.draws["numpy"] == Draws("drawn", 4)


def test_draws_after_a_seed_of_the_cell_are_counted_from_it():
    names = {"__name__": "__main__"}
    does = Here("import random\nrandom.seed(7)\nx = random.random()", names)
    seen = observed(names, Text(""), does)
    assert seen.since == {"python": ("7", Draws("drawn", 2))}
    assert [(c.kind, c.what, c.stream, c.last) for c in seen.calls] == [
        ("seed", "random.seed()", "python", "7")
    ]


class Here:
    """Code that runs in a namespace, as a cell's does."""

    def __init__(self, source: str, names: dict) -> None:
        self.code, self.names = compile(source, "<cell>", "exec"), names

    def __call__(self) -> None:
        exec(self.code, self.names)


@pytest.mark.parametrize(
    ("source", "kind", "what"),
    [
        ("import uuid\nuuid.uuid4()", "entropy", "os.urandom()"),  # its text is not known
        ("import os\nos.urandom(4)", "entropy", "os.urandom()"),
        ("import threading\nthreading.Thread(target=int).start()", "thread", "Thread"),
    ],
)
def test_what_no_seed_controls_is_seen_while_it_runs_and_only_then(source, kind, what):
    names = {"__name__": "__main__"}
    does = Here(source, names)
    does()
    seen = observed(names, Text(source, source), does)
    assert [call.kind for call in seen.calls] == [kind]
    assert seen.calls[0].count == 1
    assert seen.calls[0].what == what
    does()
    assert len(seen.calls) == 1


def test_files_and_variables_of_the_environment_are_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_MODE", "fast")
    path = tmp_path / "a.csv"
    path.write_text("1")
    source = f"open({str(path)!r}); os.environ['MY_MODE']"
    one = observed({}, Text(source, source)).around
    path.write_text("2")
    two = observed({}, Text(source, source)).around
    assert one["environment variable MY_MODE"] == "fast"
    assert one[f"file {path}"] != two[f"file {path}"]


def test_what_was_carried_is_passed_on():
    assert observed({}, Text(""), carried=("model",)).carried == ("model",)


def test_without_time_variables_are_left_out_and_said():
    names = {"x": list(range(100_000))}
    seen = observed(names, Text("x", "x", ("x",), ("x",), ("x",)), budget=0)
    assert set(seen.met.left_out) | set(seen.met.found) == {"x"}
    assert set(seen.left.left_out) | set(seen.left.found) == {"x"}
    assert BUDGET > 0


@pytest.mark.parametrize("source", ["", "def (", "\0", "((((" * 300, "x = 1"])
def test_hostile_objects_and_any_text_are_borne(source):
    names = {"loud": Loud(), "kinds": [Loud()], "table": {"a": Loud()}}
    every = tuple(names)
    seen = observed(names, Text(source, source, every, every, every), value=Loud())
    looked = {*seen.met.found, *seen.met.left_out}
    assert looked >= set(names)
    assert {*seen.left.found, *seen.left.left_out} == {*names, VALUE}


def test_nothing_of_the_users_moves_and_no_iterator_is_used_up():
    rng, items = np.random.default_rng(1), iter([1, 2, 3])
    names = {"rng": rng, "items": items}
    before, state = snapshot(()), rng.bit_generator.state
    observed(names, Text("", "", ("rng", "items"), ("rng", "items"), ("rng", "items")))
    assert not before.diff(snapshot(()))
    assert rng.bit_generator.state == state
    assert list(items) == [1, 2, 3]


# -- nothing stays behind --------------------------------------------------------------------------

CALLS = (
    (random, "seed"), (random.Random, "seed"), (os, "urandom"), (np.random, "seed"),
    (threading.Thread, "start"), (uuid, "_generate_time_safe"),
)  # fmt: skip


def patched() -> list[object]:
    return [getattr(owner, name) for owner, name in CALLS]


@pytest.mark.parametrize("way", ["end", "abandon", "abandon twice", "never begun"])
def test_afterwards_nothing_is_patched(way):
    before, taken = patched(), snapshot(())
    recording = Recording(Text(""), {})
    if way != "never begun":
        recording.begin()
        assert patched() != before
        assert watch._watches == [recording.watch]
    if way == "end":
        recording.end(taken, snapshot(()))
    else:
        recording.abandon()
    if way == "abandon twice":
        recording.abandon()
    assert patched() == before
    assert watch._watches == []


def test_two_runs_within_one_another_see_what_is_theirs():
    before, taken = patched(), snapshot(())
    outer, inner = Recording(Text("", tracked=("a",)), {}), Recording(Text("", tracked=("b",)), {})
    outer.begin()
    losses.assigned("a", 1)
    inner.begin()
    losses.assigned("b", 2)
    losses.track("loss", 3)
    inner.end(taken, snapshot(()))
    assert patched() != before
    losses.track("loss", 4)
    outer.end(taken, snapshot(()))
    assert patched() == before
    values = [
        {name: list(series.values()) for name, series in recording.recorder.series.items()}
        for recording in (outer, inner)
    ]
    assert values == [{"a": [1.0], "loss": [3.0, 4.0]}, {"b": [2.0], "loss": [3.0]}]


def test_a_library_that_arrives_is_seen_only_during_a_run():
    before = patched()
    recording = Recording(Text(""), {})
    recording.arrived()
    assert patched() == before
    recording.begin()
    recording.arrived()
    recording.abandon()
    recording.arrived()
    assert patched() == before


def test_a_probe_leaves_torchs_switches_as_they_were():
    torch = pytest.importorskip("torch")
    before = torch.are_deterministic_algorithms_enabled()
    recording = Recording(Text(""), {}, probe=True)
    taken = snapshot(())
    recording.begin()
    assert torch.are_deterministic_algorithms_enabled()
    assert recording.end(taken, snapshot(())).operators == ()
    assert torch.are_deterministic_algorithms_enabled() is before


# -- how far ---------------------------------------------------------------------------------------


def test_how_far_generators_went_between_two_snapshots():
    random.seed(1)
    before = snapshot(())
    random.random()
    after = snapshot(())
    assert drawn(before, after, 1000)["python"] == Draws("drawn", 2)
    assert drawn(after, after, 1000)["python"] == Draws("still")
    assert drawn(before, after, 1)["python"].kind == "beyond"


def test_generators_of_one_snapshot_only_are_not_counted():
    one, two = Snapshot({"a": b"1", "b": b"1"}), Snapshot({"b": b"2", "c": b"1"})
    assert drawn(one, two, 10) == {"b": Draws("moved")}
    assert drawn(Snapshot({}), two, 10) == {}


# -- the rest of what is seen ----------------------------------------------------------------------


def test_the_text_of_a_function_is_kept_where_it_is_known():
    text = "def rate():\n    return lr\n"
    names: dict = {"__name__": "__main__", "lr": 0.1}
    linecache.cache["<cell of the test>"] = (len(text), None, text.splitlines(True), "")
    try:
        exec(compile(text, "<cell of the test>", "exec"), names)
        seen = observed(names, Text("rate()", "rate()", ("rate",), ("rate",)))
    finally:
        del linecache.cache["<cell of the test>"]
    assert seen.functions == {"rate": text}
    assert set(seen.met.found) == {"rate", "lr"}


def test_what_no_rewind_reaches_is_seen_as_it_was_before_the_cell():
    names = {"it": (n for n in range(3)), "plain": [1]}
    seen = observed(names, Text("", "", ("it", "plain")), lambda: names.pop("it"))
    assert seen.unreached == {"it": ITERATOR}
    assert seen.alive == ()
    assert {"python", "PYTHONHASHSEED"} <= seen.switches.keys()


def test_a_stream_that_was_seen_to_be_seeded_needs_no_count():
    names = {"__name__": "__main__", "n": 20_000}
    source = "import random\nrandom.seed(3)\nfor _ in range(n):\n    random.random()"
    assert observed(names, Text(source), Here(source, names)).draws["python"].kind == "re-seeded"


def test_only_a_seed_that_the_cell_itself_has_set_is_counted_from():
    names: dict = {"__name__": "__main__"}
    source = "import random\ndef fix(): random.seed(3)\nfix()\nrandom.random()"
    seen = observed(names, Text(source), Here(source, names))
    assert [(call.kind, call.site.through, call.last) for call in seen.calls] == [
        ("seed", "fix", "3")
    ]
    assert seen.since == {}


@pytest.mark.parametrize("seed", ["-3", "'²'", "3.5", "10**30", "None"])
def test_a_seed_that_is_no_plain_number_is_borne(seed):
    names: dict = {"__name__": "__main__"}
    seen = observed(names, Text(""), Here(f"import random\nrandom.seed({seed})", names))
    assert len(seen.calls) == 1
    assert seen.since.keys() <= {"python"}


def test_torchs_stream_is_counted_under_the_name_of_its_generator():
    pytest.importorskip("torch")
    names: dict = {"__name__": "__main__"}
    source = "import torch\ntorch.manual_seed(5)\nx = torch.rand(6)"
    seen = observed(names, Text(source), Here(source, names))
    assert seen.since == {"torch.cpu": ("5", Draws("drawn", 6))}


# -- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["begin", "end"])
def test_a_fault_of_ours_leaves_nothing_patched(monkeypatch, when):
    def broken(*args: object) -> None:
        raise OSError("by the test")

    before, taken = patched(), snapshot(())
    recording = Recording(Text(""), {})
    if when == "end":
        recording.begin()
    monkeypatch.setattr("nbseed.recording.content.read", broken)
    step = {"begin": recording.begin, "end": lambda: recording.end(taken, snapshot(()))}[when]
    with pytest.raises(OSError, match="by the test"):
        step()
    recording.abandon()
    assert patched() == before
    assert watch._watches == []


def test_a_probe_names_the_operators_and_other_warnings_pass():
    torch = pytest.importorskip("torch")

    def unpool() -> None:
        values, where = torch.nn.functional.max_pool2d(
            torch.ones(1, 1, 2, 2), 2, return_indices=True
        )
        torch.nn.functional.max_unpool2d(values, where, 2)
        warnings.warn("of the user's", UserWarning, stacklevel=1)

    shown, filters = warnings.showwarning, list(warnings.filters)
    with pytest.warns(UserWarning, match="of the user's"):
        seen = observed({}, Text(""), unpool, probe=True)
    assert seen.operators == ("max_unpooling2d_forward_out",)
    assert (warnings.showwarning, warnings.filters) == (shown, filters)


def test_an_abandoned_probe_keeps_what_it_found():
    pytest.importorskip("torch")
    recording = Recording(Text(""), {}, probe=True)
    recording.begin()
    recording.abandon()
    recording.abandon()
    assert recording.operators == ()
