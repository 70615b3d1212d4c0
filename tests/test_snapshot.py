"""Snapshots: fingerprints, differences, and restores that are all or nothing."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import nbseed
from nbseed import generators
from nbseed.errors import CoverageError, NbseedError, StateError
from nbseed.generators.python import PythonGenerator
from nbseed.generators.torch import TorchGenerator
from nbseed.snapshot import Snapshot

# -- fingerprints ----------------------------------------------------------------------------------


def test_a_fingerprint_is_the_blake2b_of_the_state() -> None:
    taken = nbseed.snapshot()
    assert taken.fingerprints == {
        name: hashlib.blake2b(state, digest_size=16).hexdigest()
        for name, state in taken.states.items()
    }
    assert nbseed.fingerprints() == taken.fingerprints


KNOWN = [
    ({}, "cae66941d9efbd404e4d88758ea67670"),
    ({"a": b""}, None),
    ({"a": b"1", "b": b"2"}, None),
]


@pytest.mark.parametrize(("states", "known"), KNOWN)
def test_the_fingerprint_of_a_snapshot_is_over_its_sorted_pairs(
    states: dict[str, bytes], known: str | None
) -> None:
    text = b""
    for name in sorted(states):
        for part in (name.encode(), states[name]):
            text += len(part).to_bytes(8, "little") + part
    expected = hashlib.blake2b(text, digest_size=16).hexdigest()
    assert Snapshot(states).fingerprint == expected
    assert known in (None, expected)


def test_the_order_of_generators_does_not_count() -> None:
    assert Snapshot({"a": b"1", "b": b"2"}).fingerprint == (
        Snapshot({"b": b"2", "a": b"1"}).fingerprint
    )


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": b"bc"}, {"ab": b"c"}),
        ({"a": b"1"}, {"a": b"1", "b": b""}),
        ({"a": b"1", "b": b"2"}, {"a": b"2", "b": b"1"}),
        ({"a": b""}, {}),
    ],
)
def test_other_pairs_have_another_fingerprint(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    assert Snapshot(one).fingerprint != Snapshot(two).fingerprint


def test_fingerprints_do_not_lag_behind_the_draws() -> None:
    """Those of states that have not moved are remembered."""
    nbseed.seed(3)
    first = nbseed.fingerprints()
    random.random()
    second = nbseed.fingerprints()
    nbseed.seed(3)
    assert nbseed.fingerprints() == first
    assert {name for name in first if first[name] != second[name]} == {"python"}


def test_a_snapshot_is_a_copy_that_no_draw_changes() -> None:
    taken = nbseed.snapshot()
    fingerprint = taken.fingerprint
    states = dict(taken.states)
    random.random(), np.random.rand(2000), torch.rand(2000)
    assert taken.states == states
    assert Snapshot(taken.states).fingerprint == fingerprint


SAME = """
    import random
    import numpy as np
    import torch
    import nbseed
    from nbseed import generators
    rng, sets = np.random.default_rng(5), {"b", "a", "c"}
    generators.look_into({"rng": rng, "sets": sets, "seq": np.random.SeedSequence(5)})
    nbseed.seed(3)
    random.gauss(0, 1), np.random.standard_normal(3), torch.randn(3), rng.normal()
    taken = nbseed.snapshot()
    print(taken.fingerprint)
    print(taken.fingerprints)
"""


def test_fingerprints_are_equal_in_every_process() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SAME)],
            check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(said) == 1
    (text,) = said
    assert re.fullmatch(r"[0-9a-f]{32}\n\{.*'user:rng': '[0-9a-f]{32}'.*\}\n", text)


# -- what is seen ----------------------------------------------------------------------------------


def test_a_snapshot_shows_its_generators() -> None:
    taken = Snapshot({"python": b"1", "numpy": b"2"})
    assert repr(taken) == f"<Snapshot {taken.fingerprint[:8]}: python, numpy>"
    assert repr(Snapshot({})) == "<Snapshot cae66941: no generators>"


DIFFERENCES = [
    ({"a": b"1"}, {"a": b"1"}, ((), (), ()), "no difference"),
    ({"a": b"1"}, {"a": b"2"}, (("a",), (), ()), "differ: a"),
    (
        {"c": b"1", "a": b"1", "b": b"1"},
        {"c": b"2", "a": b"2", "b": b"1"},
        (("a", "c"), (), ()),
        "differ: a, c",
    ),
    (
        {"a": b"1", "z": b"1", "y": b"1"},
        {"a": b"2", "x": b"1"},
        (("a",), ("y", "z"), ("x",)),
        "differ: a; only in the first: y, z; only in the second: x",
    ),
    ({}, {"a": b""}, ((), (), ("a",)), "only in the second: a"),
]


@pytest.mark.parametrize(("one", "two", "parts", "said"), DIFFERENCES)
def test_a_difference_names_the_generators(
    one: dict[str, bytes], two: dict[str, bytes], parts: tuple[Any, ...], said: str
) -> None:
    found = Snapshot(one).diff(Snapshot(two))
    assert (found.changed, found.only_first, found.only_second) == parts
    assert str(found) == said
    assert bool(found) is any(parts)


def test_each_draw_shows_in_the_generator_it_came_from() -> None:
    before = nbseed.snapshot()
    for draw, name in [
        (random.random, "python"),
        (np.random.rand, "numpy"),
        (lambda: torch.rand(1), "torch.cpu"),
    ]:
        draw()  # type: ignore[operator]
        after = nbseed.snapshot()
        assert before.diff(after).changed == (name,)
        before = after


def test_generators_that_arrive_join_a_snapshot_and_move_nothing_in_it() -> None:
    joined = Snapshot({"a": b"1"}, ("note",)).joined({"a": b"2", "b": b"3"})
    assert joined.states == {"a": b"1", "b": b"3"}
    assert joined.notes == ("note",)


# -- strict and not --------------------------------------------------------------------------------


class Board:
    """A generator of the user's that may refuse, before or after it has moved."""

    def __init__(self) -> None:
        self.state = b"start"
        self.fault: BaseException | None = None
        self.moves_first = False

    def get_state(self) -> bytes:
        return self.state

    def set_state(self, state: bytes) -> None:
        fault, self.fault = self.fault, None  # once: it can be put back
        if fault is not None and not self.moves_first:
            raise fault
        self.state = state
        if fault is not None:
            raise fault


def test_a_generator_that_is_gone_is_named_and_nothing_moves() -> None:
    for name in ("b1", "b2"):
        nbseed.register(name, Board())
    taken = nbseed.snapshot()
    nbseed.unregister("b1")
    nbseed.unregister("b2")
    random.random()
    before = nbseed.snapshot()
    with pytest.raises(CoverageError) as caught:
        nbseed.restore(taken)
    assert str(caught.value) == (
        "no longer there: b1, b2; restore(..., strict=False) sets the others"
    )
    assert not before.diff(nbseed.snapshot())
    done = nbseed.restore(taken, strict=False)
    assert done.missing == ("b1", "b2")
    assert nbseed.snapshot().states["python"] == taken.states["python"]


def test_a_generator_that_is_new_is_named_and_nothing_moves() -> None:
    taken = nbseed.snapshot()
    board = nbseed.register("b1", Board())
    random.random()
    before = nbseed.snapshot()
    with pytest.raises(CoverageError) as caught:
        nbseed.restore(taken)
    assert str(caught.value) == (
        "not in the snapshot: b1; restore(..., strict=False) sets the others"
    )
    assert not before.diff(nbseed.snapshot())
    board.state = b"moved"
    done = nbseed.restore(taken, strict=False)
    assert done.uncovered == ("b1",)
    assert "b1" not in done.names
    assert board.state == b"moved"
    assert nbseed.snapshot().states["python"] == taken.states["python"]


def test_both_at_once_are_both_named() -> None:
    nbseed.register("old", Board())
    taken = nbseed.snapshot()
    nbseed.unregister("old")
    nbseed.register("new", Board())
    with pytest.raises(CoverageError) as caught:
        nbseed.restore(taken)
    assert str(caught.value) == (
        "no longer there: old; not in the snapshot: new; restore(..., strict=False) sets the others"
    )


def test_a_whole_restore_says_what_it_set() -> None:
    done = nbseed.restore(nbseed.snapshot())
    assert set(done.names) == set(nbseed.snapshot().states)
    assert (done.missing, done.uncovered, dict(done.unfit)) == ((), (), {})


def test_only_the_variables_asked_for_are_covered_and_restored() -> None:
    one, two = random.Random(1), random.Random(2)
    generators.look_into({"one": one, "two": two})
    taken = nbseed.snapshot(["one"])
    assert [name for name in taken.states if name.startswith("user:")] == ["user:one"]
    first, moved = one.random(), two.random()
    nbseed.restore(taken, names=["one"])
    assert one.random() == first
    assert two.random() != moved
    with pytest.raises(CoverageError, match=r"^not in the snapshot: user:two; "):
        nbseed.restore(taken)


# -- damaged, foreign and partial ------------------------------------------------------------------


@pytest.mark.parametrize("thing", [None, 3, b"bytes", {"python": b""}, "python"])
def test_what_is_no_snapshot_is_refused(thing: Any) -> None:
    before = nbseed.snapshot()
    with pytest.raises(StateError) as caught:
        nbseed.restore(thing)
    assert str(caught.value) == f"restore() takes a Snapshot, got {type(thing).__name__}"
    assert not before.diff(nbseed.snapshot())


BROKEN: list[tuple[str, object, str]] = [
    ("python", b"", "python: 0 bytes, expected 2509"),
    ("python", b"\xff" * 2509, "python: not a state of Python's random"),
    ("python", None, "python: the state is a NoneType, expected bytes"),
    ("python", "text", "python: the state is a str, expected bytes"),
    ("python", bytearray(2509), "python: the state is a bytearray, expected bytes"),
    ("numpy", b"MT19937\0", "numpy: 8 bytes, expected 2520"),
    ("numpy", b"MT19937\0" + b"\xff" * 2512, "numpy: not a state of MT19937"),
    ("numpy", b'{"bit_generator":"Dice"}', "numpy: unknown bit generator 'Dice'"),
    ("numpy", b'{"bit_generator":"default_rng"}', "numpy: unknown bit generator 'default_rng'"),
    ("numpy", b"{}", "numpy: not a state of a NumPy bit generator"),
    ("numpy", b"[" * 100_000, ""),
    ("torch.cpu", bytes(16), "torch.cpu: 16 bytes, expected 5056"),
    ("torch.cpu", bytes(5056), "torch.cpu: not a state of torch's CPU generator"),
]


@pytest.mark.parametrize(("name", "state", "said"), BROKEN)
def test_a_broken_part_is_one_clear_error_and_nothing_moves(
    name: str, state: object, said: str
) -> None:
    taken = nbseed.snapshot()
    random.random(), np.random.rand(), torch.rand(1)
    before = nbseed.snapshot()
    damaged: Any = Snapshot({**taken.states, name: state})  # type: ignore[dict-item]
    with pytest.raises(StateError) as caught:
        nbseed.restore(damaged)
    assert str(caught.value).startswith(said or f"{name}: ")
    assert "\n" not in str(caught.value)
    assert not before.diff(nbseed.snapshot())
    done = nbseed.restore(damaged, strict=False)
    assert dict(done.unfit) == {name: str(caught.value)}
    after = nbseed.snapshot()
    assert after.states[name] == before.states[name]
    assert {n for n in after.states if after.states[n] == taken.states[n]} >= (
        set(taken.states) - {name}
    )


def test_states_under_each_others_names_are_refused() -> None:
    taken = nbseed.snapshot()
    before = dict(taken.states)
    swapped = {**before, "python": before["numpy"], "numpy": before["python"]}
    with pytest.raises(StateError):
        nbseed.restore(Snapshot(swapped))
    assert nbseed.snapshot().states == before


def test_a_partial_snapshot_sets_its_part() -> None:
    taken = nbseed.snapshot()
    random.random(), np.random.rand()
    moved = nbseed.snapshot().states["numpy"]
    done = nbseed.restore(Snapshot({"python": taken.states["python"]}), strict=False)
    assert done.names == ("python",)
    assert "numpy" in done.uncovered
    after = nbseed.snapshot()
    assert after.states["python"] == taken.states["python"]
    assert after.states["numpy"] == moved


def test_an_empty_snapshot_sets_nothing() -> None:
    before = nbseed.snapshot()
    done = nbseed.restore(Snapshot({}), strict=False)
    assert done.names == ()
    with pytest.raises(CoverageError, match=r"^not in the snapshot: python, "):
        nbseed.restore(Snapshot({}))
    assert not before.diff(nbseed.snapshot())


def test_no_state_is_a_pickle() -> None:
    generators.look_into({"rng": np.random.default_rng(1), "r": random.Random(1)})
    for state in nbseed.snapshot().states.values():
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError)):
            pickle.loads(state)


# -- all or nothing --------------------------------------------------------------------------------

FAULTS: list[BaseException] = [
    OSError("the board does not answer"),
    StateError("b: not after all"),
    KeyboardInterrupt(),
    SystemExit(3),
]


@pytest.mark.parametrize("moves_first", [False, True], ids=["before it moved", "after it moved"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("position", range(4))
def test_a_registered_generator_that_fails_at_any_position_moves_no_other(
    position: int, fault: BaseException, moves_first: bool
) -> None:
    boards = [nbseed.register(f"b{number}", Board()) for number in range(4)]
    taken = nbseed.snapshot()
    for board in boards:
        board.state = b"moved"
    random.random(), np.random.rand(), torch.rand(1)
    before = nbseed.snapshot()
    boards[position].fault, boards[position].moves_first = fault, moves_first
    with pytest.raises(type(fault)) as caught:
        nbseed.restore(taken)
    assert caught.value is fault
    assert not before.diff(nbseed.snapshot())
    nbseed.restore(taken)
    assert nbseed.snapshot().states == taken.states


def failing_once(method: Callable[..., None], fails: str, fault: BaseException) -> Any:
    """The method, which for the generator named `fails` raises the first time."""
    left = [fault]

    def call(self: Any, state: bytes) -> None:
        if self.name == fails and left:
            raise left.pop()
        method(self, state)

    return call


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PythonGenerator, "python"),
        (type(generators.numpy._global()), "numpy"),
        (TorchGenerator, "torch.cpu"),
        (PythonGenerator, "user:rng"),
    ],
    ids=["python", "numpy", "torch.cpu", "user:rng"],
)
def test_a_librarys_generator_that_fails_moves_no_other(
    kind: Any, name: str, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)
    generators.look_into({"rng": rng, "zz": np.random.default_rng(1)})
    taken = nbseed.snapshot()
    random.random(), np.random.rand(), torch.rand(1), rng.random()
    before = nbseed.snapshot()
    monkeypatch.setattr(kind, "set_state", failing_once(kind.set_state, name, fault))
    with pytest.raises(type(fault)) as caught:
        nbseed.restore(taken)
    assert caught.value is fault
    assert not before.diff(nbseed.snapshot())


@pytest.mark.parametrize("fault", FAULTS[:2], ids=lambda fault: type(fault).__name__)
def test_a_state_that_cannot_be_read_for_the_way_back_moves_nothing(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = nbseed.register("b", Board())
    taken = nbseed.snapshot()
    random.random(), np.random.rand()
    before = nbseed.snapshot()

    def unreadable() -> bytes:
        raise fault

    monkeypatch.setattr(board, "get_state", unreadable)
    with pytest.raises(type(fault)):
        nbseed.restore(taken)
    monkeypatch.undo()
    assert not before.diff(nbseed.snapshot())


class Stuck(Board):
    """Moves at the first call, and refuses from then on."""

    broken = False

    def set_state(self, state: bytes) -> None:
        if self.broken:
            raise OSError("stuck")
        self.state, self.broken = state, True
        raise OSError("moved, then stuck")


def test_a_generator_that_cannot_be_put_back_is_said_and_does_not_keep_the_others() -> None:
    nbseed.register("a", Board())
    stuck = nbseed.register("b", Stuck())
    taken = nbseed.snapshot()
    stuck.state = b"moved"
    random.random(), np.random.rand(), torch.rand(1)
    before = nbseed.snapshot()
    said = r"^nbseed: b could not be put back$"
    with pytest.warns(RuntimeWarning, match=said), pytest.raises(OSError, match=r"^moved, then"):
        nbseed.restore(taken)
    assert before.diff(nbseed.snapshot()).changed == ("b",)


def test_a_generator_that_never_moves_is_no_reason_to_warn() -> None:
    class Frozen(Board):
        def set_state(self, state: bytes) -> None:
            raise OSError("frozen")

    nbseed.register("b", Frozen())
    taken = nbseed.snapshot()
    random.random(), np.random.rand(), torch.rand(1)
    before = nbseed.snapshot()
    with pytest.raises(OSError, match=r"^frozen$"):
        nbseed.restore(taken)
    assert not before.diff(nbseed.snapshot())


def test_all_errors_are_nbseeds_and_value_errors_where_a_value_is_wrong() -> None:
    assert issubclass(StateError, NbseedError)
    assert issubclass(StateError, ValueError)
    assert issubclass(CoverageError, NbseedError)


def test_what_a_restore_did_reads_as_a_sentence() -> None:
    before = nbseed.snapshot()
    done = nbseed.restore(before)
    assert repr(done) == f"<restored {', '.join(before.states)}>"
    part = nbseed.restore(nbseed.Snapshot({"x": b""}), strict=False)
    there = ", ".join(before.states)
    assert repr(part) == f"<restored nothing; no longer there: x; not in the snapshot: {there}>"
