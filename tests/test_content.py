"""What variables hold: told apart by digests, compared in sentences, and left as they were."""

from __future__ import annotations

import collections
import copy
import csv
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import gc
import io
import itertools
import logging
import operator
import pathlib
import queue
import random
import re
import socket
import subprocess
import sys
import threading
import time
import types
import weakref
import zipfile
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from torch import nn

from nbseed.content import Content, Contents, differences, read
from nbseed.content.attributes import is_a_time
from nbseed.content.reader import OutOfBudgetError, Reader


def content(value):
    contents = read({"x": value}, ["x"], seconds=60)
    assert contents.left_out == {}
    return contents.found["x"]


def digest(value):
    return content(value).digest


def cell(code, **names):
    """The namespace after `code` ran as a cell: its classes and functions are __main__'s."""
    home = {"__name__": "__main__", **names}
    exec(compile(code, "<cell>", "exec"), home)
    return home


class Point:
    def __init__(self, x=0, y=0):
        self.x, self.y = x, y


class Slotted:
    __slots__ = ("__hidden", "empty", "x")

    def __init__(self, x):
        self.x, self.__hidden = x, 2 * x


@dataclasses.dataclass
class Record:
    name: str
    tags: list


Pair = collections.namedtuple("Pair", "left right")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Tally(dict):
    pass


def chained(length, last):
    head = last
    for _ in range(length):
        head = [head]
    return head


def ring(*values):
    links = [{"value": value} for value in values]
    for one, two in zip(links, links[1:] + links[:1], strict=True):
        one["next"] = two
    return links[0]


def after(take, iterator):
    for _ in range(take):
        next(iterator)
    return iterator


def numbers_up_to(n, scale=1):
    for i in range(n):
        yield i * scale


def structured(*rows):
    """Rows with a gap between their fields, filled with whatever lies there."""
    held = np.zeros(
        len(rows), np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "itemsize": 24})
    )
    held.view(np.uint8)[:] = np.frombuffer(random.randbytes(24 * len(rows)), np.uint8)
    for place, (a, b) in enumerate(rows):
        held["a"][place], held["b"][place] = a, b
    return held


def bit_equal(value):
    return np.array([value], np.uint64).view(np.float64)


def moved(generator, draws):
    generator.random(draws) if hasattr(generator, "random") else generator.rand(draws)
    return generator


def net(**options):
    torch.manual_seed(options.get("seed", 0))
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(options.get("p", 0.5)))


def trained(steps, optimizer=torch.optim.Adam, **options):
    model = net()
    made = optimizer(model.parameters(), **{"lr": 0.1, **options})
    for _ in range(steps):
        made.zero_grad()
        model(torch.ones(4, 2)).sum().backward()
        made.step()
    return model, made


def put(**entries):
    held = queue.Queue()
    for entry in entries.values():
        held.put(entry)
    return held


def zipped(*names):
    made = zipfile.ZipFile(io.BytesIO(), "w")
    for name in names:
        made.writestr(name, name.encode())
    return made


def closing_over(value):
    def inner():
        return value

    return inner


FRAME = {"a": [1, 2, 3], "b": ["x", "y", "z"]}

# Each pair differs; each half, made twice, is the same.
PAIRS = {
    "int": (lambda: 1, lambda: 2),
    "int and float": (lambda: 1, lambda: 1.0),
    "int and bool": (lambda: 1, lambda: True),
    "huge int": (lambda: 10**6000, lambda: 10**6000 + 1),
    "float": (lambda: 0.1, lambda: 0.1 + 2**-55),
    "signed zero": (lambda: 0.0, lambda: -0.0),
    "complex": (lambda: 1 + 2j, lambda: 1 - 2j),
    "bool": (lambda: True, lambda: False),
    "None": (lambda: None, lambda: False),
    "str": (lambda: "a", lambda: "b"),
    "str and bytes": (lambda: "a", lambda: b"a"),
    "long str": (lambda: "a" * 5000, lambda: "a" * 4999 + "b"),
    "lone surrogate": (lambda: "\ud800" * 50, lambda: "\ud801" * 50),
    "list": (lambda: [1, 2], lambda: [1, 3]),
    "list and tuple": (lambda: [1, 2], lambda: (1, 2)),
    "empty": (list, dict),
    "items of another type": (lambda: [1, 2], lambda: [1, 2.0]),
    "zero in a list": (lambda: [0.0, 1], lambda: [-0.0, 1]),
    "boundaries of text": (lambda: ["ab", "c"], lambda: ["a", "bc"]),
    "nested lists": (lambda: [[1], [2, 3]], lambda: [[1, 2], [3]]),
    "table": (lambda: [[i, 0] for i in range(99)], lambda: [[i, i == 98] for i in range(99)]),
    "long list": (lambda: list(range(50_000)), lambda: [*range(49_999), 0]),
    "huge ints": (lambda: [10**6000, 1], lambda: [10**6000, 2]),
    "huge and text": (lambda: [10**6000, "a"], lambda: [10**6000, "b"]),
    "dict": (lambda: {"a": 1}, lambda: {"a": 2}),
    "dict order": (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}),
    "dict keys": (lambda: {1: 0}, lambda: {"1": 0}),
    "dict of tuples": (lambda: {(1, 2): 0}, lambda: {(1, 3): 0}),
    "long dict": (lambda: {i: i for i in range(99)}, lambda: {i: i % 98 for i in range(99)}),
    "set": (lambda: {1, 2}, lambda: {1, 3}),
    "set of floats": (lambda: {1.5, 2.5}, lambda: {1.5, 3.5}),
    "mixed set": (lambda: {1, "a", None}, lambda: {1, "b", None}),
    "set and frozenset": (lambda: {1}, lambda: frozenset({1})),
    "set of tuples": (lambda: {("a", 1), ("b", 2)}, lambda: {("a", 2), ("b", 1)}),
    "deque": (lambda: collections.deque([1, 2]), lambda: collections.deque([2, 1])),
    "maxlen": (lambda: collections.deque([1], 2), lambda: collections.deque([1], 3)),
    "OrderedDict": (
        lambda: collections.OrderedDict(a=1, b=2),
        lambda: (d := collections.OrderedDict(a=1, b=2), d.move_to_end("a"))[0],
    ),
    "Counter": (lambda: collections.Counter("aab"), lambda: collections.Counter("abb")),
    "defaultdict": (lambda: collections.defaultdict(int), lambda: collections.defaultdict(list)),
    "object": (lambda: Point(1), lambda: Point(2)),
    "slots": (lambda: Slotted(1), lambda: Slotted(2)),
    "dataclass": (lambda: Record("a", [1]), lambda: Record("a", [2])),
    "namedtuple": (lambda: Pair(1, 2), lambda: Pair(1, 3)),
    "dict of a class": (lambda: Tally(a=1), lambda: Tally(a=2)),
    "exception": (lambda: ValueError("a"), lambda: ValueError("b")),
    "cycle": (lambda: ring(1, 2, 3), lambda: ring(1, 2, 4)),
    "enum": (lambda: Color.RED, lambda: Color.BLUE),
    "namespace": (lambda: types.SimpleNamespace(a=1), lambda: types.SimpleNamespace(a=2)),
    "range": (lambda: range(3), lambda: range(0, 3, 2)),
    "slice": (lambda: slice(1, 2), lambda: slice(1, 3)),
    "bytearray": (lambda: bytearray(b"a"), lambda: bytearray(b"b")),
    "memoryview": (lambda: memoryview(b"abcd")[::2], lambda: memoryview(b"abcd")[1::2]),
    "path": (lambda: pathlib.Path("a"), lambda: pathlib.Path("b")),
    "date": (lambda: datetime.date(2024, 1, 1), lambda: datetime.date(2024, 1, 2)),
    "datetime": (lambda: datetime.datetime(2024, 1, 1), lambda: datetime.datetime(2024, 1, 1, 1)),
    "zone": (
        lambda: datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        lambda: datetime.datetime(2024, 1, 1),
    ),
    "timedelta": (lambda: datetime.timedelta(1), lambda: datetime.timedelta(2)),
    "Decimal": (lambda: decimal.Decimal("1.0"), lambda: decimal.Decimal("1.00")),
    "Fraction": (lambda: fractions.Fraction(1, 2), lambda: fractions.Fraction(1, 3)),
    "pattern": (lambda: re.compile("a"), lambda: re.compile("a", re.I)),
    "match": (lambda: re.match("a+", "aab"), lambda: re.match("a", "aab")),
    "queue": (lambda: put(a=1, b=2), lambda: put(a=1)),
    "mappingproxy": (
        lambda: types.MappingProxyType({"a": 1}),
        lambda: types.MappingProxyType({"a": 2}),
    ),
    "dict view": (lambda: {"a": 1}.keys(), lambda: {"b": 1}.keys()),
    "Random": (lambda: random.Random(1), lambda: random.Random(2)),
    "itemgetter": (lambda: operator.itemgetter(1), lambda: operator.itemgetter(2)),
    # arrays
    "array": (lambda: np.arange(6.0), lambda: np.arange(6.0) + 1e-15),
    "shape": (lambda: np.arange(6), lambda: np.arange(6).reshape(2, 3)),
    "dtype": (lambda: np.zeros(3, "i4"), lambda: np.zeros(3, "f4")),
    "byte order": (lambda: np.zeros(3, "<i4"), lambda: np.zeros(3, ">i4")),
    "array zero": (lambda: np.array([0.0]), lambda: np.array([-0.0])),
    "array NaN": (
        lambda: bit_equal(0x7FF8000000000000),
        lambda: bit_equal(0x7FF8000000000001),
    ),
    "0-d": (lambda: np.array(1.0), lambda: np.array(2.0)),
    "0-d and scalar": (lambda: np.array(1.0), lambda: np.float64(1.0)),
    "scalar and float": (lambda: np.float64(1.0), lambda: 1.0),
    "scalar": (lambda: np.float32(1), lambda: np.float32(2)),
    "datetime64": (lambda: np.datetime64("2024-01-01"), lambda: np.datetime64("2024-01-02")),
    "dates": (lambda: np.array(["2024"], "M8[D]"), lambda: np.array(["2025"], "M8[D]")),
    "object array": (lambda: np.array([1, "a"], object), lambda: np.array([1, "b"], object)),
    "0-d object": (lambda: np.array({"a": 1}), lambda: np.array({"a": 2})),
    "text array": (lambda: np.array(["a", "b"]), lambda: np.array(["a", "c"])),
    "structured": (lambda: structured((1, 2.0)), lambda: structured((1, 3.0))),
    "strided": (lambda: np.arange(10)[::2], lambda: np.arange(10)[1::2]),
    "masked": (
        lambda: np.ma.masked_array([1, 2], [0, 1]),
        lambda: np.ma.masked_array([1, 2], [1, 0]),
    ),
    "empty array": (lambda: np.zeros((0, 3)), lambda: np.zeros((0, 4))),
    "Generator": (lambda: np.random.default_rng(1), lambda: moved(np.random.default_rng(1), 1)),
    "MT19937": (lambda: np.random.MT19937(1), lambda: np.random.MT19937(2)),
    "RandomState": (lambda: np.random.RandomState(1), lambda: moved(np.random.RandomState(1), 1)),
    "SeedSequence": (
        lambda: np.random.SeedSequence(1),
        lambda: (s := np.random.SeedSequence(1), s.spawn(1))[0],
    ),
    "spawned": (
        lambda: np.random.default_rng(1),
        lambda: (g := np.random.default_rng(1), g.bit_generator.seed_seq.spawn(1))[0],
    ),
    # tensors
    "tensor": (lambda: torch.arange(4.0), lambda: torch.arange(4.0) + 1e-6),
    "bfloat16": (lambda: torch.ones(3, dtype=torch.bfloat16), lambda: torch.zeros(3).bfloat16()),
    "tensor dtype": (lambda: torch.zeros(4, dtype=torch.int32), lambda: torch.zeros(4)),
    "tensor shape": (lambda: torch.zeros(4), lambda: torch.zeros(2, 2)),
    "view": (lambda: torch.arange(9)[::2], lambda: torch.arange(9)[1::2]),
    "transposed": (
        lambda: torch.arange(4).reshape(2, 2).T,
        lambda: torch.arange(4).reshape(2, 2),
    ),
    "conjugate": (lambda: torch.tensor([1 + 2j]).conj(), lambda: torch.tensor([1 + 2j])),
    "requires_grad": (lambda: torch.ones(2), lambda: torch.ones(2, requires_grad=True)),
    "0-d tensor": (lambda: torch.tensor(1.0), lambda: torch.tensor(2.0)),
    "torch generator": (
        lambda: torch.Generator().manual_seed(1),
        lambda: torch.Generator().manual_seed(2),
    ),
    "module": (lambda: net(), lambda: net(seed=1)),
    "attribute of a module": (lambda: net(), lambda: net(p=0.1)),
    "mode": (lambda: net(), lambda: net().eval()),
    "frozen": (lambda: net(), lambda: net().requires_grad_(False)),
    "recurrent": (lambda: (net(), nn.LSTM(2, 2))[1], lambda: (net(seed=1), nn.LSTM(2, 2))[1]),
    "optimizer": (lambda: trained(1)[1], lambda: trained(2)[1]),
    "momentum": (
        lambda: trained(1, torch.optim.SGD, momentum=0.9)[1],
        lambda: trained(2, torch.optim.SGD, momentum=0.9)[1],
    ),
    "learning rate": (lambda: trained(1)[1], lambda: trained(1, lr=0.2)[1]),
    "scheduler": (
        lambda: torch.optim.lr_scheduler.StepLR(trained(1)[1], 2),
        lambda: torch.optim.lr_scheduler.StepLR(trained(1)[1], 3),
    ),
    "DataLoader": (
        lambda: torch.utils.data.DataLoader(range(8), batch_size=2),
        lambda: torch.utils.data.DataLoader(range(8), batch_size=4),
    ),
    "dataset": (
        lambda: torch.utils.data.TensorDataset(torch.zeros(3)),
        lambda: torch.utils.data.TensorDataset(torch.ones(3)),
    ),
    "loader's iterator": (
        lambda: iter(torch.utils.data.DataLoader(range(8), batch_size=2)),
        lambda: after(1, iter(torch.utils.data.DataLoader(range(8), batch_size=2))),
    ),
    # frames
    "frame": (lambda: pd.DataFrame(FRAME), lambda: pd.DataFrame({**FRAME, "a": [1, 2, 4]})),
    "frame text": (lambda: pd.DataFrame(FRAME), lambda: pd.DataFrame({**FRAME, "b": list("xyw")})),
    "column name": (
        lambda: pd.DataFrame(FRAME),
        lambda: pd.DataFrame(FRAME).rename(columns={"a": "c"}),
    ),
    "column dtype": (lambda: pd.DataFrame(FRAME), lambda: pd.DataFrame(FRAME).astype({"a": float})),
    "index": (lambda: pd.DataFrame(FRAME), lambda: pd.DataFrame(FRAME, index=[1, 2, 3])),
    "index name": (
        lambda: pd.DataFrame(FRAME),
        lambda: pd.DataFrame(FRAME).rename_axis("row"),
    ),
    "series": (lambda: pd.Series([1, 2]), lambda: pd.Series([1, 3])),
    "series name": (lambda: pd.Series([1], name="a"), lambda: pd.Series([1], name="b")),
    "Index": (lambda: pd.Index(["a"]), lambda: pd.Index(["b"])),
    "RangeIndex": (lambda: pd.RangeIndex(3), lambda: pd.RangeIndex(4)),
    "MultiIndex": (
        lambda: pd.MultiIndex.from_tuples([(1, "a")]),
        lambda: pd.MultiIndex.from_tuples([(1, "b")]),
    ),
    "categories": (
        lambda: pd.Series(list("ab"), dtype="category"),
        lambda: pd.Series(["a", "c"], dtype="category"),
    ),
    "nullable": (lambda: pd.array([1, None]), lambda: pd.array([None, 1])),
    "dates of pandas": (
        lambda: pd.date_range("2024-01-01", periods=3),
        lambda: pd.date_range("2024-01-02", periods=3),
    ),
    "zones of pandas": (
        lambda: pd.date_range("2024-01-01", periods=3, tz="UTC"),
        lambda: pd.date_range("2024-01-01", periods=3),
    ),
    "periods": (
        lambda: pd.period_range("2024", periods=2),
        lambda: pd.period_range("2025", periods=2),
    ),
    "intervals": (lambda: pd.interval_range(0, 2), lambda: pd.interval_range(1, 3)),
    "Timestamp": (lambda: pd.Timestamp(1), lambda: pd.Timestamp(2)),
    "NA": (lambda: pd.NA, lambda: pd.NaT),
    "sparse": (
        lambda: scipy.sparse.eye(3, format="csr"),
        lambda: 2 * scipy.sparse.eye(3, format="csr"),
    ),
    "linear estimator": (
        lambda: SGDClassifier(random_state=0),
        lambda: SGDClassifier(random_state=1),
    ),
    "forest": (
        lambda: RandomForestClassifier(2, random_state=0).fit(DIGITS, LABELS),
        lambda: RandomForestClassifier(2, random_state=1).fit(DIGITS, LABELS),
    ),
    "boosting": (
        lambda: GradientBoostingClassifier(n_estimators=1, random_state=0).fit(DIGITS, LABELS),
        lambda: GradientBoostingClassifier(n_estimators=2, random_state=0).fit(DIGITS, LABELS),
    ),
    # live things
    "list iterator": (lambda: iter([1, 2, 3]), lambda: after(1, iter([1, 2, 3]))),
    "iterator at its end": (lambda: after(1, iter([1])), lambda: iter([1])),
    "tuple iterator": (lambda: iter((1, 2)), lambda: after(1, iter((1, 2)))),
    "dict iterator": (lambda: iter({1: 2, 3: 4}), lambda: after(1, iter({1: 2, 3: 4}))),
    "items iterator": (
        lambda: iter({1: 2, 3: 4}.items()),
        lambda: after(1, iter({1: 2, 3: 4}.items())),
    ),
    "set iterator": (lambda: iter({1, 2}), lambda: after(1, iter({1, 2}))),
    "str iterator": (lambda: iter("abc"), lambda: after(1, iter("abc"))),
    "range iterator": (lambda: iter(range(5)), lambda: after(1, iter(range(5)))),
    "huge range": (lambda: iter(range(10**30)), lambda: after(1, iter(range(10**30)))),
    "deque iterator": (
        lambda: iter(collections.deque([1, 2])),
        lambda: after(1, iter(collections.deque([1, 2]))),
    ),
    "reversed": (lambda: reversed([1, 2]), lambda: after(1, reversed([1, 2]))),
    "enumerate": (lambda: enumerate("abc"), lambda: after(1, enumerate("abc"))),
    "zip": (lambda: zip([1, 2], "ab"), lambda: after(1, zip([1, 2], "ab"))),  # noqa: B905
    "map": (lambda: map(abs, [1, 2]), lambda: after(1, map(abs, [1, 2]))),
    "filter": (lambda: filter(None, [1, 2]), lambda: after(1, filter(None, [1, 2]))),
    "count": (lambda: itertools.count(), lambda: after(1, itertools.count())),
    "repeat": (lambda: itertools.repeat(1, 3), lambda: after(1, itertools.repeat(1, 3))),
    "endless cycle": (
        lambda: itertools.cycle([1, 2, 3]),
        lambda: after(1, itertools.cycle([1, 2, 3])),
    ),
    "islice": (lambda: itertools.islice("abcd", 3), lambda: after(1, itertools.islice("abcd", 3))),
    "chain": (lambda: itertools.chain("ab", "cd"), lambda: after(1, itertools.chain("ab", "cd"))),
    "generator": (lambda: numbers_up_to(5), lambda: after(1, numbers_up_to(5))),
    "generator under way": (
        lambda: after(1, numbers_up_to(5, 0)),
        lambda: after(2, numbers_up_to(5, 0)),
    ),
    "generator's arguments": (lambda: numbers_up_to(5), lambda: numbers_up_to(6)),
    "nameless loop": (
        lambda: after(1, (0 for _ in ["a", "a", "a"])),
        lambda: after(2, (0 for _ in ["a", "a", "a"])),
    ),
    "BytesIO": (lambda: io.BytesIO(b"ab"), lambda: io.BytesIO(b"ac")),
    "place in BytesIO": (lambda: io.BytesIO(b"ab"), lambda: (f := io.BytesIO(b"ab"), f.read(1))[0]),
    "StringIO": (lambda: io.StringIO("ab"), lambda: (f := io.StringIO("ab"), f.read(1))[0]),
    "zip file": (lambda: zipped("a", "b"), lambda: zipped("b", "a")),
    "csv": (
        lambda: csv.reader(io.StringIO("1\n2\n")),
        lambda: after(1, csv.reader(io.StringIO("1\n2\n"))),
    ),
    "partial": (lambda: functools.partial(int, base=2), lambda: functools.partial(int, base=8)),
    "closure": (lambda: closing_over(1), lambda: closing_over(2)),
    "bound method": (lambda: [1].append, lambda: [2].append),
    "method": (lambda: Record("a", []).__eq__, lambda: Record("b", []).__eq__),
    "library function": (lambda: np.sum, lambda: np.mean),
    "library class": (lambda: dict, lambda: list),
    "builtin": (lambda: len, lambda: abs),
    "module of a library": (lambda: np, lambda: torch),
}
DIGITS, LABELS = np.arange(80.0).reshape(20, 4) % 7, np.arange(20) % 3


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_has_another_digest_and_what_is_the_same_has_the_same(name):
    one, two = PAIRS[name]
    made = [one(), one(), two(), two()]
    first, again, second, other = map(digest, made)
    assert first == again
    assert second == other
    assert first != second
    assert [digest(value) for value in made] == [first, again, second, other]


@pytest.mark.parametrize("name", PAIRS)
def test_a_difference_is_told_in_words_and_none_where_there_is_none(name):
    one, two = (content(make()) for make in PAIRS[name])
    told = differences(one, two)
    assert told
    assert all(text and text == text.strip() for text in told)
    assert differences(one, one) == []


@pytest.mark.parametrize("name", PAIRS)
def test_a_reading_has_32_digits_few_parts_and_short_texts(name):
    found = content(PAIRS[name][0]())
    assert re.fullmatch("[0-9a-f]{32}", found.digest)
    assert "" in found.parts
    assert len(found.parts) <= 200
    assert all(len(text) <= 200 and " at 0x" not in text for text in found.parts.values())


def test_nan_is_itself():
    assert digest(float("nan")) == digest(float("nan"))
    assert digest(np.array([np.nan])) == digest(np.array([np.nan]))
    assert digest([float("nan"), 1]) == digest([float("nan"), 1])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a", "b", "c", "d"}, {"d", "c", "b", "a"}),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (np.arange(10)[::2], np.array([0, 2, 4, 6, 8])),
        (torch.arange(9)[::2], torch.tensor([0, 2, 4, 6, 8])),
        (torch.arange(4).reshape(2, 2).T, torch.tensor([[0, 2], [1, 3]])),
        (torch.tensor([1 + 2j]).conj(), torch.tensor([1 - 2j])),
        (pd.DataFrame(FRAME), pd.concat([pd.DataFrame({k: v}) for k, v in FRAME.items()], axis=1)),
        (types.SimpleNamespace(a=1, b=2), types.SimpleNamespace(b=2, a=1)),
        ([[1, 2], [1, 2]], [[1, 2]] * 2),
        (np.zeros((300, 300))[::3], np.zeros((100, 300))),
    ],
    ids=itertools.count(),
)
def test_how_a_value_lies_in_memory_makes_no_difference(one, two):
    assert digest(one) == digest(two)


def test_large_arrays_that_do_not_lie_in_one_piece_are_read_piece_by_piece():
    wide = np.arange(3_000_000, dtype=float).reshape(3, -1)
    assert digest(wide[:, ::2]) == digest(wide[:, ::2].copy())
    assert digest(wide.T) == digest(wide.T.copy())
    held = torch.from_numpy(wide)
    assert digest(held[:, ::2]) == digest(held[:, ::2].clone())
    assert digest(held.T) == digest(held.T.contiguous())


SCRIPT = """
from collections import Counter
from nbseed.content import read
class Node:
    def __init__(self, name): self.name, self.near = name, set()
a, b, c = Node("a"), Node("b"), Node("c")
a.near |= {b, c}; b.near |= {a, c}; c.near |= {a, b}
def choose(word): return word in {"x", "y", "z", "w"}
x = [{"cat", "dog", "mouse"}, frozenset({("a", 1), ("b", 2)}), {"k": {1.5, "t", None}}, a, choose]
print(read(globals(), ["x"], 60).found["x"].digest)
"""


def test_sets_have_the_same_digest_in_every_process():
    seen = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1
    assert re.fullmatch("[0-9a-f]{32}\n", seen.pop())


# Code


FUNCTION = """
def f(x, *, scale={scale}):
    'Says something.'
    names = {{'a', 'b', 'c'}}
    def inner(y):
        return [y {sign} i for i in range(3) if i not in {{1, 2}}]
    return inner(x), names
"""


def test_a_cell_that_is_run_again_defines_the_same_function():
    one = cell(FUNCTION.format(scale=1, sign="+"))["f"]
    two = cell("\n\n# moved down\n" + FUNCTION.format(scale=1, sign="+"))["f"]
    assert one.__code__.co_firstlineno != two.__code__.co_firstlineno
    assert digest(one) == digest(two)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scale": 1, "sign": "-"}, ["other code"]),
        ({"scale": 2, "sign": "+"}, ["(scale) 2, was 1"]),
    ],
)
def test_other_code_and_other_defaults_are_other_functions(options, told):
    before = content(cell(FUNCTION.format(scale=1, sign="+"))["f"])
    assert differences(before, content(cell(FUNCTION.format(**options))["f"])) == told


def test_a_function_of_a_library_is_its_name_and_what_it_wraps_counts():
    made = cell("import contextlib\n@contextlib.contextmanager\ndef f():\n    yield 1")["f"]
    same = cell("import contextlib\n@contextlib.contextmanager\ndef f():\n    yield 1")["f"]
    other = cell("import contextlib\n@contextlib.contextmanager\ndef f():\n    yield 2")["f"]
    assert digest(made) == digest(same) != digest(other)


CLASS = """
class Counter:
    count = 0
    seen = []
    def step(self):
        Counter.count += {by}
        return self
class Below(Counter):
    pass
"""


def test_a_counter_on_the_class_shows_in_its_objects_and_in_the_class():
    home = cell(CLASS.format(by=1))
    made = home["Below"]()
    before, of_class = content(made), content(home["Counter"])
    made.step()
    assert differences(of_class, content(home["Counter"])) == [".count 1, was 0"]
    assert content(made).digest != before.digest


def test_an_object_of_a_notebook_class_names_the_attribute_of_the_class():
    home = cell(CLASS.format(by=1))
    made = home["Counter"]()
    before = content(made)
    made.step()
    assert differences(before, content(made)) == [".count 1, was 0"]
    made.count = 5
    assert differences(before, content(made)) == [".count 5, was 0"]


def test_a_class_that_is_defined_again_is_the_same_and_another_method_is_not():
    one, two, other = (cell(CLASS.format(by=by))["Counter"] for by in (1, 1, 2))
    assert digest(one) == digest(two)
    assert differences(content(one), content(other)) == ["other code in .step"]
    assert differences(content(one()), content(other())) == ["other code in .step"]


def test_a_module_of_the_users_own_is_looked_into(tmp_path, monkeypatch):
    (tmp_path / "of_the_user.py").write_text("import os\nrate = 1\ndef f(): return rate\n")
    monkeypatch.syspath_prepend(tmp_path)
    import of_the_user

    before = content(of_the_user)
    assert before.opaque == ()
    of_the_user.rate = 2
    assert differences(before, content(of_the_user)) == [".rate 2, was 1"]
    del sys.modules["of_the_user"]


def test_a_cache_is_known_by_its_entries_and_not_by_its_hits():
    home = cell("import functools\n@functools.lru_cache\ndef f(n): return n")
    f = home["f"]
    f(1)
    before = content(f)
    f(1)
    assert content(f).digest == before.digest
    assert before.parts[".cache entries"] == "1"
    hits = f.cache_info()
    f(2)
    assert differences(before, content(f)) == [".cache entries 2, was 1"]
    assert f.cache_info().hits == hits.hits


# Nothing is moved, consumed, called, warned about or begun


class Hostile:
    """Whatever is asked of it is recorded."""

    calls: ClassVar[list] = []

    def _told(self, *args, **options):
        Hostile.calls.append(args)
        raise AssertionError("the user's code was run")

    __getattr__ = __getattribute__ = __eq__ = __len__ = __iter__ = __repr__ = __str__ = _told
    __bool__ = __index__ = __int__ = __float__ = __reduce__ = __reduce_ex__ = __getstate__ = _told
    __sizeof__ = __format__ = __contains__ = __getitem__ = keys = items = _told
    __array__ = __fspath__ = _told
    __hash__ = object.__hash__
    value = property(_told)


def hostile(*bases):
    """An object of a class that overrides all of the above, below `bases`."""
    held = {
        key: item for key, item in vars(Hostile).items() if key not in ("__dict__", "__weakref__")
    }
    return type("Hostile", bases, held)


@pytest.mark.parametrize(
    ("base", "arguments"),
    [
        (object, ()),
        (list, ([1, 2],)),
        (tuple, ((1, 2),)),
        (dict, ({"a": 1},)),
        (set, ({1},)),
        (collections.deque, ([1],)),
        (collections.OrderedDict, ()),
        (str, ("a",)),
        (int, (3,)),
        (float, (3.5,)),
        (bytes, (b"a",)),
        (ValueError, ("a",)),
        (io.BytesIO, (b"ab",)),
        (datetime.datetime, (2024, 1, 1)),
    ],
)
def test_nothing_of_the_users_is_called(base, arguments):
    Hostile.calls.clear()
    made = hostile(base)(*arguments)
    found = content(made)
    assert (found.kind, Hostile.calls) == ("Hostile", [])
    below = content([made, {"key": made}])
    assert (below.kind, Hostile.calls) == ("list", [])


def test_neither_properties_nor_slots_that_are_empty_are_asked():
    home = cell(
        "class P:\n    __slots__ = ('a', 'b')\n    @property\n    def x(self): raise SystemExit\n"
        "p = P()\np.a = 1"
    )
    assert content(home["p"]).parts[".a"] == "1"


def test_a_tensor_subclass_is_read_without_its_torch_function():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **options):
            raise AssertionError("called")

    one, two = (torch.ones(3).as_subclass(Loud) for _ in range(2))
    assert digest(one) == digest(two) != digest(torch.ones(3))


def test_what_is_read_stays_as_it_is():
    torch.manual_seed(1)
    names = {name: make() for name, (make, _) in PAIRS.items()}
    before = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().tolist()
    read(names, names, seconds=60)
    after = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().tolist()
    assert before == after
    assert list(names["list iterator"]) == [1, 2, 3]
    assert list(names["zip"]) == [(1, "a"), (2, "b")]
    assert list(names["generator"]) == [0, 1, 2, 3, 4]
    assert list(names["dict iterator"]) == [1, 3]
    assert list(names["set iterator"]) == [1, 2]
    assert list(names["islice"]) == ["a", "b", "c"]
    assert list(itertools.islice(names["endless cycle"], 4)) == [1, 2, 3, 1]
    assert next(names["count"]) == 0
    assert names["csv"].__next__() == ["1"]
    assert names["BytesIO"].read() == b"ab"
    assert len(list(names["loader's iterator"])) == 4
    assert names["queue"].get() == 1


def test_a_seedless_generator_of_the_process_counts_by_its_name():
    before = digest(random.random), digest(np.random.rand)
    random.random(), np.random.rand()
    assert (digest(random.random), digest(np.random.rand)) == before


def test_a_generator_method_counts_with_its_state():
    rng = np.random.default_rng(1)
    before = digest(rng.random)
    rng.random()
    assert digest(rng.random) != before


def test_cuda_is_not_started():
    code = (
        "import torch\nfrom nbseed.content import read\n"
        "m = torch.nn.Linear(2, 2)\no = torch.optim.Adam(m.parameters())\n"
        "d = torch.device('cuda')\n"
        "assert not read(globals(), ['m', 'o', 'd', 'torch'], 60).left_out\n"
        "assert not torch.cuda.is_initialized()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_imported():
    code = (
        "import sys\nimport nbseed.content\nbefore = set(sys.modules)\n"
        "x = [1, {'a': (2, 3)}, lambda: 0, iter('abc'), object()]\n"
        "assert not nbseed.content.read(globals(), ['x'], 60).left_out\n"
        "assert set(sys.modules) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_lazy_module_stays_lazy():
    lazy = nn.Sequential(nn.LazyLinear(3))
    before = content(lazy)
    assert lazy[0].has_uninitialized_params()
    assert "[0].weight" in before.opaque
    lazy(torch.ones(1, 2))
    assert content(lazy).digest != before.digest


# Files


def test_an_open_file_is_known_by_name_mode_and_position(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    with path.open() as file:
        before = content(file)
        file.readline()
        assert differences(before, content(file)) == ["position 4, was 0"]
        assert file.readline() == "two\n"
    assert differences(before, content(file))[-1] != "other values"
    with path.open("rb") as file:
        assert differences(content(file), (file.read(2), content(file))[1]) == ["position 2, was 0"]


def test_a_text_file_that_is_iterated_over_goes_on_where_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i}\n" for i in range(10)))
    with path.open() as file:
        assert next(file) == "0\n"
        assert content(file).opaque == ()
        assert list(file) == [f"{i}\n" for i in range(1, 10)]


def test_a_file_that_is_written_is_not_flushed(tmp_path):
    path = tmp_path / "a.txt"
    with path.open("w") as file:
        file.write("text")
        content(file)
        assert path.read_text() == ""
    assert path.read_text() == "text"


def test_a_pipe_is_not_looked_into():
    import os

    r, w = os.pipe()
    with open(r) as reader, open(w, "w"):
        assert content(reader).opaque == ("",)


# What is not looked into


def drawn():
    import matplotlib.figure

    return matplotlib.figure.Figure()


@pytest.mark.parametrize(
    "make",
    [
        threading.Lock,
        threading.RLock,
        threading.Event,
        lambda: threading.Thread(target=print),
        lambda: weakref.ref(Point),
        lambda: logging.getLogger("nbseed.test"),
        lambda: logging.StreamHandler(),
        socket.socket,
        lambda: __import__("ctypes").c_int(3),
        drawn,
        lambda: torch.zeros(3, device="meta"),
        lambda: torch.zeros(3).to_sparse(),
        queue.SimpleQueue,
    ],
    ids=itertools.count(),
)
def test_what_is_not_looked_into_is_named(make):
    made = make()
    if hasattr(made, "close"):
        made.close()
    assert content([made]).opaque == ("[0]",)
    assert content(made).opaque == ("",)


def test_a_library_is_not_looked_into_and_named_only_where_it_is_the_variable():
    assert content(np).opaque == ("",)
    assert content([np]).opaque == ()


def test_locks_of_two_objects_make_no_difference():
    made = [types.SimpleNamespace(lock=threading.Lock(), x=1) for _ in range(2)]
    assert digest(made[0]) == digest(made[1])
    assert content(made[0]).opaque == (".lock",)


# Times


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("time", 1.5, True),
        ("mean_fit_time", np.array([0.1]), True),
        ("refit_time_", 0.1, True),
        ("startTime", 5, True),
        ("elapsed", 0.1, True),
        ("duration", datetime.timedelta(1), True),
        ("timestamp", np.float64(1), True),
        ("date_created", datetime.date(2024, 1, 1), True),
        ("epoch_times", [0.1, 0.2], True),
        ("time", np.array([0.1]), False),
        ("time", [0.1], False),
        ("time", "noon", False),
        ("timesteps", 3, False),
        ("n_updates", 3, False),
        ("last_time", [1, 2], False),
        ("candidate", 3, False),
        ("lifetimes", 3, False),
        ("data", 3.0, False),
    ],
)
def test_a_time_is_known_by_its_name_and_its_value(name, value, expected):
    assert is_a_time(name, value) is expected


def test_how_long_something_took_makes_no_difference():
    def searched(wait):
        made = GridSearchCV(SGDClassifier(random_state=0), {"alpha": [0.1, 1]}, cv=2)
        time.sleep(wait)
        return made.fit(DIGITS, LABELS)

    assert digest(searched(0)) == digest(searched(0.01))
    assert digest({"elapsed": 1.0, "a": 1}) == digest({"elapsed": 2.0, "a": 1})


@pytest.mark.parametrize(("module", "counts"), [("library", False), ("__main__", True)])
def test_what_a_cached_property_keeps_counts_in_the_users_classes_alone(module, counts):
    """What it keeps follows from the rest, but the user's own may have drawn it."""
    home = cell(
        f"import functools\nclass A:\n    __module__ = {module!r}\n"
        "    @functools.cached_property\n    def x(self): return 1\na = A()"
    )
    before = digest(home["a"])
    assert home["a"].x == 1
    assert (digest(home["a"]) != before) == counts


def test_looking_at_a_sparse_matrix_makes_no_difference():
    made = scipy.sparse.eye(3, format="csr")
    before = digest(made)
    assert made.has_canonical_format
    assert digest(made) == before


# Bounds


def test_deep_and_wide_things_end():
    deep = chained(5000, 0)
    assert content(deep).opaque != ()
    wide = [[object(), [i]] for i in range(10_001)]
    contents = read({"wide": wide, "x": 1}, ["wide", "x"], seconds=60)
    assert contents.left_out == {"wide": "it holds over 20000 objects"}
    assert list(contents.found) == ["x"]


def test_a_reader_ends_at_its_count_and_depth():
    reader = Reader(time.perf_counter() + 60, depth=2, count=3)
    assert reader.content([[[[1, []]]]]).opaque == ("[0][0]",)
    with pytest.raises(OutOfBudgetError, match="it holds over 3 objects"):
        reader.content([[[]], [[]], [[]]])


def test_what_is_too_large_is_left_out_by_its_size_and_the_rest_is_read():
    large = np.broadcast_to(np.zeros(1), (150_000_000,))
    contents = read({"large": large, "x": 1, "y": np.ones(3)}, ["large", "x", "y", "absent"])
    assert contents.left_out == {"large": "1.2 GB, over the budget"}
    assert list(contents.found) == ["x", "y"]


def test_when_the_time_is_over_the_small_ones_have_been_read(monkeypatch):
    class Clock:
        now = 0.0

        def __call__(self):
            Clock.now += 0.001
            return Clock.now

    monkeypatch.setattr("nbseed.content.reader.perf_counter", Clock())
    names = {"large": np.zeros(9_000_000), "small": [1, 2], "tensor": torch.zeros(9)}
    contents = read(names, names, seconds=0.05)
    assert list(contents.found) == ["large", "small", "tensor"]
    Clock.now = 0.0
    contents = read(names, names, seconds=0.01)
    assert contents.left_out == {"large": "72 MB, over the budget"}
    names["large"] = [chained(3, i) for i in range(50)]
    contents = read(names, ["large", "small"], seconds=0.01)
    assert contents == Contents({"small": contents.found["small"]}, {"large": "the time ran out"})


def test_an_error_inside_one_variable_leaves_that_one_out():
    closed = memoryview(b"a")
    closed.release()
    contents = read({"bad": closed, "x": 1}, ["bad", "x"])
    assert contents.left_out == {"bad": "ValueError while it was read"}
    assert list(contents.found) == ["x"]


def test_names_that_are_no_variables_are_passed_over_and_the_order_stays():
    contents = read({"a": np.zeros(9), "b": 1}, ["a", "print", "b", "a"])
    assert list(contents.found) == ["a", "b"]
    assert contents.left_out == {}


def test_parts_are_at_most_200_nearest_first_and_far_ones_still_count():
    deep = [[[i, [j]] for j in range(20)] for i in range(40)]
    before = content(deep)
    assert len(before.parts) == 200
    paths = list(before.parts)
    assert paths[0] == ""
    assert [path.count("[") for path in paths] == sorted(path.count("[") for path in paths)
    deep[39][19][1][0] = -1
    after = content(deep)
    assert differences(before, after) == ["other items in [39]"]


def test_things_that_came_and_went_are_not_made_up_where_parts_were_cut():
    before = content({i: [i, [0]] for i in range(150)})
    after = content({i: [i, [0], [1]] for i in range(150)})
    assert not [text for text in differences(before, after) if "new" in text or "gone" in text]


def test_a_table_that_two_variables_share_is_read_once():
    model, optimizer = trained(1)
    names = {"model": model, "optimizer": optimizer, "both": [model, optimizer]}
    together = read(names, names, seconds=60).found
    assert {name: found.digest for name, found in together.items()} == {
        name: digest(value) for name, value in names.items()
    }


def test_an_optimizer_does_not_hold_the_parameters_again():
    model, optimizer = trained(1)
    before = content(optimizer)
    with torch.no_grad():
        model[0].weight += 1
    assert content(optimizer).digest == before.digest
    assert before.parts[".param_groups[0]['params']"] == "4"


def test_gradients_make_no_difference():
    model = net()
    before = digest(model)
    model(torch.ones(4, 2)).sum().backward()
    model[1].load_state_dict(net()[1].state_dict())
    assert digest(model) == before


# Sentences


REORDERED = "the same items in another order"


def changed(value, change):
    before = content(value)
    change(value)
    return differences(before, content(value))


@pytest.mark.parametrize(
    ("make", "change", "told"),
    [
        (lambda: [3, 1, 2], lambda v: v.sort(), ["the same items in another order"]),
        (lambda: list(range(7)), lambda v: v.extend([7, 8, 9]), ["10 items, were 7"]),
        (lambda: [1], lambda v: v.append(2), ["2 items, was 1"]),
        (
            lambda: {"a": [2, 1]},
            lambda v: v["a"].sort(),
            ["the same items in another order in ['a']"],
        ),
        (lambda: {"lr": 0.1}, lambda v: v.update(lr=0.2), ["['lr'] 0.2, was 0.1"]),
        (
            lambda: dict.fromkeys("abcdef", 0),
            lambda v: v.update(dict.fromkeys("abcde", 1)),
            ["other values in ['a'], ['b'], ['c'] and 2 more"],
        ),
        (lambda: {"a": 1}, lambda v: v.update(b=2), ["2 items, was 1"]),
        (lambda: Point(), lambda v: setattr(v, "z", 1), [".z is new"]),
        (lambda: Point(), lambda v: delattr(v, "x"), [".x is gone"]),
        (lambda: Point(1), lambda v: setattr(v, "x", "1"), [".x '1', was 1"]),
        (lambda: Point(1), lambda v: setattr(v, "x", [1]), [".x a list, was 1"]),
        (lambda: Point([1]), lambda v: setattr(v, "x", {}), [".x a dict, was a list"]),
        (lambda: net(), lambda v: v.eval(), ["eval mode, was train mode"]),
        (lambda: net(), lambda v: v[2].eval(), ["[2] eval mode, was train mode"]),
        (
            lambda: net(),
            lambda v: (v[1].eval(), v[2].eval()),
            ["eval mode, was train mode in [1], [2]"],
        ),
        (
            lambda: net(),
            lambda v: v(torch.ones(4, 2)),
            ["[1].num_batches_tracked tensor(1), was tensor(0)",
             "other values in [1].running_mean, [1].running_var"],
        ),
        (
            lambda: net(),
            lambda v: v.double(),
            ["dtype float64, was float32 in [0].weight, [0].bias, [1].weight and 3 more"],
        ),
        (lambda: np.arange(4), np.random.default_rng(2).shuffle, [REORDERED]),
        (
            lambda: np.arange(8.0).reshape(4, 2),
            np.random.default_rng(2).shuffle,
            ["the same items in another order"],
        ),
        (lambda: np.arange(8.0), lambda v: np.negative(v, out=v), ["other values"]),
        (lambda: np.arange(8.0).reshape(4, 2), lambda v: v.sort(axis=1), []),
        (lambda: np.array([[1, 2], [3, 4]]), lambda v: v[:, 0].sort(), []),
        (lambda: np.array([[3, 2], [1, 4]]), lambda v: v[:, 0].sort(), ["other values"]),
        (lambda: torch.arange(4), lambda v: v.copy_(v.flip(0)), [REORDERED]),
        (lambda: pd.DataFrame(FRAME), lambda v: v.insert(0, "c", 1), ["3 columns, were 2"]),
        (lambda: pd.DataFrame(FRAME), lambda v: v.__setitem__("a", 1), ["other values in ['a']"]),
        (
            lambda: iter(range(10)),
            lambda v: after(7, v),
            ["further on: 3 of 10 items are left, were 10"],
        ),
        (lambda: iter([1, 2]), lambda v: after(1, v), ["further on: 1 of 2 items is left, were 2"]),
        (lambda: iter([1, 2]), list, ["further on: 0 items are left, were 2"]),
        (lambda: {"it": iter("ab")}, lambda v: next(v["it"]),
         ["['it'] further on: 1 of 2 items is left, were 2"]),
        (lambda: enumerate("ab"), next, ["further on: 1 of 2 items is left, were 2"]),
        (lambda: numbers_up_to(5), next, ["in line 3, was not started"]),
        (lambda: numbers_up_to(1), list, ["finished, was not started"]),
        (lambda: after(1, numbers_up_to(5)), next,
         ["further on: 3 of 5 items are left, were 4", "its i 1, was 0"]),
        (lambda: {1, 2}, lambda v: v.add(3), ["3 items, were 2"]),
        (lambda: io.BytesIO(b"ab"), lambda v: v.write(b"x"), ["position 1, was 0"]),
        (lambda: structured((1, 2.0)), lambda v: v["a"].fill(3), ["other values in ['a']"]),
        (lambda: random.Random(1), lambda v: v.random(), ["another state"]),
        (
            lambda: trained(1)[1],
            lambda v: v.param_groups[0].update(lr=1),
            [".param_groups[0]['lr'] 1, was 0.1"],
        ),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_a_difference_is_told_as_a_person_would(make, change, told):
    assert changed(make(), change) == told


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (3, "3", ["a str, was an int"]),
        (None, 3, ["an int, was None"]),
        (3, None, ["None, was an int"]),
        ([], np.zeros(3), ["an ndarray, was a list"]),
        (True, False, ["False, was True"]),
        (0, 3, ["3, was 0"]),
        (np.zeros((4, 4)), np.zeros((8, 4)), ["shape (8, 4), was (4, 4)"]),
        (np.zeros(4, "f4"), np.zeros(4), ["dtype float64, was float32"]),
        (
            np.zeros((4, 4), "f4"),
            np.zeros((8, 4)),
            ["dtype float64, was float32", "shape (8, 4), was (4, 4)"],
        ),
        ("a" * 50, "b" * 50, ["another text"]),
        ("a" * 50, "a" * 51, ["51 characters, were 50"]),
        (2**200, 2**201, ["202 bits, were 201"]),
        ({1, 2}, {1, 3}, ["other items"]),
        (
            pd.DataFrame(FRAME),
            pd.DataFrame(FRAME)[::-1].reset_index(drop=True),
            ["the same rows in another order"],
        ),
        (pd.DataFrame(FRAME), pd.DataFrame(FRAME)[:2], ["2 rows, were 3"]),
        (pd.Series([1, 2]), pd.Series([2, 1]), ["the same items in another order"]),
        (np.float32(1), np.float32(2), ["float32(2.0), was float32(1.0)"]),
        (torch.tensor(1.5), torch.tensor(2.5), ["tensor(2.5), was tensor(1.5)"]),
        (
            {"a b": 1, "c, d": 1},
            {"a b": 2, "c, d": 2},
            ["['a b'] 2, was 1", "['c, d'] 2, was 1"],
        ),
    ],
    ids=itertools.count(),
)
def test_two_values_are_told_apart_in_words(before, after, told):
    assert differences(content(before), content(after)) == told


def test_at_most_five_sentences_are_told():
    one = {f"k{i}": np.zeros(i + 1, "f4") for i in range(9)}
    two = {f"k{i}": np.zeros(i + 2) for i in range(9)}
    told = differences(content(one), content(two))
    assert len(told) == 5
    assert told[0] == "dtype float64, was float32 in ['k0'], ['k1'], ['k2'] and 6 more"


def test_one_object_under_two_names_is_told_once():
    shared = np.zeros(3)
    before = content([shared, [shared]])
    shared += 1
    assert differences(before, content([shared, [shared]])) == ["other values in [0]"]


def test_contents_are_plain_values():
    found = content([1, "a"])
    assert found == Content("list", found.digest, dict(found.parts), found.unordered, ())
    assert found.parts == {"": found.parts[""], "[0]": "1", "[1]": "'a'"}
    assert re.fullmatch("list; 2 items #[0-9a-f]{8} ~[0-9a-f]{8}/[0-9a-f]{8}", found.parts[""])
    assert copy.deepcopy(found) == found


def test_the_order_of_items_does_not_change_the_digest_that_ignores_it():
    for one, two in [
        ([1, "a", None], [None, 1, "a"]),
        ([[1], [2]], [[2], [1]]),
        ((1, 2), (2, 1)),
        (np.arange(5), np.arange(5)[::-1]),
        (torch.arange(5), torch.arange(5).flip(0)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ]:
        first, second = content(one), content(two)
        assert first.digest != second.digest
        assert first.unordered == second.unordered != ""
        assert re.fullmatch("[0-9a-f]{32}", first.unordered)
    assert content([1, 2]).unordered != content([1, 3]).unordered


def test_reading_leaves_no_reference_behind():
    held = Point([1, 2, 3])
    gone = weakref.ref(held)
    content(held)
    del held
    gc.collect()
    assert gone() is None
