"""What a cell is seen to call: each call once, where it was made; nothing changes by being seen."""

from __future__ import annotations

import copy
import inspect
import io
import itertools
import linecache
import logging
import multiprocessing.process
import os
import pickle
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import types
import uuid
import warnings

import numpy as np
import numpy.random
import pytest
import torch
from shells import loaded, started

from nbseed import watch
from nbseed.errors import EntropyError
from nbseed.generators import pinned
from nbseed.watch import site

NUMBERS = itertools.count()
GIVEN = {
    "logging": logging, "np": np, "os": os, "random": random, "secrets": secrets, "sys": sys,
    "subprocess": subprocess, "tempfile": tempfile, "threading": threading, "torch": torch,
    "uuid": uuid,
}  # fmt: skip


def places():
    """All that a watch replaces."""
    owners = [random, random.Random, os, uuid, threading.Thread, np.random, torch.cuda,
        torch.cuda.random, np.random.mtrand, np.random.bit_generator, subprocess.Popen,
        multiprocessing.process.BaseProcess]  # fmt: skip
    return [(owner, name, value) for owner in owners for name, value in vars(owner).items()
        if callable(value)]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_stays_patched():
    before = places()
    yield
    changed = [name for owner, name, value in before if vars(owner).get(name) is not value]
    assert changed == []


def source(text, name):
    """A compiled text whose lines can be looked up, as a front end does it with a cell."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return compile(text, name, "exec")


def cell(text, strict=False, **given):
    """Run a cell under a watch, and return the watch and the cell's variables."""
    names = {"__name__": "__main__", **GIVEN, **given}
    seen = watch.Watch(names, tuple(names), lambda: strict)
    code = source(text, f"<cell {next(NUMBERS)}>")
    watch.begin(seen)
    try:
        exec(code, names)
    finally:
        watch.end(seen)
    return seen, names


def calls(text, **given):
    return [
        (c.kind, c.what, c.site.line, c.site.through, c.count)
        for c in cell(text, **given)[0].calls()
    ]


def library(text, name="lib"):
    """A module as an installed package has it."""
    made = types.ModuleType(name)
    exec(source(text, f"/x/site-packages/{name.replace('.', '/')}.py"), vars(made))
    return made


# -- every kind of call ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("os.urandom(4)", "os.urandom()"),
        ("os.getrandom(4)", "os.getrandom()"),
        ("uuid.uuid1()", "uuid.uuid1()"),
        ("uuid.uuid4()", "uuid.uuid4()"),
        ("secrets.token_bytes(3)", "secrets.token_bytes()"),
        ("secrets.token_hex(3)", "secrets.token_hex()"),
        ("secrets.token_urlsafe(3)", "secrets.token_urlsafe()"),
        ("secrets.randbits(9)", "secrets.randbits()"),
        ("secrets.SystemRandom().random()", "secrets.SystemRandom().random()"),
        ("random.SystemRandom().getrandbits(5)", "random.SystemRandom().getrandbits()"),
        ("random.Random()", "random.Random()"),
        ("random.Random(None)", "random.Random()"),
        ("random.Random(3).seed()", "random.Random(3).seed()"),
        ("random.seed()", "random.seed()"),
        ("random.seed(None)", "random.seed()"),
        ("np.random.seed()", "np.random.seed()"),
        ("np.random.seed(None)", "np.random.seed()"),
        ("np.random.default_rng()", "np.random.default_rng()"),
        ("np.random.default_rng(seed=None)", "np.random.default_rng()"),
        ("np.random.RandomState()", "np.random.RandomState()"),
        ("np.random.RandomState(seed=None)", "np.random.RandomState()"),
        ("np.random.SeedSequence()", "np.random.SeedSequence()"),
        ("np.random.Generator(np.random.MT19937())", "np.random.MT19937()"),
        ("np.random.Generator(np.random.Philox())", "np.random.Philox()"),
        ("np.random.Generator(np.random.SFC64())", "np.random.SFC64()"),
        ("torch.seed()", "torch.seed()"),
        ("torch.random.seed()", "torch.random.seed()"),
    ],
)
def test_entropy_is_named_once_with_its_line_and_count(text, what):
    found = calls(f"x = 1\nfor _ in range(3):\n    {text}\n")
    assert found == [("entropy", what, 3, "", 3)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("secrets.randbelow(2**20 + 1)", "secrets.randbelow()"),
        ("secrets.choice(range(5))", "secrets.choice()"),
        ("secrets.SystemRandom().choice('abcde')", "secrets.SystemRandom().choice()"),
    ],
)
def test_a_number_that_random_rejects_and_asks_for_again_is_one_call(text, what):
    assert calls(f"for _ in range(60): {text}") == [("entropy", what, 1, "", 60)]


def test_a_method_that_asks_at_several_places_is_named_once():
    found = calls("r = random.SystemRandom()\nx = list(range(20))\nr.shuffle(x)\nr.gauss(0, 1)")
    assert [(what, line) for _, what, line, _, _ in found] == [
        ("r.shuffle() of a SystemRandom", 3), ("r.gauss() of a SystemRandom", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what", "stream", "values"),
    [
        ("random.seed(3)", "random.seed()", "python", ("3",)),
        ("random.seed(a='x')", "random.seed()", "python", ("'x'",)),
        ("random.seed('x' * 99)", "random.seed()", "python", ("'" + "x" * 20 + "...",)),
        ("np.random.seed(4)", "np.random.seed()", "numpy", ("4",)),
        ("np.random.seed(seed=4)", "np.random.seed()", "numpy", ("4",)),
        ("np.random.seed(np.int64(4))", "np.random.seed()", "numpy", ("4",)),
        ("np.random.seed(np.arange(3))", "np.random.seed()", "numpy", ("an ndarray",)),
        ("np.random.seed([1, 2])", "np.random.seed()", "numpy", ("a list",)),
        ("torch.manual_seed(5)", "torch.manual_seed()", "torch", ("5",)),
        ("torch.cuda.manual_seed_all(6)", "torch.cuda.manual_seed_all()", "torch.cuda", ("6",)),
        ("torch.cuda.random.manual_seed_all(6)", "torch.cuda.manual_seed_all()", "torch.cuda",
            ("6",)),
        ("seed(7)", "random.seed()", "python", ("7",)),
    ],
)  # fmt: skip
def test_a_re_seed_is_named_once_with_its_value(text, what, stream, values):
    (call,) = cell(f"\n{text}", seed=random.seed)[0].calls()
    assert (call.kind, call.what, call.stream) == ("seed", what, stream)
    assert (call.site.line, call.count, call.values, call.last) == (2, 1, values, values[-1])


def test_of_many_seeds_the_first_are_shown_and_the_digest_is_over_all():
    text = "for k in {}: random.seed(k)"
    (one,), (two,), (again,) = (
        cell(text.format(ks))[0].calls() for ks in ("range(5)", "[0, 1, 2, 7, 4]", "range(5)")
    )
    assert (one.values, one.last, one.count) == (("0", "1", "2"), "4", 5)
    assert (two.values, two.last, two.count) == (("0", "1", "2"), "4", 5)
    assert one.digest == again.digest != two.digest


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t = threading.Thread(target=int)\nt.start()\nt.join()", ("thread", "Thread", 2, "", 1)),
        ("\nsubprocess.run([sys.executable, '-c', ''])",
            ("process", "Popen", 2, "run of subprocess", 1)),
    ],
)  # fmt: skip
def test_threads_and_processes_are_named(text, found):
    assert calls(text) == [found]


def test_a_process_of_multiprocessing_is_named():
    class Idle(multiprocessing.process.BaseProcess):
        def _Popen(self, process):
            return type("Ended", (), {"sentinel": None, "poll": lambda self: 0})()

    text = "for p in ps: p.start()"
    assert calls(text, ps=[Idle(), Idle()]) == [("process", "Idle", 1, "", 2)]
    multiprocessing.process._cleanup()


def test_aliases_and_star_imports_are_seen():
    text = "from numpy.random import *\nfrom os import urandom\nurandom(2)\nmk()\nsys_seed(3)"
    found = calls(text, mk=np.random.default_rng, sys_seed=random.seed)
    assert [what for _, what, *_ in found] == ["urandom()", "mk()", "random.seed()"]


# -- where it was made -----------------------------------------------------------------------------

DEEP = """
import numpy as np
def a(): return np.random.default_rng()
def b(): return a()
def c(): return b()
def d(): return c()
def e(): return d()
def call(f): return f()
"""


def test_the_function_and_the_library_in_between_are_named():
    lib = library(DEEP)
    text = (
        "def mine():\n    return np.random.default_rng()\n"
        "class K:\n    def m(self): return mine()\nmine()\nK().m()\nlib.e()\nlib.call(mine)"
    )
    assert calls(text, lib=lib) == [
        ("entropy", "np.random.default_rng()", 5, "mine", 1),
        ("entropy", "np.random.default_rng()", 6, "mine", 1),
        ("entropy", "np.random.default_rng()", 7, "e of lib", 1),
        ("entropy", "np.random.default_rng()", 8, "mine", 1),
    ]


def test_a_helper_of_the_user_s_own_is_named_like_the_cell_s_functions():
    helper = types.ModuleType("helper")
    exec(source(DEEP, "/home/me/project/helper.py"), vars(helper))
    (call,) = cell("\nhelper.call(helper.e)", helper=helper)[0].calls()
    assert (call.what, call.site.line, call.site.users) == ("np.random.default_rng()", 2, True)
    assert (call.site.through, call.site.library) == ("call of helper", "")


def test_what_an_import_does_is_told_of_the_import(tmp_path, monkeypatch):
    (tmp_path / "seeds_early.py").write_text("import random\nrandom.seed(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "seeds_early", raising=False)
    (call,) = cell("\nimport seeds_early")[0].calls()
    sys.modules.pop("seeds_early")
    assert (call.kind, call.site.line, call.site.through, call.site.importing) == (
        "seed", 2, "the import of seeds_early", "seeds_early",
    )  # fmt: skip


def test_two_lines_that_come_to_one_place_deep_in_a_library_are_two():
    found = calls("lib.e()\nlib.e(); lib.e()", lib=library(DEEP))
    assert [(line, count) for _, _, line, _, count in found] == [(1, 1), (2, 1), (2, 1)]


def test_a_call_of_a_thread_of_the_library_does_not_hide_the_cell_s():
    text = "t = threading.Thread(target=lib.e)\nt.start()\nt.join()\nlib.e()"
    found = calls(text, lib=library(DEEP))
    assert [(kind, line) for kind, _, line, *_ in found] == [("thread", 1 + 1), ("entropy", 4)]


def test_calls_of_threads_that_find_a_place_new_at_the_same_time_are_all_counted(monkeypatch):
    locate, inside, others_done = site.locate, threading.Event(), threading.Event()

    def slow(frame, namespace):
        if frame.f_code.co_name == "work" and not inside.is_set():
            inside.set()
            assert others_done.wait(60)
        return locate(frame, namespace)

    monkeypatch.setattr(site, "locate", slow)
    text = (
        "def work():\n    for _ in range(50): os.urandom(1)\n"
        "first, *others = (threading.Thread(target=work) for _ in range(4))"
    )
    seen, names = cell(text)
    watch.begin(seen)
    names["first"].start()
    assert inside.wait(60)
    for thread in names["others"]:
        thread.start()
    for thread in names["others"]:
        thread.join()
    others_done.set()
    names["first"].join()
    watch.end(seen)
    (call,) = seen.calls()
    assert (call.count, call.site.through, call.site.line) == (200, "work", 0)


def test_beyond_the_bound_places_are_counted_not_kept():
    text = "\n".join(["os.urandom(1)"] * (watch.SITES + 5))
    seen, _ = cell(text)
    assert (len(seen.calls()), seen.cut) == (watch.SITES, 5)


@pytest.mark.parametrize(
    "text", ["os.urandom(2)", "f'{np.random.default_rng()}'", "(lambda: random.seed())()"]
)
def test_code_without_a_source_is_seen_too(text):
    names = dict(GIVEN, __name__="__main__")
    seen = watch.Watch(names, tuple(names))
    watch.begin(seen)
    exec(compile(text, "<nowhere>", "exec"), names)
    watch.end(seen)
    (call,) = seen.calls()
    assert (call.kind, call.site.line, call.site.call, call.count) == ("entropy", 1, "", 1)
    assert call.what in {"os.urandom()", "a NumPy generator", "random.seed()", "random.Random()"}


class _Old:
    """A code object of Python 3.10: it does not know its columns."""

    def __init__(self, code):
        self._code = code

    def __getattr__(self, name):
        if name in {"co_positions", "co_qualname"}:
            raise AttributeError(name)
        return getattr(self._code, name)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("np.random.default_rng()", "np.random.default_rng()"),
        ("x = np.random.default_rng()", "a NumPy generator"),
        ("x = os.urandom(2)", "os.urandom()"),
        ("x = secrets.token_hex(2)", "SystemRandom()"),
        ("x = np.random.RandomState(3)", None),
        ("x = pickle.loads(kept)", None),
        ("x = random.Random()", "random.Random()"),
        ("np.random.RandomState(3)", None),
    ],
)
def test_without_columns_the_line_stands_for_the_call(monkeypatch, text, what):
    known = site._call_at.__wrapped__
    monkeypatch.setattr(site, "_call_at", lambda code, *place: known(_Old(code), *place))
    expected = [] if what is None else [("entropy", what, 2, "", 1)]
    assert calls(f"\n{text}", pickle=pickle, kept=pickle.dumps(random.Random(3))) == expected


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("np.random.default_rng(\n  4)", "np.random.default_rng()"),
        ("f(x)(y)", "f(x)()"),
        ("a.b", ""), ("", ""), ("f(", ""), ("x = f()", ""), ("f(\0)", ""), ("é.ü(1)", "é.ü()"),
        ("a" * 50 + ".b()", "b()"),
        ("functools.partial(np.random.RandomState, 3)()",
            "functools.partial(np.random.RandomSta...()"),
    ],
)  # fmt: skip
def test_a_call_is_shown_without_its_arguments(call, name):
    assert site.short(call) == name


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("f()", None), ("f(None)", None), ("f(3)", 3), ("f(seed=3)", 3), ("f(other=3)", None),
        ("f(here)", 5), ("f(seed=missing)", ...), ("f(g())", ...), ("f(*x)", ...), ("f(**x)", ...),
        ("f", ...), ("f(", ...),
    ],
)  # fmt: skip
def test_an_argument_is_looked_up_and_nothing_is_run(call, value):
    here = 5
    assert site.argument(call, sys._getframe(), "seed") == value
    assert here == 5


def test_columns_count_bytes():
    assert calls("é = 'ü'; [np.random.default_rng() for _ in 'ß']")[0][1:3] == (
        "np.random.default_rng()", 1,
    )  # fmt: skip


# -- nobody is accused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "random.random(), np.random.rand(), torch.rand(1)",
        "random.Random(3), random.Random('a'), random.Random(3).seed(4)",
        "np.random.default_rng(3).random(), np.random.default_rng([1, 2]).spawn(2)",
        "np.random.RandomState(3), np.random.RandomState(seed=3), np.random.MT19937(3)",
        "np.random.Philox(key=3), np.random.SeedSequence(3).spawn(2)",
        "uuid.uuid5(uuid.NAMESPACE_DNS, 'a'), uuid.UUID(int=3), torch.initial_seed()",
        "random.SystemRandom(), secrets.compare_digest('a', 'b')",
        "tempfile.TemporaryDirectory().cleanup()",
        "tempfile.TemporaryFile().close()",
        "logging.getLogger('nobody').debug('x')",
        "torch.Generator().manual_seed(3)",
        "random.setstate(random.getstate()); np.random.set_state(np.random.get_state())",
        "list(torch.utils.data.DataLoader(torch.arange(4), 2, shuffle=True))",
    ],
)
def test_what_a_seed_controls_or_names_a_thing_is_nobody_s_fault(text):
    assert calls(f"for _ in range(2):\n    {text}") == []


@pytest.mark.parametrize(
    "text",
    [
        "f(3), f(seed=3)",
        "def g():\n    mine = f\n    return mine(3)\ng()",
        "class R(f): pass\nR(3), R(seed=3)",
        "class P(np.random.Philox): pass\nP(key=3)",
    ],
)
def test_a_seeded_generator_is_known_under_another_name(text):
    assert calls(text, f=np.random.RandomState) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("f()", "f()"),
        ("f(None)", "f()"),
        ("class R(f): pass\nR()", "R()"),
        ("def g(h):\n    return h(3)\ng(np.random.default_rng), g(lambda _: f())", "f()"),
    ],
)
def test_an_unseeded_one_is_too(text, what):
    found = calls(text, f=np.random.RandomState, h=np.random.RandomState)
    assert [(kind, name) for kind, name, *_ in found] == [("entropy", what)]


KEPT = {
    "Random": (random.Random(3), lambda kept: kept.random()),
    "RandomState": (np.random.RandomState(3), lambda kept: kept.rand()),
    "Generator": (np.random.default_rng(3), lambda kept: kept.random()),
    "Philox": (np.random.Philox(3), lambda kept: kept.random_raw()),
    "MT19937": (np.random.MT19937(3), lambda kept: kept.random_raw()),
    "SeedSequence": (np.random.SeedSequence(3), lambda kept: kept.generate_state(1)[0]),
}


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize(
    "text",
    ["pickle.loads(data)", "pickle.load(io.BytesIO(data))",
        "pickle.Unpickler(io.BytesIO(data)).load()", "copy.deepcopy(pickle.loads(data))"],
)  # fmt: skip
def test_a_generator_that_is_unpickled_has_its_state(text, kind):
    kept, draw = KEPT[kind]
    given = {"pickle": pickle, "io": io, "copy": copy, "data": pickle.dumps(kept)}
    seen, names = cell(f"x = {text}", strict=True, **given)
    assert seen.calls() == ()
    assert type(names["x"]) is type(kept)
    assert draw(names["x"]) == draw(pickle.loads(given["data"]))


def test_an_unseeded_generator_that_is_made_while_another_is_unpickled_is_named():
    text = (
        "class Model:\n"
        "    def __setstate__(self, state):\n        self.rng = random.Random()\n"
        "m = Model()\nm.x = 1\nData = pickle.dumps(m)\npickle.loads(Data)"
    )
    module = types.ModuleType("shown")
    names = vars(module)
    names.update(GIVEN, pickle=pickle)
    seen = watch.Watch(names, tuple(names))
    sys.modules["shown"] = module
    watch.begin(seen)
    try:
        exec(source(text, "<shown>"), names)
    finally:
        watch.end(seen)
        del sys.modules["shown"]
    assert [(c.what, c.site.line) for c in seen.calls()] == [("random.Random()", 7)]


ASKS = """
import os, random, secrets, uuid
import numpy as np
def name(): return os.urandom(4), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(2)
def rng(): return np.random.default_rng()
"""


@pytest.mark.parametrize("name", ["IPython.core.x", "nbseed.x", "tqdm.auto", "matplotlib", "zmq"])
def test_what_serves_the_front_end_accuses_nobody(name):
    assert calls("lib.name(), lib.rng()", lib=library(ASKS, name)) == []


@pytest.mark.parametrize("name", ["joblib.pool", "tempfile", "logging.handlers", "dask"])
def test_pools_and_the_standard_library_name_things(name):
    assert calls("lib.name()", lib=library(ASKS, name)) == []


def test_another_library_s_identities_are_its_own_but_its_generators_are_not():
    lib = library(ASKS, "somebody.models")
    assert calls("lib.name()\nlib.rng()", lib=lib) == [
        ("entropy", "np.random.default_rng()", 2, "rng of somebody", 1)
    ]


def test_what_nobody_of_the_cell_calls_is_not_the_cell_s():
    seen = watch.Watch({})
    watch.begin(seen)
    os.urandom(2), np.random.default_rng(), random.seed(3), uuid.uuid4()
    watch.end(seen)
    assert (seen.calls(), seen.cut) == ((), 0)


def test_a_hot_loop_of_seeded_draws_records_nothing():
    seen, names = cell(
        "rng = np.random.default_rng(3)\nown = random.Random(3)\n"
        "for _ in range(50_000):\n    rng.random()\n    own.random()\n"
    )
    assert (seen.calls(), seen.cut) == ((), 0)
    rng = np.random.default_rng(3)
    rng.random(50_000)
    assert rng.random() == names["rng"].random()


# -- the calls are what they were ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "random.seed(3); x = random.random()",
        "random.seed('a', version=1); x = random.random()",
        "random.seed(a=3, version=2); x = random.random()",
        "x = random.seed(3)",
        "x = random.Random(3).random()",
        "class R(random.Random):\n    def seed(self, *_): super().seed(7)\nx = R().random()",
        "np.random.seed(seed=4); x = np.random.rand()",
        "x = np.random.RandomState(5).rand()",
        "x = torch.manual_seed(5) is torch.default_generator, torch.rand(1).item()",
        "x = type(os.urandom(5)), len(os.urandom(6))",
        "x = type(uuid.uuid1()), uuid.uuid1().version, uuid.uuid4().version",
        "x = len(secrets.token_hex(4)), type(np.random.default_rng()).__name__",
        "import copy; x = copy.deepcopy(random.Random(3)).random()",
    ],
)  # fmt: skip
def test_a_call_gives_what_it_gives_unwatched(text):
    names = {"__name__": "__main__", **GIVEN}
    exec(text, names)
    _, watched = cell(text)
    assert (type(watched["x"]), watched["x"]) == (type(names["x"]), names["x"])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("os.urandom(-1)", ValueError), ("os.urandom()", TypeError),
        ("np.random.seed(-1)", ValueError), ("random.seed(3, 4, 5)", TypeError),
        ("random.seed([])", TypeError), ("torch.manual_seed('a')", ValueError),
        ("subprocess.Popen()", TypeError), ("threading.Thread(target=int).start(3)", TypeError),
        ("np.random.default_rng(-1)", ValueError), ("random.Random().seed(b=3)", TypeError),
    ],
)  # fmt: skip
def test_a_wrong_call_fails_as_it_does_unwatched(text, error):
    with pytest.raises(error) as plain:
        exec(text, dict(GIVEN))
    with pytest.raises(error) as seen:
        cell(text)
    assert str(seen.value).rpartition(".")[2] == str(plain.value).rpartition(".")[2]


def test_patched_classes_are_the_same_classes():
    before = [random.Random, threading.Thread, subprocess.Popen]
    _, names = cell(
        "class Mine(random.Random): pass\nclass T(threading.Thread): pass\n"
        "import pickle\nkept = pickle.dumps(random.Random(3)), pickle.dumps(random.seed), "
        "pickle.dumps(os.urandom), "
        "pickle.dumps(np.random.seed)\n"
        "sames = [random.Random, threading.Thread, subprocess.Popen]\n"
        "t = T(target=int)\nt.start()\nt.join()\nmine = Mine(3)\n"
        "shown = random.seed.__name__, os.urandom.__module__, random.Random.seed.__qualname__\n"
    )
    assert names["sames"] == before
    assert isinstance(names["mine"], random.Random)
    assert issubclass(names["T"], threading.Thread)
    assert names["mine"].random() == random.Random(3).random()
    assert pickle.loads(names["kept"][0]).random() == random.Random(3).random()
    assert [pickle.loads(kept) for kept in names["kept"][1:]] == [
        random.seed, os.urandom, np.random.seed,
    ]  # fmt: skip
    assert names["shown"] == ("seed", "os", "Random.seed")
    assert "seed" not in vars(names["Mine"])
    assert copy.deepcopy(names["mine"]).getstate() == names["mine"].getstate()


WRAPPED = {
    "random.seed": lambda: random.seed,
    "Random.seed": lambda: random.Random.seed,
    "os.urandom": lambda: os.urandom,
    "os.getrandom": lambda: os.getrandom,
    "np.random.seed": lambda: np.random.seed,
    "torch.cuda": lambda: torch.cuda.manual_seed_all,
    "torch.cuda.random": lambda: torch.cuda.random.manual_seed_all,
    "Thread.start": lambda: threading.Thread.start,
    "Process.start": lambda: multiprocessing.process.BaseProcess.start,
    "Popen": lambda: subprocess.Popen.__init__,
}
CLASSES = [random.Random, threading.Thread, subprocess.Popen, multiprocessing.process.BaseProcess]


def told(value):
    try:
        return str(inspect.signature(value))
    except ValueError:
        return None


@pytest.mark.parametrize("name", WRAPPED)
def test_what_is_wrapped_tells_of_itself_what_it_told(name):
    plain = WRAPPED[name]()
    with watch.guarded({}, lambda: False):
        wrapped = WRAPPED[name]()
        assert wrapped is not plain
        assert told(plain) in (None, told(wrapped))  # some written in C tell nothing
        assert pickle.loads(pickle.dumps(wrapped)) is wrapped
        assert not hasattr(wrapped, "__wrapped__")
    assert WRAPPED[name]() is plain


@pytest.mark.parametrize("kind", CLASSES)
def test_the_signature_of_a_patched_class_is_what_it_was(kind):
    before = inspect.signature(kind)
    with watch.guarded({}, lambda: False):
        assert inspect.signature(kind) == before


def test_somebody_s_own_wrapper_need_not_be_one_that_can_be_asked(monkeypatch):
    class Theirs:
        __hash__ = None
        __signature__ = property(lambda self: 1 / 0)

        def __call__(self, *args):
            return b"theirs"

    theirs = Theirs()
    monkeypatch.setattr(os, "urandom", theirs)
    assert cell("x = os.urandom(3)")[1]["x"] == b"theirs"
    assert os.urandom is theirs


def test_a_line_too_deep_to_read_does_not_stop_the_call():
    class Chain:
        sequence = np.random.SeedSequence  # written in C: it has no frame of its own

        def on(self):
            return self

    text = "x = c" + ".on()" * 400 + ".sequence()"
    with pytest.warns(RuntimeWarning, match="^nbseed: a call of a NumPy generator was not noted"):
        seen, names = cell(text, c=Chain())
    assert type(names["x"]) is np.random.SeedSequence
    assert seen.calls() == ()


def test_a_note_that_fails_warns_and_the_call_goes_on(monkeypatch):
    def broken(frame, namespace):
        raise RecursionError("too deep")

    monkeypatch.setattr(site, "locate", broken)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        seen, names = cell("x = os.urandom(3)")
    assert (len(names["x"]), seen.calls()) == (3, ())
    assert [str(w.message) for w in said] == [
        "nbseed: a call of os.urandom() was not noted (RecursionError: too deep)"
    ]


# -- strict ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nrng = np.random.default_rng()", "np.random.default_rng() without a seed (line 2)"),
        ("random.seed()", "random.seed() without a seed (line 1)"),
        ("np.random.seed()", "np.random.seed() without a seed (line 1)"),
        ("lib.rng()", "np.random.default_rng() without a seed (line 1, in rng of somebody)"),
        ("f = lambda: os.urandom(3)\nf()", "os.urandom() without a seed (line 2, in <lambda>)"),
    ],
)
def test_strict_refuses_before_the_call(text, said):
    states = random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist()
    with pytest.raises(EntropyError) as caught:
        cell(text + "\nraise KeyError", strict=True, lib=library(ASKS, "somebody"))
    assert str(caught.value) == f"{said}: no seed controls what it gives"
    now = random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist()
    assert now == states


def test_strict_in_a_shell_says_what_and_where_and_nothing_has_happened():
    with started() as shell, loaded(shell) as notebook:
        notebook.ok("%seed 3 --strict\nimport numpy as np, random\ndone = []")
        before = random.getstate()
        ran = notebook.run("done.append(1)\nrng = np.random.default_rng()\ndone.append(2)")
        assert type(ran.error) is EntropyError
        assert str(ran.error) == (
            "np.random.default_rng() without a seed (line 2): no seed controls what it gives"
        )
        assert (notebook.ns["done"], "rng" in notebook.ns) == ([1], False)
        assert type(notebook.run("random.seed()").error) is EntropyError
        assert random.getstate() == before


def test_strict_lets_seeds_through():
    seen, _ = cell("random.seed(3); np.random.default_rng(3)", strict=True)
    assert [call.kind for call in seen.calls()] == ["seed"]


def test_a_refused_call_is_in_every_watch():
    names = {"__name__": "__main__", **GIVEN}
    outer, inner = watch.Watch(names), watch.Watch(names, strict=lambda: True)
    after = watch.Watch(names)
    for one in (outer, inner, after):
        watch.begin(one)
    try:
        with pytest.raises(EntropyError):
            exec("os.urandom(3)", names)
    finally:
        for one in (outer, inner, after):
            watch.end(one)
    assert [[c.count for c in one.calls()] for one in (outer, inner, after)] == [[1]] * 3


# -- nothing stays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["KeyError(1)", "KeyboardInterrupt", "SystemExit"])
def test_an_error_or_an_interrupt_leaves_nothing_patched(error):
    mine = {"mine": os.urandom}
    names = {"__name__": "__main__", **GIVEN, **mine}
    caught = None
    try:
        with watch.guarded(names, lambda: False):
            assert names["mine"] is os.urandom is not mine["mine"]
            exec(f"mine(2)\nraise {error}", names)
    except BaseException as raised:
        caught = raised
    assert type(caught).__name__ == error.partition("(")[0]
    assert names["mine"] is os.urandom is mine["mine"]


def test_of_nested_watches_the_last_to_end_takes_the_patches_away():
    plain, names = os.urandom, {"__name__": "__main__", **GIVEN}
    one, two = watch.Watch(names), watch.Watch(names)
    watch.begin(one)
    wrapped = os.urandom
    watch.begin(two)
    exec("os.urandom(1)", names)
    watch.end(one)  # not in the order they came
    watch.end(one)
    assert os.urandom is wrapped is not plain
    exec("os.urandom(1)", names)
    watch.end(two)
    assert os.urandom is plain
    assert [sum(c.count for c in w.calls()) for w in (one, two)] == [1, 2]


def test_what_arrives_when_nobody_watches_is_not_patched():
    plain = os.urandom
    watch.patch()
    watch.end(watch.Watch({}))
    assert os.urandom is plain
    assert not watch._patches


def test_a_wrapper_that_the_user_kept_goes_on_without_noting():
    seen, names = cell("kept = os.urandom\nkept(1)")
    assert len(names["kept"](4)) == 4
    assert [call.count for call in seen.calls()] == [1]


UNLOAD = "import nbseed; nbseed.unload_ipython_extension(get_ipython())"


@pytest.mark.parametrize("how", ["1/0", "raise KeyboardInterrupt", UNLOAD])
def test_nothing_stays_patched_in_a_shell(how):
    plain = places()
    with started() as shell, loaded(shell) as notebook:
        notebook.ok("%seed 3 --strict --pin-entropy\nimport os\nmine = os.urandom")
        notebook.run(f"%%rngcheckpoint a\n{how}")
        assert [n for owner, n, v in plain if vars(owner).get(n) is not v] == []
        assert not watch._watches
        assert pinned.is_on() is (how != UNLOAD)
