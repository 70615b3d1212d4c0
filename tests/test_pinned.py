"""Pinned entropy: NumPy's unseeded generators repeat, by a formula that anyone can compute."""

from __future__ import annotations

import contextlib
import hashlib
import secrets

import numpy as np
import pytest
from shells import loaded, started

import nbseed
from nbseed import generators, seeding, watch
from nbseed.errors import NbseedError, StateError
from nbseed.generators import pinned
from nbseed.generators.pinned import PinnedEntropy

UNSEEDED = {
    "default_rng": lambda: np.random.default_rng().random(3).tolist(),
    "RandomState": lambda: np.random.RandomState().rand(3).tolist(),
    "SeedSequence": lambda: np.random.SeedSequence().entropy,
    "PCG64": lambda: np.random.PCG64().random_raw(3).tolist(),
    "SFC64": lambda: np.random.SFC64().random_raw(3).tolist(),
    "Philox": lambda: np.random.Philox().random_raw(3).tolist(),
    "MT19937": lambda: np.random.MT19937().random_raw(3).tolist(),
    "spawned": lambda: np.random.default_rng().spawn(2)[1].random(),
}


def block(seed: int, n: int) -> bytes:
    """What README says."""
    text = b"pinned\0\0" + seed.to_bytes(4, "little") + n.to_bytes(8, "little")
    return hashlib.blake2b(text, digest_size=64).digest()


def stream(seed: int, drawn: int = 0) -> PinnedEntropy:
    made = PinnedEntropy()
    made.seed(seed)
    for _ in range(drawn):
        made.randbits(1)
    return made


@pytest.fixture
def fed():
    """Within the test, NumPy asks the stream under seed 3."""
    seeding.seed(3, pin_entropy=True)
    with watch.guarded({}, lambda: False):
        yield


# -- the stream ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 3, 2**31, 2**32 - 1])
def test_the_nth_request_is_the_nth_block(seed):
    asked = stream(seed)
    for n in range(4):
        assert asked.randbits(512) == int.from_bytes(block(seed, n), "little")


@pytest.mark.parametrize("bits", [1, 7, 8, 31, 32, 128, 511, 512, 513, 1024, 19968])
def test_a_request_is_the_low_bits_of_as_many_blocks_as_it_needs(bits):
    blocks = -(-bits // 512)
    expected = int.from_bytes(b"".join(block(3, n) for n in range(blocks)), "little") % 2**bits
    asked = stream(3)
    assert asked.randbits(bits) == expected
    assert asked.get_state() == stream(3, blocks).get_state()


def test_no_bits_are_zero_and_draw_nothing():
    asked = stream(3)
    assert asked.randbits(0) == secrets.randbits(0) == 0
    assert asked.get_state() == stream(3).get_state()


def test_seeds_and_blocks_differ():
    assert len({stream(seed, n).randbits(64) for seed in range(9) for n in range(9)}) == 81


def test_a_state_is_the_tag_the_seed_and_the_count():
    assert stream(3, 2).get_state() == (
        b"pinned\0\0\x03\0\0\0\x02\0\0\0\0\0\0\0"
    )  # fmt: skip


def test_a_state_put_back_goes_on_as_it_would_have():
    asked = stream(3, 5)
    state = asked.get_state()
    first = [asked.randbits(128) for _ in range(3)]
    other = stream(8)
    for one in (asked, other):
        one.check_state(state)
        one.set_state(state)
        assert one.get_state() == state
        assert [one.randbits(128) for _ in range(3)] == first


def test_a_count_beyond_32_bits_is_kept():
    asked = PinnedEntropy()
    asked.set_state(b"pinned\0\0" + b"\xff" * 4 + (2**40).to_bytes(8, "little"))
    assert asked.randbits(512) == int.from_bytes(block(2**32 - 1, 2**40), "little")


@pytest.mark.parametrize(
    "state", [b"", b"pinned\0\0", b"pinned\0\0" + bytes(13), bytes(20), b"PINNED\0\0" + bytes(12)]
)
def test_another_state_is_refused_and_nothing_moves(state):
    asked = stream(3, 1)
    with pytest.raises(StateError, match=r"^numpy\.entropy: not a state of the pinned entropy$"):
        asked.check_state(state)
    assert asked.get_state() == stream(3, 1).get_state()


# -- what NumPy gets -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", UNSEEDED)
def test_unseeded_generators_repeat_after_a_rewind_and_under_the_seed(fed, what):
    before = nbseed.snapshot()
    first = [UNSEEDED[what]() for _ in range(3)]
    assert first[0] != first[1] != first[2]
    nbseed.restore(before)
    assert [UNSEEDED[what]() for _ in range(3)] == first
    seeding.seed(3, pin_entropy=True)
    assert [UNSEEDED[what]() for _ in range(3)] == first
    seeding.seed(4, pin_entropy=True)
    assert [UNSEEDED[what]() for _ in range(3)] != first


def test_the_entropy_of_a_sequence_is_the_block_s_low_128_bits(fed):
    asked = [np.random.SeedSequence().entropy for _ in range(2)]
    assert asked == [int.from_bytes(block(3, n)[:16], "little") for n in range(2)]
    own = np.random.default_rng(int.from_bytes(block(3, 2)[:16], "little"))
    assert np.random.default_rng().random(4).tolist() == own.random(4).tolist()


def test_seeded_generators_are_as_always(fed):
    with_pinned = np.random.default_rng(5).random(), np.random.RandomState(5).rand()
    pinned.switch(False)
    assert (np.random.default_rng(5).random(), np.random.RandomState(5).rand()) == with_pinned


def test_the_global_generator_that_is_seeded_without_a_seed_repeats(fed):
    before = nbseed.snapshot()
    np.random.seed()
    first = np.random.rand()
    nbseed.restore(before)
    np.random.seed()
    assert np.random.rand() == first


def test_fed_entropy_accuses_nobody():
    seeding.seed(3, pin_entropy=True)
    names = {"np": np, "__name__": "__main__"}
    seen = watch.Watch(names, strict=lambda: True)
    watch.begin(seen)
    try:
        exec("np.random.default_rng(), np.random.RandomState(), np.random.seed()", names)
    finally:
        watch.end(seen)
    assert seen.calls() == ()


def test_nothing_else_is_fed(fed):
    before = nbseed.fingerprints()["numpy.entropy"]
    assert secrets.token_bytes(16) != secrets.token_bytes(16)
    assert nbseed.fingerprints()["numpy.entropy"] == before


# -- on and off ------------------------------------------------------------------------------------


def names() -> set[str]:
    return {generator.name for room in generators.rooms() for generator in room.generators()}


def test_it_is_a_generator_while_it_is_on():
    assert "numpy.entropy" not in names()
    seeding.seed(3, pin_entropy=True)
    assert "numpy.entropy" in names()
    assert "numpy.entropy" in nbseed.fingerprints()
    seeding.seed(3)
    assert "numpy.entropy" not in names()
    assert pinned.is_on() is False


def test_a_refused_seed_leaves_it_as_it_was():
    seeding.seed(3, pin_entropy=True)
    before = nbseed.fingerprints()
    for seed in (-1, 2**32, "a"):
        with pytest.raises(NbseedError):
            seeding.seed(seed)
    assert pinned.is_on() is True
    assert nbseed.fingerprints() == before


def test_a_block_under_its_own_seed_puts_the_stream_back(fed):
    inside, first = [], np.random.default_rng().random()
    for _ in range(2):
        with nbseed.isolated(7):
            inside.append(np.random.default_rng().random())
    second = np.random.default_rng().random()
    seeding.seed(3, pin_entropy=True)
    assert [np.random.default_rng().random() for _ in range(2)] == [first, second]
    assert inside[0] == inside[1] != first


def test_a_block_that_ends_it_gives_it_back(fed):
    before = nbseed.fingerprints()
    with contextlib.suppress(KeyError), nbseed.isolated(7):
        seeding.seed(8)
        assert not pinned.is_on()
        raise KeyError
    assert pinned.is_on() is True
    assert nbseed.fingerprints() == before


@pytest.mark.parametrize(
    "draw",
    ["np.random.default_rng().random()", "np.random.RandomState().rand()",
        "np.random.SeedSequence().entropy"],
)  # fmt: skip
def test_a_cell_that_is_run_again_draws_the_same_until_a_plain_seed(draw):
    with started() as shell, loaded(shell) as notebook:
        notebook.ok("import numpy as np\n%seed 3 --pin-entropy")
        cell = f"%%rngcheckpoint a\nx = [{draw} for _ in range(2)]"
        found = []
        for _ in range(3):
            notebook.ok(cell)
            found.append(notebook.ns["x"])
        assert found[0] == found[1] == found[2]
        assert found[0][0] != found[0][1]
        notebook.ok("%seed 3")
        drawn = [notebook.ok(draw).value for _ in range(2)]
        assert len({*drawn, *found[0]}) == 4
        assert not pinned.is_on()
