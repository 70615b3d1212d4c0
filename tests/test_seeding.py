"""Seeding: bit for bit the idiom, also for what is imported later; derived seeds; isolation."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libraries import imported

import nbseed
from nbseed import determinism, generators, seeding
from nbseed.errors import NbseedError, SeedError
from nbseed.generators import pinned

SEEDS = [0, 1, 3, 2**31, 2**32 - 1]


def draws() -> list[object]:
    """An odd number of normals from each library, and words."""
    return [
        random.gauss(0, 1),
        random.random(),
        np.random.standard_normal(3).tolist(),
        np.random.randint(1000, size=3).tolist(),
        torch.randn(3).tolist(),
        torch.randperm(9).tolist(),
    ]


def process(code: str, *arguments: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- the idiom -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_the_idiom_bit_for_bit(seed: int) -> None:
    random.gauss(0, 1), np.random.standard_normal(), torch.randn(1)  # normals that are kept
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    expected = draws()
    draws()
    seeded = nbseed.seed(seed)
    assert {"python", "numpy", "torch.cpu"} <= set(seeded.names)
    assert draws() == expected
    assert seeding.in_force() == seeding.Regime(seed)


@pytest.mark.parametrize(
    "seed",
    [np.int64(3), np.uint8(3), np.int32(3), np.array(3), torch.tensor(3)],
    ids=lambda seed: f"{type(seed).__name__} {seed.dtype}",
)
def test_whole_numbers_of_other_kinds_are_taken(seed: Any) -> None:
    nbseed.seed(3)
    expected = draws()
    nbseed.seed(seed)
    assert draws() == expected
    assert type(seeding.in_force().seed) is int  # type: ignore[union-attr]


BAD = [
    (-1, "-1"),
    (2**32, "4294967296"),
    (-(2**70), str(-(2**70))),
    (3.0, "3.0"),
    (float("nan"), "nan"),
    (True, "True"),
    (False, "False"),
    (np.bool_(True), repr(np.bool_(True))),
    (np.float64(3), repr(np.float64(3))),
    (np.int64(-1), repr(np.int64(-1))),
    ("3", "'3'"),
    (b"3", "b'3'"),
    (None, "None"),
    ([3], "[3]"),
    ((3, 4), "(3, 4)"),
    (3j, "3j"),
]


CALLS: dict[str, Callable[[Any], object]] = {
    "seed": nbseed.seed,
    "isolated": lambda seed: nbseed.isolated(seed).__enter__(),
    "derive": lambda seed: seeding.derive(seed, "cell"),
}


@pytest.mark.parametrize(("seed", "shown"), BAD)
@pytest.mark.parametrize("call", sorted(CALLS))
def test_a_bad_seed_is_refused_and_nothing_moves(call: str, seed: Any, shown: str) -> None:
    if call == "isolated" and seed is None:
        return  # no seed at all: from where the generators are
    nbseed.seed(5)
    before = nbseed.snapshot()
    with pytest.raises(SeedError) as caught:
        CALLS[call](seed)
    assert str(caught.value) == f"the seed must be an integer from 0 to 4294967295, got {shown}"
    assert not before.diff(nbseed.snapshot())
    assert seeding.in_force() == seeding.Regime(5)


def test_a_seed_error_is_a_value_error_and_nbseeds() -> None:
    assert issubclass(SeedError, ValueError)
    assert issubclass(SeedError, NbseedError)


def test_objects_of_the_users_are_not_seeded() -> None:
    rng = np.random.default_rng(1)
    generators.look_into({"rng": rng})
    expected = rng.bit_generator.state
    seeded = nbseed.seed(3)
    assert rng.bit_generator.state == expected
    assert "user:rng" not in seeded.names


def test_registered_generators_are_seeded_and_named() -> None:
    rng = nbseed.register("sim", random.Random(1))
    assert nbseed.seed(3).names[-1] == "sim"
    assert rng.getstate() == random.Random(3).getstate()


def test_numba_is_seeded_as_in_a_compiled_function() -> None:
    with imported("numba") as numba:

        @numba.njit
        def idiom(seed: int) -> None:
            np.random.seed(seed)
            random.seed(seed)

        idiom(3)
        expected = nbseed.snapshot().states
        assert {"numba.numpy", "numba.python"} <= set(nbseed.seed(3).names)
        after = nbseed.snapshot().states
        assert after["numba.numpy"] == expected["numba.numpy"]
        assert after["numba.python"] == expected["numba.python"]


@pytest.mark.parametrize("fault", [OSError("no"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_seeding_that_fails_half_way_moves_nothing(fault: BaseException) -> None:
    class Broken:
        def get_state(self) -> bytes:
            return b"x"

        def set_state(self, state: bytes) -> None: ...

        def seed(self, seed: int) -> None:
            raise fault

    nbseed.seed(5)
    nbseed.register("broken", Broken())
    draws()
    before = nbseed.snapshot()
    with pytest.raises(type(fault)):
        nbseed.seed(3)
    assert not before.diff(nbseed.snapshot())
    assert seeding.in_force() == seeding.Regime(5)


def test_each_seeding_is_a_move_that_can_be_told_apart() -> None:
    first = seeding.last_move()
    nbseed.seed(3)
    second = seeding.last_move()
    nbseed.seed(3)
    assert first < second < seeding.last_move()


def test_forgetting_leaves_no_seed_in_force() -> None:
    nbseed.seed(3)
    seeding.forget()
    assert seeding.in_force() is None


def test_new_seeds_are_seeds() -> None:
    new = {seeding.new_seed() for _ in range(20)}
    assert len(new) > 15
    assert all(seeding.check_seed(seed) == seed for seed in new)


# -- regimes ---------------------------------------------------------------------------------------


def test_a_cell_that_seeds_belongs_to_what_was_in_force_before_it() -> None:
    nbseed.seed(3)
    for _ in range(3):  # the cell is run again and again
        nbseed.seed(4, cell="train")
        assert seeding.in_force() == seeding.Regime(4, cell="train", before=seeding.Regime(3))


def test_the_chain_of_regimes_does_not_grow() -> None:
    for number in range(5):
        nbseed.seed(number)
        nbseed.seed(number + 100, cell="a")
    assert seeding.in_force() == seeding.Regime(104, cell="a", before=seeding.Regime(4))


# -- derived seeds ---------------------------------------------------------------------------------


def by_numpy(seed: int, key: str) -> int:
    """The recipe as it is documented."""
    words = np.frombuffer(hashlib.blake2b(key.encode(), digest_size=16).digest(), dtype="<u4")
    sequence = np.random.SeedSequence([seed, *(int(word) for word in words)])
    return int(sequence.generate_state(1)[0])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.text())
def test_a_derived_seed_is_numpys_recipe(seed: int, key: str) -> None:
    derived = seeding.derive(seed, key)
    assert derived == by_numpy(seed, key)
    assert seeding.check_seed(derived) == derived


KNOWN = [(0, ""), (3, "train"), (3, "été"), (2**32 - 1, "x" * 1000), (1, "\x00")]


@pytest.mark.parametrize(("seed", "key"), KNOWN)
def test_particular_keys_are_numpys_recipe(seed: int, key: str) -> None:
    assert seeding.derive(seed, key) == by_numpy(seed, key)


def test_derived_seeds_are_the_same_in_every_process_and_need_no_numpy() -> None:
    code = """
        import sys
        from nbseed import seeding
        print(seeding.derive(3, "train"), "numpy" in sys.modules)
    """
    assert process(code) == f"{by_numpy(3, 'train')} False\n"


def test_other_cells_and_other_seeds_get_other_seeds() -> None:
    derived = {seeding.derive(seed, key) for seed in range(40) for key in ("a", "b", "ab", "")}
    assert len(derived) == 160


def test_deriving_moves_nothing() -> None:
    before = nbseed.snapshot()
    seeding.derive(3, "train")
    assert not before.diff(nbseed.snapshot())


# -- isolation -------------------------------------------------------------------------------------


def test_an_isolated_block_draws_as_its_seed_says_and_leaves_no_trace() -> None:
    nbseed.seed(3)
    expected_inside = draws()
    nbseed.seed(5)
    random.gauss(0, 1)
    before = nbseed.snapshot()
    with nbseed.isolated(3):
        assert draws() == expected_inside
    assert not before.diff(nbseed.snapshot())
    assert seeding.in_force() == seeding.Regime(5)


def test_an_isolated_block_without_a_seed_goes_on_and_comes_back() -> None:
    nbseed.seed(3)
    expected = draws()
    nbseed.seed(3)
    with nbseed.isolated():
        assert draws() == expected
    assert draws() == expected


@pytest.mark.parametrize(
    "fault", [ZeroDivisionError(), KeyboardInterrupt(), SystemExit(1), GeneratorExit()],
    ids=lambda fault: type(fault).__name__,
)  # fmt: skip
@pytest.mark.parametrize("seed", [None, 3])
def test_whatever_ends_an_isolated_block_it_leaves_no_trace(
    seed: int | None, fault: BaseException
) -> None:
    nbseed.seed(5)
    before = nbseed.snapshot()

    def ended() -> None:
        with nbseed.isolated(seed):
            draws()
            raise fault

    with pytest.raises(type(fault)) as caught:
        ended()
    assert caught.value is fault
    assert not before.diff(nbseed.snapshot())
    assert seeding.in_force() == seeding.Regime(5)


def test_isolated_blocks_nest() -> None:
    nbseed.seed(5)
    outer = nbseed.snapshot()
    with nbseed.isolated(3):
        draws()
        inner = nbseed.snapshot()
        with nbseed.isolated(4):
            draws()
            with nbseed.isolated():
                draws()
        assert not inner.diff(nbseed.snapshot())
    assert not outer.diff(nbseed.snapshot())


def test_a_seed_call_inside_an_isolated_block_ends_with_it() -> None:
    nbseed.seed(5)
    before = nbseed.snapshot()
    with nbseed.isolated(3):
        nbseed.seed(9)
    assert not before.diff(nbseed.snapshot())
    assert seeding.in_force() == seeding.Regime(5)


OPTIONS = [{}, {"deterministic": True}, {"strict": True}, {"pin_entropy": True}]


@pytest.mark.parametrize("inside", OPTIONS, ids=lambda options: " ".join(options) or "none")
@pytest.mark.parametrize("outside", OPTIONS, ids=lambda options: " ".join(options) or "none")
def test_a_seed_call_inside_an_isolated_block_leaves_the_options_outside_it(
    outside: dict[str, bool], inside: dict[str, bool]
) -> None:
    nbseed.seed(5, **outside)
    draws()
    pinned.randbits(64)
    before, switches = nbseed.snapshot(), determinism.switches()
    with nbseed.isolated(3):
        nbseed.seed(9, **inside)
        pinned.randbits(64)
    assert not before.diff(nbseed.snapshot())
    assert determinism.switches() == switches
    assert seeding.in_force() == seeding.Regime(5, **outside)
    assert pinned.is_on() is ("pin_entropy" in outside)
    nbseed.seed(5)


@pytest.mark.parametrize("options", OPTIONS[1:], ids=" ".join)
def test_an_isolated_block_is_under_the_options_in_force(options: dict[str, bool]) -> None:
    nbseed.seed(5, each_cell=True, **options)
    with nbseed.isolated(3):
        assert seeding.in_force() == seeding.Regime(3, **options)
    with nbseed.isolated():
        assert seeding.in_force() == seeding.Regime(5, each_cell=True, **options)
    assert seeding.in_force() == seeding.Regime(5, each_cell=True, **options)
    nbseed.seed(5)


def test_isolation_covers_registered_generators_and_the_users_objects() -> None:
    rng, sim = np.random.default_rng(1), nbseed.register("sim", random.Random(1))
    generators.look_into({"rng": rng})
    before = nbseed.snapshot()
    with nbseed.isolated(3):
        rng.random(), sim.random()
    assert not before.diff(nbseed.snapshot())


def test_what_is_made_inside_an_isolated_block_is_left_alone() -> None:
    namespace: dict[str, Any] = {}
    generators.look_into(namespace)
    with nbseed.isolated(3):
        namespace["rng"] = np.random.default_rng(1)
        first = namespace["rng"].random()
    other = np.random.default_rng(1)
    assert other.random() == first
    assert namespace["rng"].random() == other.random()


# -- entropy that no seed controls -----------------------------------------------------------------


def test_each_call_of_seed_states_all_options() -> None:
    nbseed.seed(3, deterministic=True, each_cell=True, strict=True, pin_entropy=True)
    assert seeding.in_force() == seeding.Regime(3, True, True, None, True, True)
    nbseed.seed(4)
    assert seeding.in_force() == seeding.Regime(4)
    assert (pinned.is_on(), torch.are_deterministic_algorithms_enabled()) == (False, False)


def test_pinned_entropy_is_a_generator_that_is_seeded_and_rewound() -> None:
    assert "numpy.entropy" not in nbseed.snapshot().states
    assert "numpy.entropy" not in nbseed.seed(3).names
    assert "numpy.entropy" in nbseed.seed(3, pin_entropy=True).names
    taken = nbseed.snapshot()
    first = [pinned.randbits(128) for _ in range(3)]
    assert str(taken.diff(nbseed.snapshot())) == "differ: numpy.entropy"
    nbseed.restore(taken)
    assert [pinned.randbits(128) for _ in range(3)] == first
    nbseed.seed(4, pin_entropy=True)
    assert pinned.randbits(128) != first[0]
    nbseed.seed(3, pin_entropy=True)
    assert pinned.randbits(128) == first[0]
    with nbseed.isolated(3):
        assert pinned.randbits(128) == first[0]
    assert pinned.randbits(128) == first[1]
    assert len(set(first)) == 3


def test_pinned_entropy_leaves_the_draws_of_the_seed_as_they_are() -> None:
    nbseed.seed(3)
    expected = draws()
    nbseed.seed(3, pin_entropy=True)
    pinned.randbits(128)
    assert draws() == expected


@pytest.mark.parametrize("was_on", [False, True])
def test_a_seed_that_fails_leaves_pinned_entropy_as_it_was(
    was_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbseed.seed(3, pin_entropy=was_on)
    before = nbseed.snapshot()

    def broken(seed: int) -> None:
        raise OSError("oh")

    with monkeypatch.context() as patched:
        patched.setattr(seeding, "seed_now", broken)
        with pytest.raises(OSError, match="oh"):
            nbseed.seed(4, pin_entropy=not was_on)
    with pytest.raises(SeedError):
        nbseed.seed(-1, pin_entropy=not was_on)
    assert pinned.is_on() is was_on
    assert not before.diff(nbseed.snapshot())
    assert seeding.in_force() == seeding.Regime(3, pin_entropy=was_on)


def test_pinned_entropy_is_off_when_the_seed_is_forgotten() -> None:
    nbseed.seed(3, strict=True, pin_entropy=True)
    seeding.forget()
    assert (seeding.in_force(), pinned.is_on()) == (None, False)
    assert "numpy.entropy" not in nbseed.snapshot().states


def test_pinned_entropy_of_a_numpy_that_comes_later_is_seeded_once() -> None:
    code = """
        import nbseed
        from nbseed import seeding
        from nbseed.generators import pinned
        told = []
        seeding.on_arrival(told.append)
        assert nbseed.seed(3, pin_entropy=True).names == ("python",)
        import numpy
        late = pinned.randbits(64)
        print(told, late == (nbseed.seed(3, pin_entropy=True), pinned.randbits(64))[1])
    """
    assert process(code) == "[['numpy', 'numpy.entropy']] True\n"


# -- libraries that come later ---------------------------------------------------------------------

LATER = """
    import random
    import nbseed
    seeded = nbseed.seed(3)
    assert seeded.names == ("python",), seeded
    assert {{"numpy", "torch", "numba"}} <= set(seeded.imports), seeded
    {imports}
    print({draws})
"""
IDIOM = """
    import random
    random.seed(3)
    {imports}
    {seeds}
    print({draws})
"""
NUMPY_DRAWS = "random.gauss(0, 1), np.random.standard_normal(3).tolist()"
TORCH_DRAWS = f"{NUMPY_DRAWS}, torch.randn(3).tolist(), torch.randperm(9).tolist()"


@pytest.mark.parametrize(
    ("imports", "seeds", "drawn"),
    [
        ("import numpy as np", "np.random.seed(3)", NUMPY_DRAWS),
        (
            "import torch, numpy as np",
            "np.random.seed(3); torch.manual_seed(3)",
            TORCH_DRAWS,
        ),
        (
            "import numpy as np; from torch.utils import data; import torch",
            "np.random.seed(3); torch.manual_seed(3)",
            TORCH_DRAWS,
        ),
        (
            "from numpy.random import standard_normal; import numpy as np",
            "np.random.seed(3)",
            NUMPY_DRAWS,
        ),
        ("import scipy.stats; import numpy as np", "np.random.seed(3)", NUMPY_DRAWS),
    ],
    ids=["numpy", "torch", "a part of torch", "a part of numpy", "by another library"],
)
def test_a_library_that_is_imported_after_the_seed_draws_as_the_idiom_says(
    imports: str, seeds: str, drawn: str
) -> None:
    later = process(LATER.format(imports=imports, draws=drawn))
    assert later == process(IDIOM.format(imports=imports, seeds=seeds, draws=drawn))


def test_numba_imported_after_the_seed_draws_as_the_idiom_says() -> None:
    code = """
        {before}
        import numba, numpy as np
        @numba.njit
        def draw():
            return np.random.random()
        @numba.njit
        def idiom():
            np.random.seed(3)
        {after}
        print(draw())
    """
    later = process(code.format(before="import nbseed; nbseed.seed(3)", after=""))
    assert later == process(code.format(before="", after="idiom()"))


def test_a_second_seed_reaches_what_the_first_waited_for() -> None:
    code = """
        import nbseed
        nbseed.seed(3)
        nbseed.seed(4)
        import numpy as np
        print(np.random.random())
    """
    assert process(code) == f"{np.random.RandomState(4).random_sample()}\n"


def test_without_a_seed_in_force_an_import_is_left_alone() -> None:
    code = """
        import nbseed
        from nbseed import seeding
        nbseed.seed(3)
        seeding.forget()
        import numpy as np
        print(np.random.random())
    """
    assert process(code) != f"{np.random.RandomState(3).random_sample()}\n"


ISOLATED_IMPORT = """
    import nbseed
    {before}
    with nbseed.isolated(4):
        import numpy as np
        inside = np.random.random()
    print(inside, np.random.random())
"""


def test_a_library_that_is_imported_in_an_isolated_block_gets_both_seeds() -> None:
    said = process(ISOLATED_IMPORT.format(before="nbseed.seed(3)")).split()
    expected = [np.random.RandomState(seed).random_sample() for seed in (4, 3)]
    assert said == [str(number) for number in expected]


def test_arrivals_are_told_once_and_no_longer_after_the_end() -> None:
    code = """
        from nbseed import seeding
        told = []
        stop = seeding.on_arrival(told.append)
        import numpy
        stop()
        stop()
        import torch
        print(told)
    """
    assert process(code) == "[['numpy']]\n"


FAULTY = """
    import warnings
    import nbseed
    from nbseed import seeding
    def fault(names):
        raise OSError("no")
    seeding.on_arrival(fault)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import numpy
    print(*[w.message for w in said if issubclass(w.category, RuntimeWarning)], sep="\\n")
"""


def test_a_fault_at_an_import_is_a_warning_and_the_import_goes_on() -> None:
    assert process(FAULTY) == "nbseed: numpy was not seeded at import (OSError: no)\n"


# -- nothing is imported ---------------------------------------------------------------------------

HEAVY = ["torch", "numpy", "matplotlib", "ipywidgets", "IPython", "scipy", "pandas", "numba", "jax"]
LIGHT = """
    import sys
    import nbseed
    {then}
    print(*sorted(set({heavy}) & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "then",
    [
        "",
        "nbseed.seed(3)",
        "nbseed.restore(nbseed.snapshot())",
        "nbseed.fingerprints()",
        # Panel is ipywidgets' own: who asks for it gets them.
        "[getattr(nbseed, n) for n in nbseed.__all__ if n != 'Panel']",
        "nbseed.seed(3, deterministic=True)",
    ],
)
def test_nothing_is_imported_that_the_user_has_not(then: str) -> None:
    assert process(LIGHT.format(then=then, heavy=HEAVY)) == "\n"


@pytest.mark.parametrize("library", ["numpy", "torch", "matplotlib", "IPython", "ipywidgets"])
def test_the_check_for_imports_can_fail(library: str) -> None:
    code = LIGHT.format(then=f"import {library}", heavy=[library])
    assert process(code, "-W", "ignore") == f"{library}\n"


# -- workers of a DataLoader -----------------------------------------------------------------------


class Drawing(torch.utils.data.Dataset):
    """Each item is what its worker draws from Python and NumPy."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, random.random(), np.random.rand()], dtype=torch.float64)


def epoch(workers: int) -> list[list[float]]:
    loader = torch.utils.data.DataLoader(
        Drawing(), num_workers=workers, worker_init_fn=nbseed.seed_worker, batch_size=1
    )
    return [batch[0].tolist() for batch in loader]


FORKED = pytest.mark.filterwarnings(  # said by JAX and by Python, once threads run
    "ignore:os.fork:RuntimeWarning", "ignore:This process:DeprecationWarning"
)


@FORKED
@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_is_repeated_with_and_without_workers(workers: int) -> None:
    nbseed.seed(3)
    before = nbseed.snapshot()
    first = epoch(workers)
    second = epoch(workers)
    nbseed.restore(before)
    assert epoch(workers) == first
    assert second != first


@FORKED
def test_workers_draw_other_numbers_than_their_siblings() -> None:
    nbseed.seed(3)
    items = epoch(2)
    for column in (1, 2):
        assert len({item[column] for item in items}) == len(items)


def test_a_worker_is_seeded_from_the_seed_that_torch_gave_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.utils.data, "get_worker_info", types.SimpleNamespace)
    monkeypatch.setattr(torch, "initial_seed", lambda: 5 * 2**32 + 7)
    nbseed.seed_worker(1)
    assert random.random() == random.Random(7).random()
    assert np.random.rand() == np.random.RandomState(7).random_sample()


def test_outside_a_worker_the_call_says_where_it_belongs() -> None:
    before = nbseed.snapshot()
    with pytest.raises(NbseedError) as caught:
        nbseed.seed_worker(0)
    assert str(caught.value) == ("seed_worker is called by a DataLoader: pass it as worker_init_fn")
    assert not before.diff(nbseed.snapshot())


def test_a_seed_that_fails_half_way_leaves_all_that_can_be_put_back_where_it_was() -> None:
    class Stubborn:
        def get_state(self) -> bytes:
            return b"state"

        def set_state(self, state: bytes) -> None:
            raise OSError("set")

        def seed(self, seed: int) -> None:
            raise OSError("seed")

    nbseed.register("stubborn", Stubborn())
    before = nbseed.fingerprints()
    with pytest.raises(OSError, match=r"^seed$"):
        nbseed.seed(4)
    assert nbseed.fingerprints() == before
    assert seeding.in_force() is None
