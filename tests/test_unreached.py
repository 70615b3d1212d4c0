"""What a rewind does not reach: the kinds, the paths to them, and what is none of them."""

from __future__ import annotations

import concurrent.futures
import enum
import multiprocessing.pool
import multiprocessing.process
import sys
import types
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch

from nbseed import unreached as module
from nbseed.unreached import GRADIENTS, ITERATOR, PERSISTENT, POOL, processes_alive, unreached


def live():
    yield 1


def told(value):
    return unreached({"v": value}, ["v"])


class Holder:
    def __init__(self, **held):
        vars(self).update(held)


class Worker(multiprocessing.process.BaseProcess):
    """Never started."""


def trained(model):
    model(torch.ones(1, 2)).sum().backward()
    return model


# -- kinds -----------------------------------------------------------------------------------------


async def asynchronous():
    yield 1


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (live, ITERATOR),
        (lambda: (x for x in ()), ITERATOR),
        (asynchronous, ITERATOR),
        (lambda: Worker(name="never started"), POOL),
        (lambda: trained(torch.nn.Linear(2, 1)), GRADIENTS),
        (lambda: trained(torch.nn.Sequential(torch.nn.Linear(2, 1))), GRADIENTS),
        (lambda: trained(torch.nn.Linear(2, 1)).weight, GRADIENTS),
    ],
)
def test_what_a_rewind_does_not_reach_is_named(make, kind):
    assert told(make()) == {"v": kind}


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: 3,
        lambda: "a live iterator",
        lambda: live,
        lambda: iter([1, 2]),
        lambda: range(3),
        lambda: np.arange(3),
        lambda: np.random.default_rng(1),
        lambda: torch.ones(2),
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.ones(2, requires_grad=True) * 2,
        lambda: torch.nn.Linear(2, 1),
        lambda: torch.utils.data.DataLoader([1, 2]),
        lambda: torch.utils.data.DataLoader,
        lambda: torch.nn.Module.__new__(torch.nn.Module),
        lambda: multiprocessing.pool.Pool,
        lambda: concurrent.futures.ThreadPoolExecutor(1),
        lambda: types.SimpleNamespace(x=1),
    ],
)
def test_what_is_none_of_these_is_not_accused(make):
    assert told(make()) == {}


def test_pools_of_processes_are_named_and_pools_of_threads_are_not():
    executor = concurrent.futures.ProcessPoolExecutor(1)  # starts nothing before it is asked
    try:
        assert told(executor) == {"v": POOL}
    finally:
        executor.shutdown()
    with multiprocessing.pool.ThreadPool(1) as threads:
        assert told(threads) == {}
        threads.close()
        threads.join()


def test_a_loader_that_keeps_its_workers_is_named_once_they_live():
    loader = torch.utils.data.DataLoader([1, 2])
    assert told(loader) == {}
    loader._iterator = object()
    assert told(loader) == {"v": PERSISTENT}


def test_a_loaders_iterator_is_named_with_the_sampler_that_it_holds():
    found = told(iter(torch.utils.data.DataLoader([1, 2])))
    assert found == {"v": ITERATOR, "v._sampler_iter": ITERATOR}


def test_gradients_that_were_taken_away_are_none():
    model = trained(torch.nn.Linear(2, 1))
    assert told([model, model.bias]) == {"v[0]": GRADIENTS, "v[1]": GRADIENTS}
    model.zero_grad()
    assert told([model, model.bias]) == {}


# -- paths -----------------------------------------------------------------------------------------


Pair = namedtuple("Pair", "first second")


class Colour(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: [1, live()], ["v[1]"]),
        (lambda: (live(), live()), ["v[0]", "v[1]"]),
        (lambda: Pair(1, live()), ["v[1]"]),
        (lambda: {"a": live(), "b": 2}, ["v['a']"]),
        (lambda: {"it's": live()}, ['v["it\'s"]']),
        (lambda: {3: live(), True: 1}, ["v[3]"]),
        (lambda: {True: live()}, ["v[True]"]),
        (lambda: {(1, 2): live()}, ["v"]),
        (lambda: {Colour.RED: live()}, ["v"]),
        (lambda: OrderedDict(a=live()), ["v['a']"]),
        (lambda: Holder(data=live(), x=3), ["v.data"]),
        (lambda: [[live()]], []),
        (lambda: [0] * 49 + [live(), live()], ["v[49]"]),
        (lambda: {i: live() if i > 48 else 0 for i in range(99)}, ["v[49]"]),
        (lambda: Holder(**{f"x{i}": live() if i > 48 else 0 for i in range(99)}), ["v.x49"]),
    ],
)
def test_the_path_to_it_is_told(make, paths):
    assert told(make()) == dict.fromkeys(paths, ITERATOR)


def test_each_variable_is_looked_at_and_others_are_not():
    namespace = {"a": live(), "b": [live()], "c": 1, "d": live()}
    assert unreached(namespace, ["b", "a", "c", "gone"]) == {"b[0]": ITERATOR, "a": ITERATOR}
    assert unreached(namespace, []) == {}


def test_a_value_is_not_moved_by_being_looked_at():
    value = iter([1, 2]), live()
    told(list(value))
    assert (next(value[0]), next(value[1])) == (1, 1)


# -- objects that answer nothing -------------------------------------------------------------------


class Refuses:
    __hash__ = None

    def __getattribute__(self, name):
        raise ValueError(name)

    def __eq__(self, other):
        raise ValueError("compared")

    def __bool__(self):
        raise ValueError("asked for its truth")

    def __repr__(self):
        raise ValueError("shown")


class Slotted:
    __slots__ = ("x",)


class Nowhere:
    __module__ = None


class Pretends:
    __module__ = "torch"
    __qualname__ = "Tensor2"


class FailingDict:
    @property
    def __dict__(self):
        raise ValueError("no dict")


@pytest.mark.parametrize("kind", [Refuses, Slotted, Nowhere, Pretends, FailingDict])
def test_an_object_that_answers_nothing_does_no_harm(kind):
    assert told(kind()) == {}
    assert told([kind(), live()]) == {"v[1]": ITERATOR}
    assert told({"a": kind(), "b": live()}) == {"v['b']": ITERATOR}


class OddList(list):
    def __getitem__(self, index):
        raise ValueError(index)

    def __iter__(self):
        raise ValueError("looked through")


class OddTuple(tuple):
    def __getitem__(self, index):
        raise ValueError(index)


class OddDict(dict):
    def items(self):
        raise ValueError("looked through")


class OddText(str):
    __hash__ = str.__hash__

    def __repr__(self):
        raise ValueError("shown")


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: OddList([live()]), "v[0]"),
        (lambda: OddTuple([live()]), "v[0]"),
        (lambda: OddDict(a=live()), "v['a']"),
        (lambda: {OddText("a"): live()}, "v"),
        (lambda: Holder(**{"a b": live()}), "v.a b"),
    ],
)
def test_containers_of_the_users_own_are_looked_into_past_their_methods(make, path):
    assert told(make()) == {path: ITERATOR}


class OddTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        raise ValueError("asked")


class OddModule(torch.nn.Linear):
    def parameters(self, recurse=True):
        raise ValueError("asked")

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        raise ValueError("asked")


def test_tensors_and_modules_of_the_users_own_are_asked_past_their_methods():
    assert told(torch.ones(2).as_subclass(OddTensor)) == {}
    assert told(OddModule(2, 1)) == {}
    assert told(trained(OddModule(2, 1))) == {"v": GRADIENTS}


# -- processes that live ---------------------------------------------------------------------------


def test_the_processes_that_live_are_told_by_name_in_order(monkeypatch):
    alive = [types.SimpleNamespace(name=name) for name in ("Worker-2", "Worker-1")]
    monkeypatch.setattr(multiprocessing.process, "active_children", lambda: alive)
    assert processes_alive() == ("Worker-1", "Worker-2")


def test_without_multiprocessing_no_process_lives(monkeypatch):
    monkeypatch.delitem(sys.modules, "multiprocessing.process")
    assert processes_alive() == ()
    assert "multiprocessing.process" not in sys.modules


def test_the_kinds_are_what_reports_say():
    assert (ITERATOR, POOL, PERSISTENT, GRADIENTS, module.COMPILED, module.GRAPH) == (
        "a live iterator",
        "worker processes",
        "persistent workers",
        "gradients of an earlier run",
        "compiled code",
        "a CUDA graph",
    )
