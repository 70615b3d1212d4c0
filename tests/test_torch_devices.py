"""Devices that start late, against a stand-in with torch's own queue order."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from shells import loaded, started
from standin import STATE, Devices, PublicDevices

import nbseed
from nbseed import seeding
from nbseed.errors import CoverageError, StateError
from nbseed.generators import torch as room

HERE = Path(__file__).parent


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[..., PublicDevices]:
    """Puts a module in the place of ``torch.cuda``, again and again: each is a fresh process."""

    def place(count: int = 3, kind: type[PublicDevices] = Devices) -> PublicDevices:
        devices = kind("cuda", count)
        monkeypatch.setattr(torch, "cuda", devices)
        return devices

    monkeypatch.setattr(torch, "cuda", torch.cuda)
    return place


Put = Callable[..., PublicDevices]
KINDS = [pytest.param(Devices, id="as torch.cuda"), pytest.param(PublicDevices, id="public names")]


def queued() -> dict[str, object]:
    """What the snapshot knows of a kind that has not started."""
    return json.loads(nbseed.snapshot().states["torch.cuda"])


# -- nothing starts it -----------------------------------------------------------------------------

LOOKS: dict[str, Callable[[], object]] = {
    "snapshot": nbseed.snapshot,
    "fingerprints": nbseed.fingerprints,
    "seed": lambda: nbseed.seed(3),
    "restore": lambda: nbseed.restore(nbseed.snapshot()),
    "waiting": seeding.waiting,
    "restore of states": lambda: nbseed.restore(
        nbseed.Snapshot({f"torch.cuda:{i}": STATE.pack(5, 8) for i in range(3)}), strict=False
    ),
}


@pytest.mark.parametrize("look", sorted(LOOKS))
def test_looking_never_starts_a_device(put: Put, look: str) -> None:
    devices = put()
    LOOKS[look]()
    assert devices.starts == 0
    assert not devices.is_initialized()


def test_isolating_never_starts_a_device(put: Put) -> None:
    devices = put()
    with nbseed.isolated(4):
        pass
    assert devices.starts == 0


@pytest.mark.parametrize("magic", ["%rng", "%rng list", "%seed 3", "%seed"])
def test_no_magic_starts_a_device(put: Put, magic: str) -> None:
    devices = put()
    with started() as shell, loaded(shell) as notebook:
        notebook.ok(magic)
    assert devices.starts == 0


def test_a_device_that_has_not_started_is_one_generator(put: Put) -> None:
    put()
    names = list(nbseed.snapshot().states)
    assert "torch.cuda" in names
    assert not [name for name in names if name.startswith("torch.cuda:")]


def test_a_device_that_has_started_is_one_generator_each(put: Put) -> None:
    put(3).init()
    names = [name for name in nbseed.snapshot().states if name.startswith("torch.cuda")]
    assert names == ["torch.cuda:0", "torch.cuda:1", "torch.cuda:2"]


def test_a_module_without_devices_is_none(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = put()
    monkeypatch.setattr(devices, "_is_compiled", lambda: False)
    monkeypatch.setattr(devices, "is_available", lambda: False)
    assert not [name for name in nbseed.snapshot().states if name.startswith("torch.cuda")]


# -- what is queued --------------------------------------------------------------------------------


def seed_all_then_one() -> None:
    torch.manual_seed(5)
    torch.cuda.manual_seed(6)


def seed_one_then_all() -> None:
    torch.cuda.manual_seed(6)
    torch.manual_seed(5)


def negative() -> None:
    torch.manual_seed(-1)


def twice() -> None:
    torch.manual_seed(4)
    torch.manual_seed(5)


QUEUED = [
    (seed_all_then_one, {"first": 6, "seed": 5, "states": {}}),
    (seed_one_then_all, {"first": None, "seed": 5, "states": {}}),
    (twice, {"first": None, "seed": 5, "states": {}}),
    (negative, {"first": None, "seed": 2**64 - 1, "states": {}}),
]


@pytest.mark.parametrize(("seeding", "expected"), QUEUED, ids=lambda x: getattr(x, "__name__", ""))
def test_a_queued_seed_is_what_is_known(
    put: Put, seeding: Callable[[], None], expected: dict[str, object]
) -> None:
    put()
    seeding()
    assert queued() == expected
    assert queued() == expected  # looking has queued nothing


def test_a_seed_for_one_device_is_known_and_the_others_get_one(put: Put) -> None:
    put()
    torch.cuda.manual_seed(6)
    known = queued()
    assert known["first"] == 6
    assert type(known["seed"]) is int
    assert queued() == known


@pytest.mark.parametrize("kind", KINDS)
def test_what_no_one_seeded_gets_a_seed_from_the_system(
    put: Put, monkeypatch: pytest.MonkeyPatch, kind: type[PublicDevices]
) -> None:
    monkeypatch.setattr(room.os, "urandom", lambda n: bytes(range(n)))
    monkeypatch.setattr(torch, "initial_seed", lambda: room._FIRST_SEED)
    devices = put(kind=kind)
    expected = int.from_bytes(bytes(range(8)), "little")
    assert queued() == {"first": None, "seed": expected, "states": {}}
    devices.init()
    assert [stream.initial_seed() for stream in devices.default_generators] == [expected] * 3


# -- rewinding a start -----------------------------------------------------------------------------


def nothing() -> None:
    pass


def by_nbseed() -> None:
    nbseed.seed(3)


def on_all_devices() -> None:
    torch.cuda.manual_seed_all(9)


def on_one_device() -> None:
    torch.cuda.manual_seed(9)


PREPARE = [nothing, by_nbseed, twice, negative]
PREPARE_PRIVATE = [*PREPARE, seed_all_then_one, seed_one_then_all, on_all_devices, on_one_device]
STARTS = [(Devices, f) for f in PREPARE_PRIVATE] + [(PublicDevices, f) for f in PREPARE]


@pytest.mark.parametrize(("kind", "prepare"), STARTS, ids=lambda x: x.__name__)
def test_a_snapshot_before_the_start_rewinds_what_came_after_it(
    put: Put,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[PublicDevices],
    prepare: Callable[[], None],
) -> None:
    devices = put(kind=kind)
    if prepare is nothing:  # as in a process in which no one has seeded torch
        monkeypatch.setattr(torch, "initial_seed", lambda: room._FIRST_SEED)
    prepare()
    before = nbseed.snapshot()
    first = devices.draws()
    assert devices.starts == 1
    nbseed.restore(before)
    assert devices.draws() == first


@pytest.mark.parametrize("kind", KINDS)
def test_seeding_before_the_start_is_the_idiom(put: Put, kind: type[PublicDevices]) -> None:
    idiom = put(kind=kind)
    torch.manual_seed(3)
    expected = idiom.draws()
    devices = put(kind=kind)
    seeded = nbseed.seed(3)
    assert seeded.devices == ("cuda",)
    assert "torch.cuda" not in seeded.names
    assert devices.draws() == expected
    assert {row[0] for row in expected} == {expected[0][0]}


@pytest.mark.parametrize("kind", KINDS)
def test_seeding_after_the_start_is_the_idiom(put: Put, kind: type[PublicDevices]) -> None:
    devices = put(kind=kind)
    devices.draws()
    torch.manual_seed(3)
    expected = devices.draws()
    seeded = nbseed.seed(3)
    assert seeded.devices == ()
    assert {f"torch.cuda:{i}" for i in range(3)} <= set(seeded.names)
    assert devices.draws() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_restored_before_the_start_forgets_later_seeds(
    put: Put, kind: type[PublicDevices]
) -> None:
    devices = put(kind=kind)
    torch.manual_seed(3)
    before = nbseed.snapshot()
    torch.manual_seed(4)
    nbseed.restore(before)
    assert devices.starts == 0
    assert nbseed.snapshot().fingerprints == before.fingerprints
    devices.init()
    assert [s.initial_seed() for s in devices.default_generators] == [3] * 3


# -- the trap: a state set before the start is queued ahead of the seed ----------------------------


def test_the_stand_in_loses_a_state_behind_a_queued_seed_as_torch_does(put: Put) -> None:
    devices = put()
    torch.manual_seed(3)
    devices.set_rng_state(torch.frombuffer(bytearray(STATE.pack(7, 40)), dtype=torch.uint8), 1)
    devices.init()
    assert (devices.default_generators[1].seed, devices.default_generators[1].offset) == (3, 0)


LATE_SEEDS = [nothing, twice, seed_all_then_one, seed_one_then_all, on_one_device]


@pytest.mark.parametrize("prepare", LATE_SEEDS, ids=lambda f: f.__name__)
def test_live_states_restored_before_the_start_are_exact_at_the_start(
    put: Put, prepare: Callable[[], None]
) -> None:
    live = put()
    live.init()
    for index, stream in enumerate(live.default_generators):
        stream.manual_seed(100 + index).draw()
    taken = nbseed.snapshot()
    expected = live.draws()
    fresh = put()
    prepare()
    nbseed.restore(taken)
    assert fresh.starts == 0
    assert fresh.draws() == expected


def test_states_that_are_waiting_are_known_and_can_be_snapshot(put: Put) -> None:
    put().init()
    states = {f"torch.cuda:{i}": STATE.pack(100 + i, 4 * i) for i in range(3)}
    nbseed.restore(nbseed.Snapshot(states), strict=False)
    taken = nbseed.snapshot()
    put()
    nbseed.restore(taken)
    waiting = nbseed.snapshot()
    parts = json.loads(waiting.states["torch.cuda"])["states"]
    assert parts == {str(i): STATE.pack(100 + i, 4 * i).hex() for i in range(3)}
    third = put()
    nbseed.restore(waiting)
    third.init()
    assert nbseed.snapshot().states["torch.cuda:2"] == STATE.pack(102, 8)


def test_a_seed_after_waiting_states_wins_as_it_would_in_torch(put: Put) -> None:
    devices = put()
    states = {f"torch.cuda:{i}": STATE.pack(100 + i, 4) for i in range(3)}
    nbseed.restore(nbseed.Snapshot(states), strict=False)
    torch.cuda.manual_seed(9)
    before = nbseed.snapshot()
    devices.init()
    assert [s.initial_seed() for s in devices.default_generators] == [9, 101, 102]
    first = devices.draws()
    nbseed.restore(before)
    assert devices.draws() == first
    again = put()
    nbseed.restore(before)
    assert again.draws() == first


def test_seeding_all_after_waiting_states_forgets_them(put: Put) -> None:
    devices = put()
    states = {f"torch.cuda:{i}": STATE.pack(100 + i, 4) for i in range(3)}
    nbseed.restore(nbseed.Snapshot(states), strict=False)
    nbseed.seed(3)
    assert queued() == {"first": None, "seed": 3, "states": {}}
    devices.init()
    assert [s.initial_seed() for s in devices.default_generators] == [3] * 3


def test_a_module_that_hides_its_queue_refuses_states_before_the_start(put: Put) -> None:
    put(kind=PublicDevices).init()
    taken = nbseed.snapshot()
    put(kind=PublicDevices)
    torch.manual_seed(3)
    before = nbseed.snapshot()
    with pytest.raises(StateError) as caught:
        nbseed.restore(taken)
    assert str(caught.value) == (
        "torch.cuda has not started, and a state set now would be lost behind its queued seed: "
        "use the device once, then restore"
    )
    assert not before.diff(nbseed.snapshot())


# -- other machines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (3, 2, "no longer there: torch.cuda:2"),
        (2, 3, "not in the snapshot: torch.cuda:2"),
        (4, 2, "no longer there: torch.cuda:2, torch.cuda:3"),
    ],
)
def test_another_number_of_devices_is_named(put: Put, then: int, now: int, said: str) -> None:
    put(then).init()
    taken = nbseed.snapshot()
    devices = put(now)
    devices.init()
    before = nbseed.snapshot()
    with pytest.raises(CoverageError) as caught:
        nbseed.restore(taken)
    assert str(caught.value) == f"{said}; restore(..., strict=False) sets the others"
    assert not before.diff(nbseed.snapshot())
    done = nbseed.restore(taken, strict=False)
    assert ("torch.cuda:1" in done.names, "torch.cuda:2" in done.names) == (True, False)
    assert nbseed.snapshot().states["torch.cuda:1"] == taken.states["torch.cuda:1"]


def test_a_state_for_a_device_that_does_not_come_is_said_at_the_start(put: Put) -> None:
    put(3).init()
    taken = nbseed.snapshot()
    devices = put(2)
    nbseed.restore(taken)
    said = r"^nbseed: no device for the restored state of index 2$"
    with pytest.warns(RuntimeWarning, match=said):
        devices.init()
    assert nbseed.snapshot().states["torch.cuda:1"] == taken.states["torch.cuda:1"]


# -- damage and rollback ---------------------------------------------------------------------------

DAMAGED = [
    ("torch.cuda", b"", "torch.cuda: not the state of a device that has not started"),
    ("torch.cuda", b"[]", "torch.cuda: not the state of a device that has not started"),
    ("torch.cuda", b'{"seed":3}', "torch.cuda: not the state of a device that has not started"),
    (
        "torch.cuda",
        b'{"first":null,"seed":3,"states":{"0":"zz"}}',
        "torch.cuda: not the state of a device that has not started",
    ),
    (
        "torch.cuda",
        b'{"first":null,"seed":-3,"states":{}}',
        "torch.cuda: the queued seed -3 is not in 0..2**64 - 1",
    ),
    (
        "torch.cuda",
        b'{"first":true,"seed":3,"states":{}}',
        "torch.cuda: the queued seed True is not in 0..2**64 - 1",
    ),
    (
        "torch.cuda",
        b'{"first":null,"seed":3,"states":{"1":"00ff"}}',
        "torch.cuda:1: 2 bytes, expected 16",
    ),
    (
        "torch.cuda:1",
        STATE.pack(3, 5),
        "torch.cuda:1: not a state of a CUDA generator",
    ),
]


@pytest.mark.parametrize("start", [False, True], ids=["waiting", "started"])
@pytest.mark.parametrize(("name", "state", "said"), DAMAGED)
def test_damaged_states_are_refused_and_nothing_moves(
    put: Put, start: bool, name: str, state: bytes, said: str
) -> None:
    devices = put()
    torch.manual_seed(3)
    if start:
        devices.init()
    before = nbseed.snapshot()
    with pytest.raises(StateError) as caught:
        nbseed.restore(nbseed.Snapshot({**before.states, name: state}))
    assert str(caught.value) == said
    assert not before.diff(nbseed.snapshot())


class Failing:
    """A generator of the user's that cannot be set."""

    def get_state(self) -> bytes:
        return b"x"

    def set_state(self, state: bytes) -> None:
        raise OSError("the board does not answer")


@pytest.mark.parametrize("start", [False, True], ids=["waiting", "started"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_restore_puts_devices_and_their_queue_back(
    put: Put, kind: type[PublicDevices], start: bool
) -> None:
    devices = put(kind=kind)
    torch.manual_seed(3)
    if start:
        devices.draws()
    nbseed.register("board", Failing())
    taken = nbseed.snapshot()
    torch.manual_seed(4)
    before = nbseed.snapshot()
    with pytest.raises(OSError, match=r"^the board does not answer$"):
        nbseed.restore(taken)
    assert not before.diff(nbseed.snapshot())
    assert devices.starts == int(start)


def test_live_states_that_fail_to_come_back_leave_the_queue_as_it_was(put: Put) -> None:
    nbseed.register("board", Failing())
    put().draws()
    taken = nbseed.snapshot()
    devices = put()
    seed_all_then_one()
    before = nbseed.snapshot()
    with pytest.raises(OSError, match=r"^the board does not answer$"):
        nbseed.restore(taken)
    assert not before.diff(nbseed.snapshot())
    devices.init()
    assert [s.initial_seed() for s in devices.default_generators] == [6, 5, 5]


# -- as torch's out-of-tree backend ----------------------------------------------------------------

OUT_OF_TREE = """
    import torch
    from standin import Devices, PublicDevices
    devices = {kind}("board", 2)
    torch.utils.rename_privateuse1_backend("board")
    torch._register_device_module("board", devices)
    assert torch.get_device_module("board") is devices
    import nbseed

    assert nbseed.seed(3).devices == ("board",)
    before = nbseed.snapshot()
    assert devices.starts == 0
    assert "torch.board" in before.states
    first = devices.draws()
    assert [s.initial_seed() for s in devices.default_generators] == [3, 3]
    nbseed.restore(before)
    assert devices.draws() == first
    live = nbseed.snapshot()
    names = [name for name in live.states if name.startswith("torch.board")]
    assert names == ["torch.board:0", "torch.board:1"], names
    second = devices.draws()
    nbseed.restore(live)
    assert devices.draws() == second
    assert devices.starts == 1
"""


@pytest.mark.parametrize("kind", ["Devices", "PublicDevices"])
def test_an_out_of_tree_backend_is_found_and_rewound(kind: str) -> None:
    code = textwrap.dedent(OUT_OF_TREE.format(kind=kind))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=HERE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
