"""Generator objects of the user's: what is found, under which name, and what is left alone."""

from __future__ import annotations

import random
import sys
import textwrap
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import nbseed
from nbseed import generators
from nbseed.generators import user


def cell(text: str, **variables: object) -> dict[str, Any]:
    """The variables of a notebook after a cell."""
    namespace: dict[str, Any] = {"__name__": "__main__", **variables}
    exec(textwrap.dedent(text), namespace)
    return namespace


def names(namespace: dict[str, Any], *only: str, **bounds: int) -> list[str]:
    found = user.find(namespace, only or None, **bounds)
    assert found.cut == ()
    return list(found.generators)


IMPORTS = """
import collections, functools, random, types
import numpy as np, torch
from random import Random
from numpy.random import default_rng
"""

FOUND: dict[str, tuple[str, list[str]]] = {
    "variables": (
        """
        a, b, c = Random(1), default_rng(1), np.random.RandomState(1)
        d, e, f = np.random.PCG64(1), np.random.SeedSequence(1), torch.Generator()
        """,
        ["user:a", "user:b", "user:c", "user:d", "user:e", "user:f"],
    ),
    "a qmc engine": (
        "from scipy.stats import qmc; sobol = qmc.Sobol(2, rng=1)",
        ["user:sobol"],
    ),
    "items of a list": ("rngs = [Random(1), 3, Random(2)]", ["user:rngs[0]", "user:rngs[2]"]),
    "items of a tuple": ("pair = (Random(1), Random(2))", ["user:pair[0]", "user:pair[1]"]),
    "items of a dict": (
        "rngs = {'train': Random(1), 7: Random(2), None: Random(3), (1, 2): Random(4)}",
        ["user:rngs['train']", "user:rngs[7]", "user:rngs[None]", "user:rngs[<tuple>]"],
    ),
    "a long key": (
        "d = {'x' * 60: Random(1)}",
        [f"user:d['{'x' * 35}...']"],
    ),
    "items of a set": ("rngs = {Random(1)}", ["user:rngs{0}"]),
    "items of a frozenset": ("rngs = frozenset([Random(1)])", ["user:rngs{0}"]),
    "items of a deque": ("q = collections.deque([Random(1)])", ["user:q[0]"]),
    "values of a defaultdict": (
        "d = collections.defaultdict(list); d['a'].append(Random(1))",
        ["user:d['a'][0]"],
    ),
    "a named tuple": (
        "P = collections.namedtuple('P', 'x rng'); p = P(1, Random(1))",
        ["user:p[1]"],
    ),
    "attributes": (
        "sim = types.SimpleNamespace(world=types.SimpleNamespace(rng=Random(1)))",
        ["user:sim.world.rng"],
    ),
    "slots": (
        """
        class Sim:
            __slots__ = ("rng", "empty")
        sim = Sim()
        sim.rng = Random(1)
        """,
        ["user:sim.rng"],
    ),
    "slots of a base": (
        """
        class Base:
            __slots__ = "rng"
        class Sim(Base):
            __slots__ = ("other",)
        sim = Sim()
        sim.rng, sim.other = Random(1), default_rng(1)
        """,
        ["user:sim.other", "user:sim.rng"],
    ),
    "a public name of a private attribute": (
        """
        class Env:
            def __init__(self): self._np_random = default_rng(1)
            @property
            def np_random(self): raise AssertionError("a property was evaluated")
        env = Env()
        """,
        ["user:env.np_random"],
    ),
    "a private attribute": ("x = types.SimpleNamespace(_rng=Random(1))", ["user:x._rng"]),
    "function defaults": (
        "def f(x, y=2, rng=Random(1), *, other=Random(2)): pass",
        ["user:f(rng)", "user:f(other)"],
    ),
    "positional-only defaults": ("def f(x, rng=Random(1), /): pass", ["user:f(rng)"]),
    "closures": (
        """
        def make():
            rng = Random(1)
            def draw(): return rng.random()
            return draw
        draw = make()
        """,
        ["user:draw<rng>"],
    ),
    "an empty closure": (
        """
        def make():
            def draw(): return rng.random()
            if False: rng = None
            return draw
        draw, other = make(), Random(1)
        """,
        ["user:other"],
    ),
    "partials": (
        """
        def f(*args, **kwargs): pass
        p = functools.partial(f, Random(1), rng=default_rng(1))
        """,
        ["user:p.args[0]", "user:p.keywords['rng']"],
    ),
    "bound methods": (
        """
        class Sim:
            def __init__(self): self.rng = Random(1)
            def step(self): pass
        step = Sim().step
        """,
        ["user:step.__self__.rng"],
    ),
    "a generator's own method": ("draw = Random(1).random", []),
    "classes of the notebook": (
        """
        class Sim:
            rng = Random(1)
        """,
        ["user:Sim.rng"],
    ),
    "a class that only an instance reaches": (
        """
        class Sim:
            rng = Random(1)
        sim = Sim()
        del Sim
        """,
        ["user:type(sim).rng"],
    ),
    "subclasses of generators": (
        """
        class Mine(Random): pass
        class Other(np.random.RandomState): pass
        a, b = Mine(1), Other(1)
        """,
        ["user:a", "user:b"],
    ),
    "nothing": ("x, y, z = 1, 'a', [1.5, None, ('b', b'c')]", []),
}


@pytest.mark.parametrize("where", sorted(FOUND))
def test_generators_are_found_and_named_as_one_types_them(where: str) -> None:
    text, expected = FOUND[where]
    assert names(cell(IMPORTS + textwrap.dedent(text))) == expected


@pytest.mark.parametrize("where", sorted(FOUND))
def test_a_name_without_special_marks_is_an_expression_that_reaches_it(where: str) -> None:
    text, _ = FOUND[where]
    namespace = cell(IMPORTS + textwrap.dedent(text))
    for name, generator in user.find(namespace).generators.items():
        expression = name.removeprefix("user:")
        if any(mark in expression for mark in "<{") or "..." in expression:
            continue
        if "(" in expression and not expression.startswith("type("):
            continue  # f(rng): the default of an argument
        if expression == "env.np_random":
            continue  # its property must not be evaluated here either
        value = eval(expression, namespace)
        held = getattr(value, "bit_generator", value)
        assert any(held is part for part in vars(generator).values())


# -- real libraries --------------------------------------------------------------------------------


def test_a_data_loaders_generator_and_its_samplers_are_named() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8))
    one, two = torch.Generator(), torch.Generator()
    loader = torch.utils.data.DataLoader(data, shuffle=True, generator=one)
    sampler = torch.utils.data.RandomSampler(data, generator=two)
    other = torch.utils.data.DataLoader(data, sampler=sampler)
    found = names({"loader": loader, "other": other})
    assert found == ["user:loader.generator", "user:other.sampler.generator"]


def test_an_epoch_of_a_shuffled_loader_is_repeated() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(20))
    loader = torch.utils.data.DataLoader(data, shuffle=True, generator=torch.Generator())
    generators.look_into({"loader": loader})
    before = nbseed.snapshot()
    first = [batch[0].item() for batch in loader]
    assert [batch[0].item() for batch in loader] != first
    nbseed.restore(before)
    assert [batch[0].item() for batch in loader] == first


def test_an_estimators_random_state_is_named() -> None:
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    estimator = SGDClassifier(random_state=np.random.RandomState(1))
    assert names({"clf": estimator}) == ["user:clf.random_state"]
    assert names({"pipe": make_pipeline(estimator)}) == ["user:pipe.steps[0][1].random_state"]


def test_an_estimator_that_uses_the_global_stream_is_not_listed_twice() -> None:
    from sklearn.utils import check_random_state

    held = types.SimpleNamespace(random_state=check_random_state(None))
    assert names({"held": held}) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_environments_are_named_by_their_public_generator() -> None:
    import gymnasium

    class Env(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(4)
        action_space = gymnasium.spaces.Discrete(2)

    envs = [Env(), Env()]
    for env in envs:
        env.reset(seed=3)
    assert names({"envs": envs}) == ["user:envs[0].np_random", "user:envs[1].np_random"]
    generators.look_into({"envs": envs})
    before = nbseed.snapshot()
    first = [env.np_random.random() for env in envs]
    nbseed.restore(before)
    assert [env.np_random.random() for env in envs] == first


def test_a_model_is_searched_through_its_modules() -> None:
    layer = torch.nn.Linear(2, 2)
    layer.rng = random.Random(1)
    model = torch.nn.Sequential(torch.nn.ReLU(), layer)
    assert names({"model": model}) == ["user:model._modules['1'].rng"]


# -- names -----------------------------------------------------------------------------------------


def test_aliases_count_once_under_the_first_name() -> None:
    rng = random.Random(1)
    assert names({"a": rng, "b": rng, "c": [rng], "d": {"rng": rng}}) == ["user:a"]


def test_the_nearest_name_wins() -> None:
    rng = random.Random(1)
    assert names({"box": [[rng]], "sim": types.SimpleNamespace(rng=rng)}) == ["user:sim.rng"]
    assert names({"box": [[rng]], "z": rng}) == ["user:z"]


def test_a_generator_and_its_bit_generator_are_one_stream() -> None:
    rng = np.random.default_rng(1)
    assert names({"rng": rng, "bits": rng.bit_generator}) == ["user:rng"]
    assert names({"bits": rng.bit_generator, "rng": rng}) == ["user:bits"]
    assert names({"a": np.random.Generator(rng.bit_generator), "b": rng}) == ["user:a"]


def test_a_random_state_and_its_bit_generator_are_one_stream() -> None:
    stream = np.random.RandomState(1)
    assert names({"stream": stream, "bits": stream._bit_generator}) == ["user:stream"]


def test_only_the_variables_asked_for_are_searched() -> None:
    namespace = {"a": random.Random(1), "b": [random.Random(2)]}
    assert names(namespace, "b", "missing") == ["user:b[0]"]
    assert list(user.find(namespace, ()).generators) == []


GLOBAL_STREAMS: dict[str, Callable[[], object]] = {
    "numpy's functions": lambda: np.random.rand,
    "numpy's stream": lambda: np.random.mtrand._rand,
    "numpy's bits": np.random.get_bit_generator,
    "a generator over numpy's bits": lambda: np.random.Generator(np.random.get_bit_generator()),
    "torch's": lambda: torch.default_generator,
    "python's": lambda: random.random.__self__,
    "a method of python's": lambda: random.gauss,
    "modules": lambda: [random, np.random, torch],
}


@pytest.mark.parametrize("stream", sorted(GLOBAL_STREAMS))
def test_global_streams_are_not_listed_a_second_time(stream: str) -> None:
    assert names({"x": GLOBAL_STREAMS[stream]()}) == []


def test_registered_objects_are_not_listed_a_second_time() -> None:
    rng, plain = np.random.default_rng(1), random.Random(1)
    nbseed.register("sim:0", rng)
    nbseed.register("sim:1", plain)
    generators.look_into({"rng": rng, "bits": rng.bit_generator, "also": [plain]})
    states = nbseed.snapshot().states
    assert [n for n in states if n.startswith(("user:", "sim"))] == ["sim:0", "sim:1"]


IPYTHONS = [
    "In", "Out", "get_ipython", "exit", "quit", "open", "_", "__", "___", "_i", "_ii", "_iii",
    "_3", "_i3", "_dh", "_ih", "_oh", "__name__", "__builtins__", "__session__",
]  # fmt: skip


@pytest.mark.parametrize("name", IPYTHONS)
def test_ipythons_own_names_are_not_the_users(name: str) -> None:
    assert names({name: random.Random(1)}) == []


@pytest.mark.parametrize("name", ["_rng", "_x1", "Input", "i", "_i_rng", "__rng", "Out2"])
def test_names_that_only_look_like_ipythons_are_the_users(name: str) -> None:
    assert names({name: random.Random(1)}) == [f"user:{name}"]


def test_a_function_reaches_what_it_looks_up_in_the_notebook() -> None:
    namespace = cell(
        IMPORTS
        + textwrap.dedent("""
        rng, other = Random(1), Random(2)
        def draw():
            return [rng.random() for _ in range(3)]
        """)
    )
    assert names(namespace, "draw") == ["user:rng"]


def test_a_function_does_not_lead_into_the_shell() -> None:
    namespace = cell("def f(): return get_ipython()")
    namespace["get_ipython"] = lambda rng=random.Random(1): None  # noqa: B008
    assert names(namespace, "f") == []


# -- what is not done ------------------------------------------------------------------------------


class Touchy:
    """Whatever the user's code could be made to run, it complains."""

    def __init__(self) -> None:
        self.__dict__["rng"] = random.Random(1)

    @property
    def trap(self) -> object:
        raise AssertionError("a property was evaluated")

    @property
    def bit_generator(self) -> object:
        raise AssertionError("a property was evaluated")

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"__getattr__({name!r}) was called")

    def __bool__(self) -> bool:
        raise AssertionError("__bool__ was called")

    def __len__(self) -> int:
        raise AssertionError("__len__ was called")

    def __iter__(self) -> object:
        raise AssertionError("__iter__ was called")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("__eq__ was called")

    def __hash__(self) -> int:
        raise AssertionError("__hash__ was called")

    def __repr__(self) -> str:
        raise AssertionError("__repr__ was called")


class TouchySlots:
    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"__getattr__({name!r}) was called")


def test_none_of_the_users_code_is_run() -> None:
    found = user.find({"a": Touchy(), "b": [TouchySlots(), Touchy()], "c": {"k": Touchy()}})
    assert list(found.generators) == ["user:a.rng", "user:b[1].rng", "user:c['k'].rng"]


def test_looking_moves_no_generator_and_consumes_no_iterator() -> None:
    def numbers() -> Any:
        yield from range(5)

    running, rng = numbers(), random.Random(1)
    before = rng.getstate()
    user.find({"running": running, "rng": rng, "mapped": map(str, running)})
    assert list(running) == [0, 1, 2, 3, 4]
    assert rng.getstate() == before


def test_arrays_tables_and_tensors_are_passed_over() -> None:
    import pandas as pd

    table = pd.DataFrame({"a": [random.Random(1)]}, dtype=object)
    array = np.array([random.Random(1)], dtype=object)
    tensor = torch.ones(3)
    tensor.rng = random.Random(1)
    assert names({"table": table, "array": array, "tensor": tensor, "index": [table.index]}) == []


def test_installed_modules_and_their_classes_are_never_searched() -> None:
    import fractions

    fractions.rng = random.Random(1)
    fractions.Fraction.rng = random.Random(1)
    try:
        assert names({"fractions": fractions, "Fraction": fractions.Fraction}) == []
        assert names({"half": fractions.Fraction(1, 2)}) == []
    finally:
        del fractions.rng, fractions.Fraction.rng


def test_a_module_of_the_users_own_is_searched(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_simulation.py").write_text("import random\nrng = random.Random(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import my_simulation

    try:
        assert names({"my_simulation": my_simulation}) == ["user:my_simulation.rng"]
    finally:
        del sys.modules["my_simulation"]


# -- bounds and cycles -----------------------------------------------------------------------------


def test_cycles_end() -> None:
    loop: list[object] = [random.Random(1)]
    loop.append(loop)
    one, two = types.SimpleNamespace(), types.SimpleNamespace(rng=random.Random(1))
    one.two, two.one = two, one
    assert names({"loop": loop, "one": one}) == ["user:loop[0]", "user:one.two.rng"]


def nested(depth: int) -> object:
    value: object = random.Random(1)
    for _ in range(depth):
        value = [value]
    return value


def test_the_depth_is_a_bound_that_is_said() -> None:
    assert names({"x": nested(user.DEPTH)}) == ["user:x" + "[0]" * user.DEPTH]
    found = user.find({"x": nested(user.DEPTH + 1)})
    assert found.generators == {}
    assert found.cut == (f"the search for generators stopped {user.DEPTH} steps below x",)


def test_the_depth_is_said_once_for_the_first_variable() -> None:
    found = user.find({"x": nested(4), "y": nested(4), "z": random.Random(1)}, depth=2)
    assert list(found.generators) == ["user:z"]
    assert found.cut == ("the search for generators stopped 2 steps below x",)


def test_the_count_is_a_bound_that_is_said_and_the_nearest_are_found() -> None:
    many = [types.SimpleNamespace(n=n) for n in range(50)]
    found = user.find({"many": many, "rng": random.Random(1)}, count=20)
    assert list(found.generators) == ["user:rng"]
    assert found.cut == ("the search for generators stopped after 20 objects",)


def test_a_bound_that_was_hit_is_a_note_of_the_snapshot() -> None:
    generators.look_into({"x": nested(user.DEPTH + 1)})
    note = f"the search for generators stopped {user.DEPTH} steps below x"
    assert note in nbseed.snapshot().notes


@pytest.mark.parametrize(
    "big",
    [
        list(range(1_000_000)),
        [0.5] * 1_000_000,
        dict.fromkeys(range(100_000), "text"),
        [(1, 2)] * 100_000,
    ],
    ids=["ints", "floats", "dict", "one pair over and over"],
)
def test_a_million_numbers_are_no_objects_to_look_at(
    big: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: how often the search asks an object for its children."""
    asked = []
    children = user._children

    def counted(name: str, *args: Any) -> Any:
        for path, child in children(name, *args):
            asked.append(path)
            yield path, child

    monkeypatch.setattr(user, "_children", counted)
    namespace = {"big": big, "rng": random.Random(1)}
    found = user.find(namespace, count=3)
    assert list(found.generators) == ["user:rng"]
    assert found.cut == ()
    assert len(asked) <= 100_000


def test_a_bound_below_a_class_names_the_variable() -> None:
    namespace = cell("class Sim:\n    deep = [[[object()]]]\nsim = Sim()\ndel Sim")
    found = user.find(namespace, depth=2)
    assert found.cut == ("the search for generators stopped 2 steps below sim",)


# -- back in place ---------------------------------------------------------------------------------


def test_a_rewind_is_seen_by_every_alias() -> None:
    rng = np.random.default_rng(1)
    generators.look_into({"rng": rng, "draws": [rng.random]})
    before = nbseed.snapshot()
    first = rng.random(3).tolist()
    nbseed.restore(before)
    assert np.random.Generator(rng.bit_generator).random(3).tolist() == first


def test_an_object_that_was_replaced_under_its_name_is_rewound_too() -> None:
    namespace = {"rng": np.random.default_rng(1)}
    generators.look_into(namespace)
    before = nbseed.snapshot()
    first = namespace["rng"].random(3).tolist()
    namespace["rng"] = np.random.default_rng(99)
    nbseed.restore(before)
    assert namespace["rng"].random(3).tolist() == first


@pytest.mark.parametrize("other", [random.Random(1), np.random.PCG64DXSM(1), torch.Generator()])
def test_an_object_of_another_kind_under_the_name_is_refused_and_nothing_moves(
    other: object,
) -> None:
    namespace: dict[str, object] = {"rng": np.random.default_rng(1)}
    generators.look_into(namespace)
    taken = nbseed.snapshot()
    namespace["rng"] = other
    random.random()
    before = nbseed.snapshot()
    with pytest.raises(nbseed.NbseedError, match=r"^user:rng: "):
        nbseed.restore(taken)
    assert not before.diff(nbseed.snapshot())
    done = nbseed.restore(taken, strict=False)
    assert list(done.unfit) == ["user:rng"]
    assert done.unfit["user:rng"].startswith("user:rng: ")
    assert nbseed.snapshot().states["python"] == taken.states["python"]


def test_a_spawned_child_is_repeated() -> None:
    rng, sequence = np.random.default_rng(1), np.random.SeedSequence(1)
    generators.look_into({"rng": rng, "sequence": sequence})
    before = nbseed.snapshot()
    first = rng.spawn(2)[1].random(), sequence.spawn(2)[1].generate_state(2).tolist()
    nbseed.restore(before)
    assert (rng.spawn(2)[1].random(), sequence.spawn(2)[1].generate_state(2).tolist()) == first


def test_every_kind_at_once_is_rewound() -> None:
    namespace = cell(IMPORTS + textwrap.dedent(FOUND["variables"][0]))
    generators.look_into(namespace)

    def draw() -> list[object]:
        return [
            namespace["a"].gauss(0, 1),
            namespace["b"].normal(),
            namespace["c"].normal(),
            np.random.Generator(namespace["d"]).random(),
            namespace["e"].spawn(1)[0].entropy,
            namespace["e"].n_children_spawned,
            torch.randn(1, generator=namespace["f"]).item(),
        ]

    draw()
    before = nbseed.snapshot()
    first = draw()
    nbseed.restore(before)
    assert draw() == first


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: random.SystemRandom(), "reads the operating system's entropy, which has no state"),
        (lambda: OwnState(), "a OwnState keeps its state in a way of its own"),
    ],
)
def test_a_stream_that_cannot_be_captured_is_named(make, said):
    found = user.find({"box": [make()]})
    assert found.generators == {}
    assert found.cut == (f"user:box[0]: {said}",)


class OwnState(random.Random):
    def getstate(self):
        return ("mine",)


def test_a_poisson_disk_is_named_and_its_generator_left_alone():
    qmc = pytest.importorskip("scipy.stats.qmc")
    found = user.find({"disk": qmc.PoissonDisk(2, radius=0.1, rng=3)})
    assert found.generators == {}
    assert found.cut == ("user:disk: a PoissonDisk's sample cannot be put back",)


def test_objects_that_lie_about_their_class_are_passed_over():
    from unittest.mock import Mock

    class Lazy(dict):
        def items(self):
            raise AssertionError("called")

        values = __iter__ = items

    class Gone:
        pass

    gone = Gone()
    dead = weakref.proxy(gone)
    del gone
    rng = random.Random(3)
    kinds = (np.random.Generator, random.Random, torch.Generator)
    namespace = {"mocks": [Mock(spec=kind) for kind in kinds], "dead": dead, "lazy": Lazy(a=rng)}
    found = user.find(namespace)
    assert list(found.generators) == ["user:lazy['a']"]


def test_the_front_end_s_objects_do_not_lead_to_all_variables():
    from ipykernel.iostream import OutStream

    stream = OutStream.__new__(OutStream)
    stream.__dict__["shell"] = {"secret": random.Random(3)}
    assert user.find({"thread": types.SimpleNamespace(_stderr=stream)}).generators == {}
