"""Going back: generators and carried variables, both or none; what could not go is said."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from nbseed import generators
from nbseed.carried import Carried
from nbseed.errors import CheckpointError, StateError
from nbseed.rewinding import carry, left_out, rewind, variables
from nbseed.snapshot import Restored, Snapshot, snapshot


class Drawing:
    """Its copy draws, as a user's may."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def __deepcopy__(self, memo: dict) -> Drawing:
        random.random()
        np.random.rand()
        return Drawing(self.value)


class Fails:
    def __deepcopy__(self, memo: dict) -> Fails:
        random.random()
        raise self.error("no copy")

    error: type[BaseException] = ValueError


class Stops(Fails):
    error = KeyboardInterrupt


class Loud:
    """Nothing but being held is asked of it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __repr__(self) -> str:
        raise RuntimeError("shown")

    def __bool__(self) -> bool:
        raise RuntimeError("asked")

    __hash__ = None  # type: ignore[assignment]


def kept(names: dict, taken: Snapshot) -> Carried:
    found = carry(names, tuple(names), taken, [])
    assert found is not None
    return found


# -- carry -----------------------------------------------------------------------------------------


def test_without_names_nothing_is_kept_or_said():
    notes: list[str] = []
    assert carry({"x": Fails()}, (), snapshot(), notes) is None
    assert notes == []


def test_what_is_kept_is_noted_with_its_size():
    notes = ["before"]
    found = carry({"a": [1], "b": np.zeros(1000)}, ("a", "b"), snapshot(), notes)
    assert found.names == ("a", "b")
    assert notes[0] == "before"
    assert len(notes) == 2
    assert re.fullmatch(r"kept with it: a, b \(8\.\d kB\)", notes[1])


def test_what_a_copy_lacks_is_noted_behind_it():
    notes: list[str] = []
    data = [1, 2]
    carry({"bag": [data], "data": data}, ("bag",), snapshot(), notes)
    assert [note.partition(" ")[0] for note in notes] == ["kept", "--with"]
    assert notes[1] == "--with bag: it holds data, copied with it; name it too to share it"


def test_a_copy_that_draws_moves_no_generator():
    taken = snapshot()
    kept({"x": Drawing(3)}, taken)
    assert not taken.diff(snapshot())


@pytest.mark.parametrize(
    ("value", "error"), [(Fails(), CheckpointError), (Stops(), KeyboardInterrupt)]
)
def test_a_copy_that_fails_moves_no_generator_and_notes_nothing(value, error):
    taken, notes = snapshot(), []
    with pytest.raises(error):
        carry({"x": value}, ("x",), taken, notes)
    assert not taken.diff(snapshot())
    assert notes == []


def test_a_name_that_is_not_there_is_refused_in_one_line():
    taken = snapshot()
    with pytest.raises(CheckpointError, match="there is no variable of that name") as caught:
        carry({"model": 1}, ("modle",), taken, [])
    assert "\n" not in str(caught.value)
    assert "model" in str(caught.value)


# -- rewind ----------------------------------------------------------------------------------------


def test_generators_and_variables_go_back_together():
    taken, names = snapshot(), {"items": [1, 2], "x": 3}
    items, copy = names["items"], kept(names, taken)
    first = random.random(), np.random.rand()
    items.append(9)
    names["x"] = 4
    restored = rewind(taken, copy, names, ())
    assert names == {"items": [1, 2], "x": 3}
    assert names["items"] is items
    assert (random.random(), np.random.rand()) == first
    assert {"python", "numpy"} <= set(restored.names)


def test_one_copy_serves_many_runs():
    taken, names = snapshot(), {"items": [[1]]}
    copy = kept(names, taken)
    for _ in range(3):
        rewind(taken, copy, names, ())
        assert names == {"items": [[1]]}
        names["items"][0].append(2)


def test_without_a_copy_no_variable_is_touched():
    taken, names = snapshot(), {"x": [1]}
    names["x"].append(2)
    random.random()
    rewind(taken, None, names, ())
    assert names == {"x": [1, 2]}
    assert not taken.diff(snapshot())


def test_what_a_copy_draws_while_it_goes_back_is_undone():
    taken, names = snapshot(), {"x": Drawing(3)}
    copy = kept(names, taken)
    names["x"].value = 4
    rewind(taken, copy, names, ())
    assert names["x"].value == 3
    assert not taken.diff(snapshot())


def test_a_deleted_variable_comes_back_and_others_stay():
    taken, names = snapshot(), {"x": [1]}
    copy, loud = kept(names, taken), Loud()
    names.clear()
    names["loud"] = loud
    rewind(taken, copy, names, ())
    assert list(names) == ["loud", "x"]
    assert names["x"] == [1]
    assert names["loud"] is loud


class Stuck:
    """A generator that once will not be set."""

    stuck = False

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def get_state(self) -> bytes:
        return b"here"

    def check_state(self, state: bytes) -> None:
        """Any will do."""

    def set_state(self, state: bytes) -> None:
        if self.stuck:
            self.stuck = False
            raise self.error

    def seed(self, seed: int) -> None:
        """It has none."""


@pytest.mark.parametrize("error", [StateError("no"), ValueError("no"), KeyboardInterrupt()])
def test_a_generator_that_fails_takes_the_variables_back_to_where_they_were(error):
    stuck = Stuck(error)
    generators.register("stuck", stuck)
    taken, names = snapshot(), {"items": [1], "x": 1}
    copy = kept(names, taken)
    names["items"].append(2)
    names["x"] = 2
    np.random.rand()
    random.random()
    here = snapshot()
    stuck.stuck = True
    with pytest.raises(type(error)):
        rewind(taken, copy, names, ())
    assert not stuck.stuck
    assert names == {"items": [1, 2], "x": 2}
    assert not here.diff(snapshot())


def test_variables_that_fail_leave_the_generators_alone():
    class Fussy(Drawing):
        fussy = False

        def __deepcopy__(self, memo: dict) -> Fussy:
            if self.fussy:
                raise ValueError("no more")
            return Fussy()

    taken, names = snapshot(), {"items": [1], "x": Fussy()}
    copy = kept(names, taken)
    names["items"].append(2)
    random.random()
    here = snapshot()
    Fussy.fussy = True
    with pytest.raises(CheckpointError, match="no more"):
        rewind(taken, copy, names, ())
    assert names["items"] == [1, 2]
    assert not here.diff(snapshot())


# -- what is said ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "names"),
    [
        ([], []),
        (["python", "numpy", "torch.cpu", "torch.cuda:0"], []),
        (["user:rng"], ["rng"]),
        (["user:model.rng", "user:model.other", "user:rngs[0]", "user:rngs['a']"],
         ["model", "rngs"]),
        (["user:größe.rng", "user:_x1"], ["größe", "_x1"]),
    ],
)  # fmt: skip
def test_the_variables_that_the_users_generators_hang_from(states, names):
    assert variables(Snapshot(dict.fromkeys(states, b""))) == names


@pytest.mark.parametrize(
    ("restored", "notes"),
    [
        (Restored(("python",)), []),
        (Restored((), missing=("user:a", "user:b")),
         ["not rewound, no longer there: user:a, user:b"]),
        (Restored((), uncovered=("numpy",)), ["not in the checkpoint: numpy"]),
        (Restored((), ("a",), ("b",), {"c": "c: 3 bytes", "d": "d: no"}),
         ["not rewound: c: 3 bytes", "not rewound: d: no", "not rewound, no longer there: a",
          "not in the checkpoint: b"]),
    ],
)  # fmt: skip
def test_what_a_restore_could_not_do_is_a_sentence_each(restored, notes):
    assert left_out(restored) == notes


@pytest.mark.parametrize("name", ["हिन्दी", "ตัวสร้าง", "নাম"])
def test_signs_of_other_scripts_belong_to_the_name(name):
    assert name.isidentifier()
    states = {f"user:{name}": b"", f"user:{name}.rng[0]": b""}
    assert variables(Snapshot(states)) == [name]
