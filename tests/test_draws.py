"""Counts of draws are exact: each is compared with a library that was told how many to draw."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import qmc

from nbseed import draws
from nbseed.draws import Draws
from nbseed.generators.numpy import (
    BitGeneratorGenerator,
    RandomStateGenerator,
    SeedSequenceGenerator,
)
from nbseed.generators.pinned import PinnedEntropy
from nbseed.generators.protocol import Generator
from nbseed.generators.python import PythonGenerator
from nbseed.generators.torch import TorchGenerator
from nbseed.generators.user import QMCGenerator
from tests.libraries import imported

BORDERS = [1, 2, 623, 624, 625, 1247, 1248, 1249, 100_000]
WIDE = "64-bit word"


def between(generator: Generator, act: Callable[[], object], bound: int = 1_000_000) -> Draws:
    """What `count` says of a generator before and after an act."""
    before = generator.get_state()
    act()
    return draws.count(generator.name, before, generator.get_state(), bound)


# A generator, and how it draws `n` words.
def python_stream() -> tuple[Generator, Callable[[int], object]]:
    stream = random.Random(3)
    return PythonGenerator("python", stream), lambda n: [stream.getrandbits(32) for _ in range(n)]


def numpy_legacy() -> tuple[Generator, Callable[[int], object]]:
    stream = np.random.RandomState(3)
    return RandomStateGenerator("numpy", stream), lambda n: stream.bytes(4 * n)


def numpy_twister() -> tuple[Generator, Callable[[int], object]]:
    bits = np.random.MT19937(3)
    return BitGeneratorGenerator("user:bits", bits), lambda n: bits.random_raw(n)


def torch_cpu() -> tuple[Generator, Callable[[int], object]]:
    stream = torch.Generator().manual_seed(3)
    return TorchGenerator("torch.cpu", stream), lambda n: torch.rand(n, generator=stream)


TWISTERS = [python_stream, numpy_legacy, numpy_twister, torch_cpu]


@pytest.mark.parametrize("words", BORDERS)
@pytest.mark.parametrize("drawn_before", [0, 1, 300, 623, 624, 625])
@pytest.mark.parametrize("make", TWISTERS)
def test_words_of_a_mersenne_twister_are_counted_exactly(
    make: Any, drawn_before: int, words: int
) -> None:
    generator, draw = make()
    draw(drawn_before)
    assert between(generator, lambda: draw(words)) == Draws("drawn", words)


@pytest.mark.parametrize("make", TWISTERS)
def test_the_bound_is_the_last_number_that_is_counted(make: Any) -> None:
    generator, draw = make()
    draw(10)
    before = generator.get_state()
    draw(5_000)
    after = generator.get_state()
    assert draws.count("x", before, after, 5_000) == Draws("drawn", 5_000)
    assert draws.count("x", before, after, 4_999).kind != "drawn"


@given(st.integers(0, 2_000), st.integers(1, 5_000), st.integers(0, 2**32 - 1))
def test_any_way_from_any_place_is_counted(start: int, words: int, seed: int) -> None:
    bits = np.random.MT19937(seed)
    generator = BitGeneratorGenerator("user:bits", bits)
    bits.random_raw(start, output=False)
    assert between(generator, lambda: bits.random_raw(words)) == Draws("drawn", words)


@pytest.mark.parametrize("words", [1, 700, 5_000])
@pytest.mark.parametrize("make", [python_stream, numpy_legacy, numpy_twister])
def test_a_state_that_was_put_back_is_so_many_words_back(make: Any, words: int) -> None:
    generator, draw = make()
    draw(1_000)
    earlier = generator.get_state()
    draw(words)
    assert draws.count("x", generator.get_state(), earlier) == Draws("back", words)


# -- seeded anew ---------------------------------------------------------------------------------


@pytest.mark.parametrize("drawn_after", [0, 1, 623, 624, 640, 10_000])
@pytest.mark.parametrize(
    "seed",
    [
        lambda s: (random.Random.seed, random.Random(1), (s,)),
        lambda s: (np.random.RandomState.seed, np.random.RandomState(1), (s,)),
        lambda s: (torch.Generator.manual_seed, torch.Generator().manual_seed(1), (s,)),
    ],
    ids=["python", "numpy", "torch"],
)
@pytest.mark.parametrize("number", [0, 42, 2**32 - 1])
def test_a_seeding_shows_after_many_draws(seed: Any, number: int, drawn_after: int) -> None:
    call, stream, arguments = seed(number)
    generator, draw = {
        random.Random: (PythonGenerator, lambda: stream.getrandbits(32 * drawn_after)),
        np.random.RandomState: (RandomStateGenerator, lambda: stream.bytes(4 * drawn_after)),
        torch.Generator: (TorchGenerator, lambda: torch.rand(drawn_after, generator=stream)),
    }[type(stream)]

    def reseed() -> None:
        call(stream, *arguments)
        if drawn_after:
            draw()

    assert between(generator("x", stream), reseed, 20_000) == Draws("re-seeded")


@pytest.mark.parametrize("drawn_after", [0, 1, 2, 5_000])
def test_entropy_by_way_of_a_seed_sequence_shows_too(drawn_after: int) -> None:
    stream = np.random.RandomState(1)

    def reseed() -> None:
        stream.seed()
        stream.bytes(4 * drawn_after)

    assert between(RandomStateGenerator("numpy", stream), reseed) == Draws("re-seeded")


def test_a_seeding_with_a_text_cannot_be_told_from_many_draws() -> None:
    stream = random.Random(1)

    def reseed() -> None:
        stream.seed("a text")
        stream.random()

    assert between(PythonGenerator("python", stream), reseed, 7_000) == Draws("beyond", 7_000)


@pytest.mark.parametrize("make", [python_stream, numpy_legacy, numpy_twister, torch_cpu])
def test_what_lies_beyond_the_bound_is_not_called_a_seeding(make: Any) -> None:
    generator, draw = make()
    draw(30_000)
    assert between(generator, lambda: draw(30_000), 20_000) == Draws("beyond", 20_000)


def test_torch_is_seeded_anew_where_its_own_seed_leads_back() -> None:
    generator, draw = torch_cpu()
    draw(2_000)

    def reseed() -> None:
        generator.seed(3)
        draw(700)

    assert between(generator, reseed) == Draws("re-seeded")


def test_torch_is_seeded_anew_with_the_same_seed_after_more_draws_than_the_bound() -> None:
    generator, draw = torch_cpu()
    draw(100_000)

    def reseed() -> None:
        generator.seed(3)
        draw(700)

    assert between(generator, reseed, 1_000) == Draws("re-seeded")


# -- what calls draw -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: torch.rand(5, generator=g), 5),
        (lambda g: torch.rand(5, generator=g, dtype=torch.float64), 10),
        (lambda g: torch.randint(0, 10, (5,), generator=g), 5),
        (lambda g: torch.empty(5, dtype=torch.uint8).random_(generator=g), 5),
        (lambda g: torch.randperm(5, generator=g), 4),
        (lambda g: torch.randn(16, generator=g), 16),  # in blocks of 16 from there on
        (lambda g: torch.randn(15, generator=g), 32),  # pairs of doubles: 8 pairs, 4 words each
    ],
)
def test_torch_calls_draw_so_many_words(call: Any, words: int) -> None:
    stream = torch.Generator().manual_seed(3)
    generator = TorchGenerator("torch.cpu", stream)
    assert between(generator, lambda: call(stream)) == Draws("drawn", words)


def test_a_kept_gaussian_that_alone_is_used_is_said() -> None:
    stream, legacy = random.Random(3), np.random.RandomState(3)
    cpu = torch.Generator().manual_seed(3)
    for generator, draw in (
        (PythonGenerator("python", stream), lambda: stream.gauss(0, 1)),
        (RandomStateGenerator("numpy", legacy), legacy.standard_normal),
        (TorchGenerator("torch.cpu", cpu), lambda: torch.randn(1, generator=cpu)),
    ):
        draw()
        found = between(generator, draw)
        assert found == Draws("drawn", 0)
        assert str(found) == "0 words, a kept Gaussian"


# -- NumPy's other bit generators ----------------------------------------------------------------

OTHERS = ["PCG64", "PCG64DXSM", "Philox", "SFC64"]


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5, 624, 100_000])
@pytest.mark.parametrize("drawn_before", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("kind", OTHERS)
def test_words_of_other_bit_generators_are_counted_and_taken_back(
    kind: str, drawn_before: int, words: int
) -> None:
    bits = getattr(np.random, kind)(3)
    generator = BitGeneratorGenerator("user:bits", bits)
    bits.random_raw(drawn_before)
    before = generator.get_state()
    bits.random_raw(words)
    after = generator.get_state()
    assert draws.count("x", before, after) == Draws("drawn", words, WIDE)
    assert draws.count("x", after, before) == Draws("back", words, WIDE)


@pytest.mark.parametrize("kind", OTHERS)
def test_another_seed_is_no_way_whatever_was_drawn_from_it(kind: str) -> None:
    bits = getattr(np.random, kind)(3)
    generator = BitGeneratorGenerator("user:bits", bits)

    def reseed() -> None:
        generator.seed(4)
        bits.random_raw(100)

    assert between(generator, reseed) == Draws("re-seeded")


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM"])
@pytest.mark.parametrize(
    ("delta", "found"),
    [
        (10**12, Draws("drawn", 10**12, WIDE)),
        (2**63 - 1, Draws("drawn", 2**63 - 1, WIDE)),
        (2**63, Draws("re-seeded")),
        (2**128 - 2**63, Draws("re-seeded")),
        (2**128 - 10**12, Draws("back", 10**12, WIDE)),
    ],
)
def test_an_advance_is_exact_until_nobody_can_have_drawn_it(
    kind: str, delta: int, found: Draws
) -> None:
    bits = getattr(np.random, kind)(3)
    assert between(BitGeneratorGenerator("user:b", bits), lambda: bits.advance(delta)) == found


def test_a_philox_counter_stands_for_four_words() -> None:
    bits = np.random.Philox(3)
    found = between(BitGeneratorGenerator("user:b", bits), lambda: bits.advance(10**12))
    assert found == Draws("drawn", 4 * 10**12, WIDE)


def test_sfc64_is_stepped_only_within_the_bound() -> None:
    bits = np.random.SFC64(3)
    generator = BitGeneratorGenerator("user:b", bits)
    found = between(generator, lambda: bits.random_raw(1_001), 1_000)
    assert found == Draws("beyond", 1_000, WIDE)


@pytest.mark.parametrize("kind", OTHERS)
def test_a_word_counts_when_its_first_half_is_used(kind: str) -> None:
    rng = np.random.Generator(getattr(np.random, kind)(3))
    generator = BitGeneratorGenerator("user:rng", rng.bit_generator)

    def half() -> object:
        return rng.random(dtype=np.float32)

    assert between(generator, half) == Draws("drawn", 1, WIDE)
    second = between(generator, half)
    assert second == Draws("drawn", 0, WIDE)
    assert str(second) == "0 64-bit words, a kept number"


def test_a_legacy_stream_over_another_bit_generator_is_counted_in_its_words() -> None:
    stream = np.random.RandomState(np.random.PCG64(3))
    found = between(RandomStateGenerator("user:s", stream), lambda: stream.random_sample(7))
    assert found == Draws("drawn", 7, WIDE)


@pytest.mark.parametrize("kind", ["MT19937", *OTHERS])
def test_children_are_counted_where_nothing_was_drawn(kind: str) -> None:
    bits = getattr(np.random, kind)(3)
    generator = BitGeneratorGenerator("user:bits", bits)
    assert between(generator, lambda: bits.spawn(3)) == Draws("drawn", 3, "spawned child")

    def both() -> None:
        bits.spawn(1)
        bits.random_raw(2)

    assert between(generator, both).count == 2


def test_another_bit_generator_is_no_way() -> None:
    twister, others = np.random.RandomState(3), np.random.RandomState(np.random.PCG64(3))
    states = [RandomStateGenerator("numpy", stream).get_state() for stream in (twister, others)]
    philox = BitGeneratorGenerator("x", np.random.Philox(3)).get_state()
    for before, after in (states, states[::-1], (states[1], philox)):
        assert draws.count("numpy", before, after) == Draws("re-seeded")


# -- everything else -----------------------------------------------------------------------------


def test_children_of_a_seed_sequence_are_counted() -> None:
    sequence = np.random.SeedSequence(3)
    generator = SeedSequenceGenerator("user:seeds", sequence)
    assert str(between(generator, lambda: sequence.spawn(1))) == "1 child"
    assert str(between(generator, lambda: sequence.spawn(2))) == "2 children"
    assert str(between(generator, lambda: generator.seed(0))) == "went back 3 children"


def test_points_of_a_qmc_engine_are_counted() -> None:
    rng = np.random.default_rng(3)
    engine = qmc.Halton(2, rng=rng)
    inner = BitGeneratorGenerator("user:e.rng", engine.rng.bit_generator)
    generator = QMCGenerator("user:e", engine, inner)
    assert str(between(generator, lambda: engine.random(8))) == "8 points"
    assert str(between(generator, lambda: engine.rng.random())) == "1 64-bit word"
    assert str(between(generator, engine.reset)) == "went back 8 points"


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ((3, 12), Draws("drawn", 8, "offset")),
        ((3, 0), Draws("back", 4, "offset")),
        ((4, 12), Draws("re-seeded")),
        ((3, 4), Draws("still")),
    ],
)
def test_a_cuda_state_is_a_seed_and_an_offset(after: tuple[int, int], found: Draws) -> None:
    state = struct.Struct("<Qq")
    assert draws.count("torch.cuda:0", state.pack(3, 4), state.pack(*after)) == found


def test_sixteen_bytes_of_somebody_elses_are_not_read_as_cudas() -> None:
    state = struct.Struct("<Qq")
    assert draws.count("mine", state.pack(3, 4), state.pack(3, 8)) == Draws("moved")


def test_pinned_entropy_is_counted_in_blocks() -> None:
    stream = PinnedEntropy()
    assert str(between(stream, lambda: stream.randbits(513))) == "2 blocks"
    assert between(stream, lambda: stream.seed(4)) == Draws("re-seeded")


def test_what_is_queued_for_a_device_can_only_be_seeded() -> None:
    states = [
        json.dumps({"first": None, "seed": seed, "states": {}}, separators=(",", ":")).encode()
        for seed in (3, 4)
    ]
    assert draws.count("torch.cuda", *states) == Draws("re-seeded")


def test_numbas_words_are_counted() -> None:
    with imported("numba") as numba:
        from nbseed.generators.numba import NumbaGenerator

        @numba.njit  # type: ignore[untyped-decorator]
        def draw(n: int) -> None:
            for _ in range(n):
                np.random.random()

        generator = NumbaGenerator("numba.numpy", "rnd_get_np_state_ptr")
        draw(1)
        generator.seed(3)
        assert between(generator, lambda: draw(1_000)) == Draws("drawn", 2_000)
        assert between(generator, lambda: generator.seed(4)) == Draws("re-seeded")


STATES = [
    make()[0].get_state() for make in (python_stream, numpy_legacy, numpy_twister, torch_cpu)
] + [BitGeneratorGenerator("x", getattr(np.random, kind)(3)).get_state() for kind in OTHERS]
STATES += [b"spawned 3", b"12\n", bytes(16), b"threefry2x32\0" + bytes(8), b"", b"{}", b"[]", b"3"]


@pytest.mark.parametrize("before", range(len(STATES)))
def test_bytes_of_another_kind_raise_nothing(before: int) -> None:
    for after, state in enumerate(STATES):
        found = draws.count("user:x", STATES[before], state, 1_000)
        assert (found.kind == "still") == (before == after)
        assert found.kind in {"still", "moved", "re-seeded", "beyond"}


@given(st.data())
def test_damaged_bytes_raise_nothing(data: st.DataObject) -> None:
    state = data.draw(st.sampled_from(STATES))
    place = data.draw(st.integers(0, len(state)))
    damaged = state[:place] + data.draw(st.binary(max_size=4)) + state[place + 1 :]
    for pair in ((state, damaged), (damaged, state), (damaged, damaged)):
        assert str(draws.count("user:x", *pair, 1_000))


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"bit_generator":"PCG64","state":{"state":"1","inc":1}}',
        b'{"bit_generator":"Philox","state":[]}',
        b'{"bit_generator":"SFC64","state":{"state":{"dtype":"<u8","hex":"00"}}}',
        b'{"bit_generator":"SFC64","state":{"state":{"dtype":"<u8","hex":""}}}',
        b'{"bit_generator":"Mine","state":{}}',
        b'{"bit_generator":[],"state":{}}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"spawned x",
        b"-1\n",
    ],
)
def test_damaged_states_have_moved(damaged: bytes) -> None:
    assert draws.count("user:x", damaged, damaged + b" ") == Draws("moved")


def test_an_even_increment_is_no_pcg_and_ends_the_search() -> None:
    states = [b'{"bit_generator":"PCG64","state":{"state":%d,"inc":2}}' % n for n in (1, 2)]
    assert draws.count("user:x", *states) == Draws("moved")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Draws("still"), "nothing"),
        (Draws("drawn", 1), "1 word"),
        (Draws("drawn", 640), "640 words"),
        (Draws("drawn", 1_234_567, WIDE), "1,234,567 64-bit words"),
        (Draws("drawn", 0), "0 words, a kept Gaussian"),
        (Draws("drawn", 1, "spawned child"), "1 spawned child"),
        (Draws("drawn", 2, "spawned child"), "2 spawned children"),
        (Draws("re-seeded"), "re-seeded"),
        (Draws("beyond", 1_000_000), "more than 1,000,000 words"),
        (Draws("moved"), "moved"),
        (Draws("back", 3), "went back 3 words"),
    ],
)
def test_a_report_reads(found: Draws, text: str) -> None:
    assert str(found) == text


def test_counting_moves_no_stream_and_imports_nothing() -> None:
    code = (
        "import random, sys\n"
        "from nbseed import draws\n"
        "from nbseed.generators.python import PythonGenerator\n"
        "g = PythonGenerator('python', random)\n"
        "a = g.get_state(); random.random(); b = g.get_state()\n"
        "assert str(draws.count('python', a, b)) == '2 words'\n"
        "assert g.get_state() == b\n"
        "print(*sorted({'numpy', 'torch', 'pandas'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
