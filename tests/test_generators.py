"""One contract for all generators: each is put through the same questions."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import random
import re
import struct
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from libraries import imported
from standin import Devices

import nbseed
from nbseed import generators
from nbseed.errors import RegistrationError, StateError
from nbseed.generators import Generator, user
from nbseed.generators import numpy as numpy_room

# JAX warns at each fork once it is there, so that it gets a process of its own.
WITH_JAX = "NBSEED_WITH_JAX" in os.environ
BIT_GENERATORS = ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"]


@dataclass(frozen=True)
class Case:
    """A generator, how its user draws one normal from it, and how he would seed it."""

    generator: Generator
    draw: Callable[[], object]
    idiom: Callable[[int], object] | None = None

    def draws(self, number: int = 5) -> list[object]:
        return [self.draw() for _ in range(number)]


class Counter:
    """A generator of the user's own: the least that can be registered, with a seed."""

    def __init__(self) -> None:
        self.at = 0

    def get_state(self) -> bytes:
        return self.at.to_bytes(8, "little")

    def check_state(self, state: bytes) -> None:
        if len(state) != 8:
            raise StateError(f"counter: {len(state)} bytes, expected 8")

    def set_state(self, state: bytes) -> None:
        self.at = int.from_bytes(state, "little")

    def seed(self, seed: int) -> None:
        self.at = seed

    def draw(self) -> int:
        self.at += 1
        return self.at


def adapted(value: object) -> Generator:
    generator = user.adapt("user:x", value)
    assert generator is not None
    return generator


def existing(name: str) -> Generator:
    return generators.existing().generators[name]


def python() -> Case:
    return Case(existing("python"), lambda: random.gauss(0, 1), random.seed)


def python_object() -> Case:
    stream = random.Random(11)
    return Case(adapted(stream), lambda: stream.gauss(0, 1), stream.seed)


def numpy_global() -> Case:
    return Case(existing("numpy"), np.random.standard_normal, np.random.seed)


def numpy_global_pcg64() -> Case:
    np.random.set_bit_generator(np.random.PCG64(7))

    def idiom(seed: int) -> None:
        np.random.set_bit_generator(np.random.PCG64(seed))

    return Case(existing("numpy"), np.random.standard_normal, idiom)


def random_state() -> Case:
    stream = np.random.RandomState(11)
    return Case(adapted(stream), stream.standard_normal, stream.seed)


def random_state_pcg64() -> Case:
    stream = np.random.RandomState(np.random.PCG64(11))

    def idiom(seed: int) -> None:
        state = stream.get_state(legacy=False)
        fresh = np.random.PCG64(seed).state
        stream.set_state({**state, **fresh, "has_gauss": 0, "gauss": 0.0})

    return Case(adapted(stream), stream.standard_normal, idiom)


def of_bits(kind: str, inside: bool) -> Case:
    bits = getattr(np.random, kind)(11)
    stream = np.random.Generator(bits)

    def idiom(seed: int) -> None:
        bits.state = getattr(np.random, kind)(seed).state

    def draw() -> tuple[float, int]:  # 32 bits leave half a word behind
        return stream.standard_normal(), int(stream.integers(2**32, dtype=np.uint32))

    return Case(adapted(stream if inside else bits), draw, idiom)


def seed_sequence() -> Case:
    sequence = np.random.SeedSequence(11)
    return Case(adapted(sequence), lambda: int(sequence.spawn(1)[0].generate_state(1)[0]))


def spawning() -> Case:
    stream = np.random.default_rng(11)
    return Case(adapted(stream), lambda: (stream.spawn(1)[0].random(), stream.standard_normal()))


def torch_cpu() -> Case:
    return Case(existing("torch.cpu"), lambda: torch_normals(None), torch.manual_seed)


def torch_object() -> Case:
    stream = torch.Generator()
    stream.manual_seed(11)
    return Case(adapted(stream), lambda: torch_normals(stream), stream.manual_seed)


def torch_normals(stream: torch.Generator | None) -> tuple[float, float]:
    """One of each kind: torch keeps the second of a pair for each of them."""
    single = torch.randn(1, generator=stream).item()
    return single, torch.randn(1, generator=stream, dtype=torch.float64).item()


@functools.cache
def compiled() -> types.SimpleNamespace:
    import numba

    def numpy_normal() -> float:
        return np.random.standard_normal()

    def numpy_seed(seed: int) -> None:
        np.random.seed(seed)

    def python_normal() -> float:
        return random.gauss(0.0, 1.0)

    def python_seed(seed: int) -> None:
        random.seed(seed)

    made = (numpy_normal, numpy_seed, python_normal, python_seed)
    return types.SimpleNamespace(**{f.__name__: numba.njit(f) for f in made})


def numba_numpy() -> Case:
    calls = compiled()
    return Case(existing("numba.numpy"), calls.numpy_normal, calls.numpy_seed)


def numba_python() -> Case:
    calls = compiled()
    return Case(existing("numba.python"), calls.python_normal, calls.python_seed)


def engine(kind: str) -> Case:
    from scipy.stats import qmc

    made = getattr(qmc, kind)(d=2, rng=np.random.default_rng(11))
    return Case(adapted(made), lambda: made.random(1).tolist())


def custom() -> Case:
    counter = nbseed.register("counter", Counter())

    def idiom(seed: int) -> None:
        counter.at = seed

    return Case(existing("counter"), counter.draw, idiom)


def jax_keys() -> Case:
    import jax

    keys = nbseed.register("keys", jax.random.key(11))

    def idiom(seed: int) -> None:
        keys.key = jax.random.key(seed)

    return Case(existing("keys"), lambda: float(jax.random.normal(keys.split())), idiom)


def device(index: int) -> Case:
    devices = Devices()
    devices.init()
    torch.cuda = devices
    stream = devices.default_generators[index]
    return Case(existing(f"torch.cuda:{index}"), lambda: devices.draw(index), stream.manual_seed)


CASES: dict[str, Callable[[], Case]] = {
    "python": python,
    "random.Random": python_object,
    "numpy": numpy_global,
    "numpy, slowly": numpy_global,
    "numpy over PCG64": numpy_global_pcg64,
    "RandomState": random_state,
    "RandomState over PCG64": random_state_pcg64,
    **{f"Generator({kind})": functools.partial(of_bits, kind, True) for kind in BIT_GENERATORS},
    **{kind: functools.partial(of_bits, kind, False) for kind in BIT_GENERATORS},
    "SeedSequence": seed_sequence,
    "Generator.spawn": spawning,
    "torch.cpu": torch_cpu,
    "torch.Generator": torch_object,
    "numba.numpy": numba_numpy,
    "numba.python": numba_python,
    "Sobol": functools.partial(engine, "Sobol"),
    "Halton": functools.partial(engine, "Halton"),
    "LatinHypercube": functools.partial(engine, "LatinHypercube"),
    "registered": custom,
    **({"jax": jax_keys} if WITH_JAX else {}),
    "device 0": functools.partial(device, 0),
    "device 2": functools.partial(device, 2),
}


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.setattr(torch, "cuda", torch.cuda)  # what a stand-in replaces comes back
    if request.param == "numpy, slowly":
        monkeypatch.setattr(numpy_room, "_gauss_offset", lambda: None)
    with imported("numba") if "numba" in request.param else nullcontext():
        made = CASES[request.param]()
        before = made.generator.get_state()
        yield made
        made.generator.set_state(before)


# -- the contract ----------------------------------------------------------------------------------


@pytest.mark.parametrize("moved", [1, 2, 700])
def test_a_state_put_back_repeats_an_odd_number_of_normals(case: Case, moved: int) -> None:
    case.draws(1)
    state = case.generator.get_state()
    first = case.draws()
    case.draws(moved if moved < 3 else 7)
    case.generator.set_state(state)
    assert case.generator.get_state() == state
    assert case.draws() == first


def test_a_state_put_back_repeats_an_even_number_of_normals(case: Case) -> None:
    case.draws(2)
    state = case.generator.get_state()
    first = case.draws()
    case.generator.set_state(state)
    assert case.draws() == first


def test_a_state_is_bytes_and_changes_with_each_draw(case: Case) -> None:
    state = case.generator.get_state()
    assert type(state) is bytes
    case.draw()
    assert case.generator.get_state() != state


def test_looking_moves_nothing(case: Case) -> None:
    case.draw()
    state = case.generator.get_state()
    first = case.draws()
    case.generator.set_state(state)
    for _ in range(3):
        assert case.generator.get_state() == state
        case.generator.check_state(state)
    assert case.draws() == first


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda state: b"",
    "one byte short": lambda state: state[:-1],
    "half": lambda state: state[: len(state) // 2],
    "one byte more": lambda state: state + b"\xff",
    "doubled": lambda state: state * 2,
    "of another kind": lambda state: b"a state of something else, " * 3,
    "JSON of another kind": lambda state: b'{"bit_generator":"Dice"}',
    "a list": lambda state: b"[1,2,3]",
    "reversed": lambda state: state[::-1] + b"\0",
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_damaged_bytes_are_refused_and_nothing_moves(case: Case, damage: str) -> None:
    case.draw()
    state = case.generator.get_state()
    with pytest.raises(StateError) as caught:
        case.generator.check_state(DAMAGE[damage](state))
    assert str(caught.value).startswith(case.generator.name)
    assert case.generator.get_state() == state


def test_random_bytes_are_refused(case: Case) -> None:
    state = case.generator.get_state()
    noise = random.Random(5)  # Hypothesis would put the global generators under test elsewhere
    for size in [*range(1, 8), *range(17, 60), 2504, 5000]:
        with pytest.raises(StateError):
            case.generator.check_state(noise.randbytes(size))
    assert case.generator.get_state() == state


def test_a_flipped_byte_is_refused_or_can_be_set(case: Case) -> None:
    before = case.generator.get_state()
    noise = random.Random(6)
    places = [*range(min(40, len(before))), *noise.sample(range(len(before)), 8), len(before) - 1]
    for place in places:
        damaged = bytearray(before)
        damaged[place] ^= noise.randrange(1, 256)
        try:
            case.generator.check_state(bytes(damaged))
        except StateError:
            assert case.generator.get_state() == before
        else:
            case.generator.set_state(bytes(damaged))
            case.draws(2)
            case.generator.set_state(before)
            assert case.generator.get_state() == before


@pytest.mark.parametrize("seed", [0, 3, 2**32 - 1])
def test_seeding_is_the_librarys_own_idiom(case: Case, seed: int) -> None:
    if case.idiom is None:
        case.generator.seed(seed)
        first = case.draws()
        case.generator.seed(seed)
        assert case.draws() == first
        return
    case.draw()  # a kept normal must not survive
    case.idiom(seed)
    expected = case.draws()
    case.draw()
    case.generator.seed(seed)
    assert case.draws() == expected


# -- particular traps ------------------------------------------------------------------------------


@pytest.mark.parametrize("drawn", [0, 1, 2, 623, 624, 625])
@pytest.mark.parametrize("make", [numpy_global, random_state], ids=["numpy", "RandomState"])
def test_the_state_read_in_place_is_the_one_that_numpy_hands_out(
    make: Callable[[], Case], drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if numpy_room._gauss_offset() is None:
        pytest.skip("the state cannot be read in place here")
    case = make()
    case.draws(drawn)
    in_place = case.generator.get_state()
    monkeypatch.setattr(numpy_room, "_gauss_offset", lambda: None)
    assert case.generator.get_state() == in_place
    _, key, position, has_gauss, gauss = case.generator.stream.get_state()  # type: ignore[attr-defined]
    words = struct.pack("<625I", *key.tolist(), position)
    assert in_place == struct.pack("<8sId", b"MT19937\0", has_gauss, gauss) + words


def test_another_bit_generator_under_numpy_is_put_back_over_mt19937_and_over_pcg64() -> None:
    np.random.seed(3)
    np.random.standard_normal()
    twister = nbseed.snapshot()
    first = np.random.standard_normal(5).tolist()
    np.random.set_bit_generator(np.random.PCG64(7))
    np.random.standard_normal()
    pcg = nbseed.snapshot()
    second = np.random.standard_normal(5).tolist()
    nbseed.restore(twister)
    assert type(np.random.get_bit_generator()).__name__ == "MT19937"
    assert np.random.standard_normal(5).tolist() == first
    nbseed.restore(pcg)
    assert type(np.random.get_bit_generator()).__name__ == "PCG64"
    assert np.random.standard_normal(5).tolist() == second


def test_a_bit_generator_that_the_user_holds_stays_under_the_global_stream() -> None:
    bits = np.random.PCG64(7)
    np.random.set_bit_generator(bits)
    before = nbseed.snapshot()
    first = np.random.random(3).tolist()
    nbseed.restore(before)
    assert np.random.get_bit_generator() is bits
    assert np.random.Generator(bits).random(3).tolist() == first


def test_a_state_put_back_is_seen_by_every_alias() -> None:
    bits = np.random.PCG64(11)
    one, two, generator = np.random.Generator(bits), np.random.Generator(bits), adapted(bits)
    state = generator.get_state()
    first = one.random(3).tolist()
    generator.set_state(state)
    assert two.random(3).tolist() == first


def test_the_twisters_words_are_shared_with_a_generator_over_the_same_bits() -> None:
    stream = np.random.RandomState(3)
    shared = np.random.Generator(stream._bit_generator)
    generator = adapted(stream)
    state = generator.get_state()
    first = shared.random(3).tolist()
    generator.set_state(state)
    assert shared.random(3).tolist() == first


def test_the_engines_own_stream_is_still_the_users_after_a_rewind() -> None:
    from scipy.stats import qmc

    engine = qmc.LatinHypercube(2, rng=np.random.default_rng(11))
    rng = engine.rng
    generator = adapted(engine)
    state = generator.get_state()
    first = engine.random(4).tolist()
    generator.set_state(state)
    assert engine.rng is rng
    assert engine.random(4).tolist() == first


def broken(state: dict[str, Any], changes: dict[str, Any]) -> bytes:
    return json.dumps({**state, **changes}).encode()


BROKEN_BITS = [
    ("MT19937", {"state": {"pos": 625}}, "user:x: not a state of MT19937 (pos)"),
    ("MT19937", {"state": {"pos": -1}}, "user:x: not a state of MT19937 (pos)"),
    ("Philox", {"buffer_pos": 5}, "user:x: not a state of Philox (buffer_pos)"),
    ("Philox", {"buffer_pos": -1}, "user:x: not a state of Philox (buffer_pos)"),
    ("PCG64", {"spawned": -1}, "user:x: -1 is no number of spawned children"),
    ("PCG64", {"spawned": 2**32}, "user:x: 4294967296 is no number of spawned children"),
    ("PCG64", {"spawned": "two"}, "user:x: 'two' is no number of spawned children"),
    ("PCG64", {"bit_generator": "Dice"}, "user:x: the state is of Dice, the object is PCG64"),
    ("PCG64", {"bit_generator": 3}, "user:x: not a state of a NumPy bit generator"),
]


@pytest.mark.parametrize(("kind", "changes", "said"), BROKEN_BITS)
def test_positions_that_would_read_foreign_memory_are_refused(
    kind: str, changes: dict[str, Any], said: str
) -> None:
    bits = getattr(np.random, kind)(11)
    generator = adapted(bits)
    before = generator.get_state()
    state = json.loads(before)
    if "state" in changes:
        changes = {"state": {**state["state"], **changes["state"]}}
    with pytest.raises(StateError) as caught:
        generator.check_state(broken(state, changes))
    assert str(caught.value) == said
    assert generator.get_state() == before


def test_fewer_words_than_a_twister_has_are_refused() -> None:
    generator = adapted(np.random.MT19937(11))
    state = json.loads(generator.get_state())
    state["state"]["key"]["hex"] = state["state"]["key"]["hex"][:80]
    with pytest.raises(StateError, match=r"^user:x: not a state of MT19937 \(index 10 is out of"):
        generator.check_state(json.dumps(state).encode())


def test_a_random_state_takes_no_state_of_another_kind() -> None:
    twister = adapted(np.random.RandomState(1))
    pcg = adapted(np.random.RandomState(np.random.PCG64(1)))
    for one, other, said in [
        (twister, pcg, "user:x: the state is of PCG64, the object has MT19937"),
        (pcg, twister, "user:x: the state is of MT19937, the object has PCG64"),
    ]:
        with pytest.raises(StateError) as caught:
            one.check_state(other.get_state())
        assert str(caught.value) == said


@pytest.mark.parametrize("changes", [{"has_gauss": 2}, {"gauss": "0"}, {"gauss": None}])
def test_a_random_states_kept_normal_is_checked(changes: dict[str, Any]) -> None:
    generator = adapted(np.random.RandomState(np.random.PCG64(1)))
    state = json.loads(generator.get_state())
    with pytest.raises(StateError) as caught:
        generator.check_state(broken(state, changes))
    assert str(caught.value) == "user:x: not a state of a RandomState"


@pytest.mark.parametrize("count", [b"4294967296", b"9" * 5000, b"-1", b"", b"1.5"])
def test_a_spawn_counter_that_no_seed_sequence_has_is_refused(count: bytes) -> None:
    with pytest.raises(StateError) as caught:
        adapted(np.random.SeedSequence(3)).check_state(b"spawned " + count)
    assert str(caught.value) == "user:x: not the state of a SeedSequence"


class Mine(np.random.PCG64):
    """A bit generator that NumPy does not know by name."""


@pytest.mark.parametrize("make", [Mine, lambda seed: np.random.RandomState(Mine(seed))])
def test_a_bit_generator_of_another_package_is_rewound(make: Callable[[int], Any]) -> None:
    stream = make(11)
    draw = stream.random_raw if isinstance(stream, Mine) else stream.standard_normal
    generator = adapted(stream)
    state = generator.get_state()
    first = draw(3).tolist()
    generator.check_state(state)
    generator.set_state(state)
    assert draw(3).tolist() == first


def test_the_system_random_is_no_generator() -> None:
    assert user.adapt("user:x", random.SystemRandom()) is None


# -- registering -----------------------------------------------------------------------------------


class NoState:
    def set_state(self, state: bytes) -> None: ...


class TextState(NoState):
    def get_state(self) -> str:
        return "text"


REFUSED = [
    ("", Counter(), "the name must be a non-empty string, got ''"),
    ("  ", Counter(), "the name must be a non-empty string, got '  '"),
    (3, Counter(), "the name must be a non-empty string, got 3"),
    ("numpy", Counter(), "the name 'numpy' belongs to a library or a variable"),
    ("torch.cuda:9", Counter(), "the name 'torch.cuda:9' belongs to a library or a variable"),
    ("python", Counter(), "the name 'python' belongs to a library or a variable"),
    ("user:rng", Counter(), "the name 'user:rng' belongs to a library or a variable"),
    ("sim", NoState(), "sim: a NoState is no generator that is known, and has no get_state()"),
    ("sim", 3, "sim: a int is no generator that is known, and has no get_state()"),
    ("sim", TextState(), "sim: TextState.get_state() must give bytes, gave str"),
]


@pytest.mark.parametrize(("name", "value", "said"), REFUSED)
def test_what_cannot_be_registered_is_told_why(name: Any, value: object, said: str) -> None:
    before = list(nbseed.snapshot().states)
    with pytest.raises(RegistrationError) as caught:
        nbseed.register(name, value)
    assert str(caught.value) == said
    assert list(nbseed.snapshot().states) == before


def test_registering_gives_the_object_back_and_a_second_time_replaces_it() -> None:
    one, two = Counter(), Counter()
    assert nbseed.register("sim", one) is one
    assert nbseed.register("sim", two) is two
    two.at = 7
    assert nbseed.snapshot().states["sim"] == (7).to_bytes(8, "little")
    nbseed.unregister("sim")
    assert "sim" not in nbseed.snapshot().states


def test_an_unknown_registration_is_named_with_those_that_exist() -> None:
    for name in ("b", "a"):
        nbseed.register(name, Counter())
    with pytest.raises(RegistrationError) as caught:
        nbseed.unregister("c")
    assert str(caught.value) == "no generator is registered as 'c'; registered: a, b"
    nbseed.unregister("a")
    nbseed.unregister("b")
    with pytest.raises(RegistrationError) as caught:
        nbseed.unregister("a")
    assert str(caught.value) == "no generator is registered as 'a'; registered: none"


@pytest.mark.parametrize("kind", ["Random", "Generator", "RandomState", "torch.Generator"])
def test_known_objects_can_be_registered_and_are_seeded_and_rewound(kind: str) -> None:
    made: Any = {
        "Random": lambda: random.Random(1),
        "Generator": lambda: np.random.default_rng(1),
        "RandomState": lambda: np.random.RandomState(1),
        "torch.Generator": torch.Generator,
    }[kind]()
    nbseed.register("sim", made)
    nbseed.seed(3)
    expected: Any = {
        "Random": lambda: random.Random(3).getstate(),
        "Generator": lambda: np.random.default_rng(3).bit_generator.state,
        "RandomState": lambda: str(np.random.RandomState(3).get_state()),
        "torch.Generator": lambda: torch.Generator().manual_seed(3).get_state().tolist(),
    }[kind]()
    got: Any = {
        "Random": lambda: made.getstate(),
        "Generator": lambda: made.bit_generator.state,
        "RandomState": lambda: str(made.get_state()),
        "torch.Generator": lambda: made.get_state().tolist(),
    }[kind]()
    assert got == expected


def test_a_registered_object_without_a_seed_is_named_and_nothing_has_moved() -> None:
    class Plain(NoState):
        def get_state(self) -> bytes:
            return b"x"

    nbseed.register("sim", Plain())
    before = nbseed.snapshot()
    with pytest.raises(StateError) as caught:
        nbseed.seed(3)
    assert str(caught.value) == "sim: a Plain has no seed()"
    assert not before.diff(nbseed.snapshot())


# -- libraries that plug in, and those that cannot be read -----------------------------------------


@dataclass(frozen=True)
class Plugged:
    """What another package's entry point returns."""

    name: str
    stream: Counter

    def get_state(self) -> bytes:
        return self.stream.get_state()

    def check_state(self, state: bytes) -> None:
        self.stream.check_state(state)

    def set_state(self, state: bytes) -> None:
        self.stream.set_state(state)

    def seed(self, seed: int) -> None:
        self.stream.seed(seed)


DICE = Counter()


def dice_generators() -> list[Plugged]:
    return [Plugged("dice", DICE)]


def dice_fault() -> list[Plugged]:
    raise OSError("no dice")


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def in_(function: str) -> None:
        entry = importlib.metadata.EntryPoint(
            "dice", f"test_generators:{function}", "nbseed.generators"
        )
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
        generators._plugged_in.cache_clear()

    yield in_
    monkeypatch.undo()
    generators._plugged_in.cache_clear()


def test_an_entry_point_is_asked_only_once_its_library_is_imported(
    plug: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plug("dice_generators")
    assert "dice" not in nbseed.snapshot().states
    assert "dice" in nbseed.seed(3).imports
    monkeypatch.setitem(sys.modules, "dice", types.ModuleType("dice"))
    assert "dice" in nbseed.seed(3).names
    assert DICE.at == 3
    before = nbseed.snapshot()
    DICE.draw()
    nbseed.restore(before)
    assert DICE.at == 3


def test_a_fault_in_an_entry_point_is_a_warning_and_the_others_go_on(
    plug: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plug("dice_fault")
    monkeypatch.setitem(sys.modules, "dice", types.ModuleType("dice"))
    said = r"^nbseed: test_generators:dice_fault is left out \(OSError: no dice\)$"
    with pytest.warns(RuntimeWarning, match=said):
        taken = nbseed.snapshot()
    assert "numpy" in taken.states


def test_cupy_is_seeded_and_its_unreadable_state_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    module, seeds = types.ModuleType("cupy"), []
    module.random = types.SimpleNamespace(seed=seeds.append)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)
    nbseed.seed(3)
    assert seeds == [3]
    note = "cupy: cuRAND's state cannot be read; call cupy.random.seed(...) in the cell"
    assert note in nbseed.snapshot().notes


def test_tensorflows_global_generator_is_looked_for_and_never_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, seeds = types.ModuleType("tensorflow"), []
    module.random = types.SimpleNamespace(set_seed=seeds.append)  # type: ignore[attr-defined]
    ops = types.ModuleType("tensorflow.python.ops.stateful_random_ops")
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    monkeypatch.setitem(sys.modules, ops.__name__, ops)
    nbseed.seed(3)
    assert seeds == [3]
    assert "tensorflow" not in nbseed.snapshot().states
    note = "tensorflow: tf.random.normal and the like keep counters that cannot be read"
    assert note in nbseed.snapshot().notes

    class Variable:
        value = np.array([1, 2, 3])

        def numpy(self) -> np.ndarray:
            return self.value

        def assign(self, value: np.ndarray) -> None:
            self.value = value.copy()

    state = Variable()
    ops.global_generator = types.SimpleNamespace(state=state, algorithm=1)  # type: ignore[attr-defined]
    before = nbseed.snapshot()
    assert before.states["tensorflow"] == b"\1" + np.array([1, 2, 3]).astype("<i8").tobytes()
    state.value = np.array([1, 2, 9])
    nbseed.restore(before)
    assert state.value.tolist() == [1, 2, 3]
    with pytest.raises(StateError) as caught:
        nbseed.restore(nbseed.Snapshot({**before.states, "tensorflow": b"\2" + bytes(24)}))
    assert str(caught.value) == "tensorflow: not a state of this TensorFlow generator"


if importlib.util.find_spec("jax") and not WITH_JAX:  # where it is not, no one can register a key

    def test_keys_of_jax_keep_the_contract() -> None:
        options = ["-p", "no:cacheprovider", "-k", "jax"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, __file__],
            env={**os.environ, "NBSEED_WITH_JAX": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 15  # type: ignore[index]


if WITH_JAX:

    def test_a_jax_key_becomes_a_stream_and_old_style_keys_are_no_keys() -> None:
        import jax

        keys = nbseed.register("keys", jax.random.key(3))
        _, fresh = jax.random.split(jax.random.key(3))
        assert jax.random.key_data(keys.split()).tolist() == jax.random.key_data(fresh).tolist()
        with pytest.raises(RegistrationError):
            nbseed.register("old", jax.random.PRNGKey(3))
