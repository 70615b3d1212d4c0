"""What a cell has to do with: variables that lead to variables, own modules, the texts of both."""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import sys
import types

import numpy as np
import pytest

from nbseed.inputs import MOST, own_modules, reached, sources

numbers = itertools.count()


@pytest.fixture
def notebook():
    """Runs cells in one namespace, whose texts are known as a shell's are."""
    names: list[str] = []
    namespace: dict[str, object] = {"__name__": "__main__"}

    def run(text):
        file = f"<cell {next(numbers)} of the test>"
        names.append(file)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), namespace)
        return namespace

    yield run
    for file in names:
        linecache.cache.pop(file, None)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Makes modules of the user's own: their files lie outside what is installed."""

    def make(name, text=""):
        module = types.ModuleType(name)
        module.__file__ = str(tmp_path / f"{name}.py")
        exec(text, vars(module))
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return make


# -- variables -------------------------------------------------------------------------------------


def test_functions_are_followed_through_functions(notebook):
    ns = notebook("def f():\n    return g(x)\ndef g(v):\n    return v + y\nx, y, z = 1, 2, 3")
    assert reached(ns, ["f"]) == ("f", "g", "x", "y")
    assert reached(ns, ["z", "f"]) == ("z", "f", "g", "x", "y")
    assert reached(ns, ["x"]) == ("x",)


@pytest.mark.parametrize("names", [[], ["unknown"], ["__name__x"]])
def test_a_name_without_a_value_is_nothing(names):
    assert reached({"x": 1}, names) == ()


def test_functions_that_call_each_other_come_to_an_end(notebook):
    ns = notebook("def f():\n    return g()\ndef g():\n    return f() + x\nx = 1")
    assert reached(ns, ["f"]) == ("f", "g", "x")
    assert reached(ns, ["g", "f", "g"]) == ("g", "f", "x")


@pytest.mark.parametrize(
    "made",
    [
        "def v():\n    return [x for _ in range(3)]",
        "v = lambda: x",
        "def v():\n    def inner():\n        return lambda: x\n    return inner",
        "def f():\n    return x\nv = functools.partial(f)",
        "def f():\n    return x\nv = functools.partial(functools.partial(f))",
        "@functools.lru_cache\ndef v():\n    return x",
        "def f():\n    return x\nv = {'a': f}",
        "def f():\n    return x\nv = [1, f]",
        "def f():\n    return x\nv = (f,)",
        "def wrap(g):\n    return lambda: g()\n@wrap\ndef v():\n    return x",
        "class v:\n    def step(self):\n        return x",
        "class v:\n    @staticmethod\n    def step():\n        return x",
        "class v:\n    @classmethod\n    def step(cls):\n        return x",
        "class v:\n    @property\n    def step(self):\n        return x",
        "class K:\n    def step(self):\n        return x\nv = K()",
        "class K:\n    def step(self):\n        return x\nv = K().step",
        "class K(list):\n    def step(self):\n        return x\nv = K()",
        "async def v():\n    return await x",
        "def v():\n    yield x",
    ],
)
def test_what_a_variable_looks_up_is_found(notebook, made):
    ns = notebook(f"import functools\nx = 1\n{made}")
    assert reached(ns, ["v"])[0] == "v"
    assert "x" in reached(ns, ["v"])


@pytest.mark.parametrize(
    "value",
    [math, math.sqrt, np, np.zeros, np.ndarray, functools.partial, len, int, str.join, ValueError],
)
def test_what_libraries_define_is_left_out(value):
    assert reached({"v": value}, ["v"]) == ()


def test_an_object_of_a_library_is_reached_and_not_followed(notebook):
    ns = notebook("v = rng = None\ndef f():\n    return v")
    ns["v"] = np.arange(3)
    assert reached(ns, ["f"]) == ("f", "v")


def test_a_name_that_only_looks_like_a_variable_is_no_loss(notebook):
    ns = notebook("def f(v):\n    return v.x + len(v)\nx = 1")
    assert reached(ns, ["f"]) == ("f", "x")  # an attribute's name counts too
    assert "len" not in reached(ns, ["f"])


def test_a_cell_is_followed_to_a_bound():
    namespace = {f"x{i}": i for i in range(2 * MOST)}
    assert reached(namespace, namespace) == tuple(namespace)[:MOST]


HOSTILE = """
class Odd:
    __hash__ = None
    __slots__ = ("kept",)
    def __getattribute__(self, name):
        raise ValueError(name)
    def __eq__(self, other):
        raise ValueError("compared")
    def __bool__(self):
        raise ValueError("asked for its truth")
    def __len__(self):
        raise ValueError("asked for its length")
    def __iter__(self):
        raise ValueError("looked through")
    def __repr__(self):
        raise ValueError("shown")
    def step(self):
        return x
class Nowhere:
    __module__ = None
    def step(self):
        return x
x = 1
odd, nowhere = Odd(), Nowhere()
"""


def test_objects_that_answer_nothing_are_reached(notebook):
    ns = notebook(HOSTILE)
    names = ["odd", "nowhere"]
    assert reached(ns, names) == ("odd", "nowhere", "x")
    assert own_modules(ns, names) == {}
    assert list(sources(ns, names)) == ["odd"]


def test_a_cell_variable_that_is_empty_is_passed_over(notebook):
    ns = notebook(
        "def outer():\n    def f():\n        return late + x\n    return f\n    late = 1\n"
        "x = 1\nv = outer()"
    )
    assert reached(ns, ["v"]) == ("v", "x")


# -- modules of the user's own ---------------------------------------------------------------------


def test_a_function_leads_to_its_module(own):
    mine = own("mine_alone", "def step():\n    return 1")
    assert reached({"step": mine.step}, ["step"]) == ("step",)
    assert own_modules({"step": mine.step}, ["step"]) == {"mine_alone": mine}


def test_an_object_leads_to_the_module_of_its_class(own):
    mine = own("mine_class", "class Model:\n    pass")
    assert own_modules({"m": mine.Model()}, ["m"]) == {"mine_class": mine}
    assert own_modules({"m": mine.Model}, ["m"]) == {"mine_class": mine}


def test_a_module_leads_to_the_modules_that_it_imports(own):
    inner = own("mine_inner", "def step():\n    return 1")
    outer = own("mine_outer", "import mine_inner\nfrom mine_inner import step")
    inner.back = outer  # they import each other
    assert own_modules({"f": outer}, ["f"]) == {"mine_inner": inner}
    assert own_modules({"f": outer.step, "g": 1}, ["f", "g"]) == {
        "mine_inner": inner,
        "mine_outer": outer,
    }


def test_a_module_that_is_a_variable_itself_is_not_told_twice(own):
    mine = own("mine_twice", "def step():\n    return 1")
    assert own_modules({"mine": mine, "step": mine.step}, ["mine", "step"]) == {}


@pytest.mark.parametrize("value", [math.sqrt, np.zeros, np.arange(3), 3, "text", None, pytest])
def test_a_librarys_module_is_not_the_users(value):
    assert own_modules({"v": value}, ["v", "unknown"]) == {}


def test_a_function_whose_module_is_gone_or_has_no_name_leads_nowhere(own, monkeypatch):
    mine = own("mine_gone", "def step():\n    return 1\ndef other():\n    return 1")
    mine.other.__module__ = None
    monkeypatch.delitem(sys.modules, "mine_gone")
    assert own_modules({"f": mine.step, "g": mine.other}, ["f", "g"]) == {}


# -- texts -----------------------------------------------------------------------------------------


def test_the_texts_of_functions_and_classes_are_found(notebook):
    ns = notebook(
        "def f():\n    return 1\nclass K:\n    a = 1\n    def step(self):\n        return 2\n"
        "k, x = K(), 3\n"
    )
    assert sources(ns, ["f", "K", "k", "x", "unknown"]) == {
        "f": "def f():\n    return 1\n",
        "K": "    def step(self):\n        return 2\n",
        "k": "    def step(self):\n        return 2\n",
    }


def test_a_decorated_function_shows_its_own_text(notebook):
    ns = notebook(
        "import functools\ndef wrap(g):\n    @functools.wraps(g)\n    def inner():\n"
        "        return g()\n    return inner\n@wrap\ndef f():\n    return 1\n"
        "@functools.lru_cache\ndef c():\n    return 2\n"
    )
    assert sources(ns, ["f", "c"]) == {
        "f": "@wrap\ndef f():\n    return 1\n",
        "c": "@functools.lru_cache\ndef c():\n    return 2\n",
    }


def test_a_function_that_wraps_itself_shows_its_own_text(notebook):
    ns = notebook("def f():\n    return x\nf.__wrapped__ = f\nx = 1\n")
    assert sources(ns, ["f"]) == {"f": "def f():\n    return x\n"}


def test_a_long_text_is_cut(notebook):
    ns = notebook("def f():\n" + "    x = 1\n" * 10_000)
    assert len(sources(ns, ["f"])["f"]) == 20_000


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["def g(:\n", "  (((\n"],
        ["'''\n"],
        ["def g():\n", "    return '''\n"],
        ["\0\n"],
        ["    x\n", "  y\n", " z\n"],
    ],
)
def test_a_text_that_has_become_another_one_does_no_harm(notebook, lines):
    one = next(numbers)  # the text of equal code is looked for once
    ns = notebook(f"def g():\n    return {one}\nclass K:\n    def g(self):\n        return {one}\n")
    file = ns["g"].__code__.co_filename
    linecache.cache[file] = (1, None, lines, file)
    assert all(type(text) is str for text in sources(ns, ["g", "K"]).values())
    linecache.cache[file] = (0, None, [], file)
    assert reached(ns, ["g"]) == ("g",)


def test_a_function_without_a_text_has_none():
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec("def f():\n    return 'no text'\nclass K:\n    def f(self):\n        pass", namespace)
    assert sources(namespace, ["f", "K"]) == {}
    assert sources({"f": math.sqrt, "g": np.zeros, "h": 3}, ["f", "g", "h"]) == {}
