from __future__ import annotations

import collections
import concurrent.futures
import copy
import gc
import io
import itertools
import multiprocessing
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import types
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from nbseed.carried import Carried, Plan, capture, check, shown
from nbseed.errors import CheckpointError


def put_back(carried: Carried, namespace: dict) -> Plan:
    plan = check(carried, namespace)
    plan.apply()
    return plan


def refusal(call) -> str:
    with pytest.raises(CheckpointError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Net(nn.Module):
    """Normalisation, dropout, a tied weight, a buffer that no state dict holds, a counter."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(8, classes)
        self.tied = nn.Linear(4, 8)
        self.tied.weight = self.body[0].weight
        self.register_buffer("seen", torch.zeros(3), persistent=False)
        self.steps = 0
        self.history: list[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        self.history.append(float(self.steps))
        self.seen += 1
        return self.head(self.body(x) + self.tied(x))


def loop(names: dict, epochs: int = 4) -> tuple[list[float], list[torch.Tensor]]:
    """A small training loop; its losses and the final weights and buffers."""
    torch.manual_seed(3)
    model, optimizer, scheduler = names["model"], names["optimizer"], names["scheduler"]
    losses = []
    for _ in range(epochs):
        optimizer.zero_grad()
        x = torch.randn(16, 4)
        loss = (model(x) - x[:, :2]).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses, [t.detach().clone() for t in [*model.parameters(), *model.buffers()]]


@pytest.fixture
def room() -> dict:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    return {"model": model, "optimizer": optimizer, "scheduler": scheduler}


def equal(one: object, two: object) -> bool:
    """Whether two nests of tensors and numbers are the same to the last bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return list(one) == list(two) and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(equal, one, two))
    return one == two


def everything(room: dict) -> object:
    """All that a training loop changes, as a deep copy."""
    model, optimizer, scheduler = room["model"], room["optimizer"], room["scheduler"]
    tensors = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(
        [
            [t.detach() for t in tensors],
            [t.requires_grad for t in tensors],
            [t.grad for t in tensors],
            [sub.training for sub in model.modules()],
            [model.steps, model.history],
            optimizer.state_dict(),
            scheduler.state_dict(),
        ]
    )


# -- a training loop -------------------------------------------------------------------------------


@pytest.mark.parametrize("warm", [0, 2], ids=["before the first step", "with momentum"])
def test_a_training_loop_repeats_to_the_last_bit(room, warm):
    loop(room, warm)
    carried = capture(room, ["model", "optimizer", "scheduler"])
    first = loop(room)
    again = loop(room)
    assert again[0] != first[0]
    for _ in range(2):
        put_back(carried, room)
        assert equal(loop(room), first)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
        lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
        lambda p: torch.optim.Adagrad(p, lr=0.01),
        lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01)),
    ],
    ids=["SGD", "AdamW", "RMSprop", "Adagrad", "a tensor as lr"],
)
def test_every_optimizer_goes_on_as_it_did(room, make):
    room["optimizer"] = make(room["model"].parameters())
    room["scheduler"] = torch.optim.lr_scheduler.ExponentialLR(room["optimizer"], 0.9)
    loop(room, 2)
    carried = capture(room, list(room))
    first = loop(room)
    put_back(carried, room)
    assert equal(loop(room), first)


def test_everything_of_a_module_goes_back_in_place(room):
    model = room["model"]
    model.body[3].eval()
    model.head.bias.requires_grad_(False)
    loop(room, 1)
    before, objects = everything(room), [id(t) for t in [*model.parameters(), *model.buffers()]]
    carried = capture(room, list(room))
    loop(room)
    model.eval()
    model.requires_grad_(False)
    model.seen.fill_(-1)
    put_back(carried, room)
    assert equal(everything(room), before)
    assert [id(t) for t in [*model.parameters(), *model.buffers()]] == objects
    assert model.tied.weight is model.body[0].weight
    assert [p for g in room["optimizer"].param_groups for p in g["params"]] == [*model.parameters()]
    assert room["scheduler"].optimizer is room["optimizer"]


def test_gradients_go_back_into_the_tensors_that_hold_them():
    model = nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    model.bias.grad = None
    carried = capture({"model": model}, ["model"])
    model.weight.grad.fill_(7)
    model.bias.grad = torch.ones(1)
    there, added = model.weight.grad, model.bias.grad
    plan = put_back(carried, {"model": model})
    assert model.weight.grad is there
    assert there.tolist() == [[1, 1]]
    assert model.bias.grad is None
    plan.undo()
    assert model.weight.grad is there
    assert there.tolist() == [[7, 7]]
    assert model.bias.grad is added


def test_what_the_cell_adds_to_a_module_is_gone_and_what_it_replaces_is_back(room):
    model = room["model"]
    head, calls = model.head, []
    kept = model.register_forward_hook(lambda *_: calls.append("kept"))
    carried = capture(room, list(room))
    model.register_forward_hook(lambda *_: calls.append("added"))
    model.head = nn.Linear(8, 20)
    model.extra, model.note = nn.Linear(1, 1), "fine-tuned"
    room["optimizer"].add_param_group({"params": model.extra.parameters()})
    put_back(carried, room)
    assert model.head is head
    assert not hasattr(model, "extra")
    assert not hasattr(model, "note")
    assert len(room["optimizer"].param_groups) == 1
    model(torch.ones(2, 4))
    assert calls == ["kept"]
    kept.remove()
    model(torch.ones(2, 4))
    assert calls == ["kept"]


@pytest.mark.parametrize("change", [lambda m: m.double(), lambda m: m.half()])
def test_a_module_converted_by_the_cell_is_converted_back(room, change):
    weight, before = room["model"].head.weight, everything(room)
    carried = capture(room, list(room))
    change(room["model"])
    put_back(carried, room)
    assert room["model"].head.weight is weight
    assert equal(everything(room), before)


def test_extra_state_goes_back_through_its_own_method():
    class Counted(nn.Module):
        calls = 0

        def get_extra_state(self):
            return {"calls": Counted.calls}

        def set_extra_state(self, state):
            Counted.calls = state["calls"]

    names = {"model": nn.Sequential(Counted())}
    Counted.calls = 2
    carried = capture(names, ["model"])
    Counted.calls = 5
    plan = put_back(carried, names)
    assert Counted.calls == 2
    plan.undo()
    assert Counted.calls == 5


def test_a_wrapped_or_compiled_model_is_the_bare_one_again(room):
    model, before = room["model"], everything(room)
    carried = capture(room, list(room))
    room["model"] = nn.DataParallel(model)
    put_back(carried, room)
    assert room["model"] is model
    assert equal(everything(room), before)


@pytest.mark.parametrize("layer", [lambda: nn.LSTM(3, 4), lambda: nn.MultiheadAttention(4, 2)])
def test_a_layer_with_private_structure_trains_the_same(layer):
    torch.manual_seed(1)
    model = layer()
    x = torch.randn(5, 2, 3 if isinstance(model, nn.LSTM) else 4)
    call = (x,) if isinstance(model, nn.LSTM) else (x, x, x)

    def train():
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            model.zero_grad()
            model(*call)[0].pow(2).sum().backward()
            optimizer.step()
        return copy.deepcopy(model.state_dict())

    carried = capture({"model": model}, ["model"])
    first = train()
    put_back(carried, {"model": model})
    assert equal(train(), first)


# -- the cells above ran again ---------------------------------------------------------------------


def test_the_content_goes_into_a_model_made_anew(room):
    loop(room, 2)
    carried = capture(room, list(room))
    first = loop(room)
    torch.manual_seed(8)
    room["model"] = Net()
    room["optimizer"] = torch.optim.Adam(room["model"].parameters(), lr=0.9)
    room["scheduler"] = torch.optim.lr_scheduler.StepLR(room["optimizer"], 3, 0.1)
    made = dict(room)
    put_back(carried, room)
    assert all(room[name] is made[name] for name in made)
    assert equal(loop(room), first)


class Wider(nn.Module):
    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)


def tied():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    return model


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            lambda: Wider(head=nn.Linear(10, 3)),
            lambda: Wider(head=nn.Linear(20, 3)),
            "head.weight is (3, 20) now, was (3, 10)",
        ),
        (
            lambda: nn.Linear(1, 1),
            lambda: nn.Linear(1, 1).double(),
            "weight is torch.float64 now, was torch.float32",
        ),
        (lambda: nn.Linear(1, 1), lambda: nn.Linear(1, 1, bias=False), "bias is missing now"),
        (lambda: nn.Linear(1, 1, bias=False), lambda: nn.Linear(1, 1), "bias was not there"),
        (
            lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)),
            tied,
            "1.weight and 0.weight are one tensor now",
        ),
        (lambda: nn.Linear(1, 1), lambda: None, "it is a NoneType now, was a Linear"),
    ],
)
def test_a_model_of_another_structure_is_refused(was, now, said):
    names = {"model": was()}
    carried = capture(names, ["model"])
    names["model"] = now()
    text = refusal(lambda: check(carried, names))
    assert text == f"--with model: {said}; --reset takes the checkpoint anew"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (lambda p: torch.optim.SGD(p, 0.1), "it is a SGD now, was an Adam"),
        (lambda p: torch.optim.Adam(p[:1]), "it has 1 parameters now, was 2"),
        (
            lambda p: torch.optim.Adam([torch.ones(3, requires_grad=True), p[1]]),
            "parameter 0 is (3,) now, was (2, 2)",
        ),
        (
            lambda p: torch.optim.Adam([{"params": p[:1]}, {"params": p[1:]}]),
            "it has 2 parameter groups now, was 1",
        ),
    ],
)
def test_an_optimizer_of_another_structure_is_refused(now, said):
    parameters = list(nn.Linear(2, 2).parameters())
    names = {"optimizer": torch.optim.Adam(parameters)}
    carried = capture(names, ["optimizer"])
    names["optimizer"] = now(parameters)
    text = refusal(lambda: check(carried, names))
    assert text == f"--with optimizer: {said}; --reset takes the checkpoint anew"


def test_a_model_that_is_gone_is_refused_and_a_copy_is_bound_again():
    names = {"model": nn.Linear(1, 1), "rows": {"a": [1]}, "object": types.SimpleNamespace(n=1)}
    carried = capture(names, list(names))
    names.clear()
    text = "there is no variable of that name now; --reset takes the checkpoint anew"
    assert refusal(lambda: check(carried, names)) == f"--with model: {text}"
    names["model"] = nn.Linear(1, 1)
    put_back(carried, names)
    assert names["rows"] == {"a": [1]}
    assert names["object"].n == 1


def test_a_checkpoint_does_not_keep_a_model_alive():
    names = {"model": nn.Sequential(nn.Linear(1, 1))}
    carried = capture(names, ["model"])
    model, inside = weakref.ref(names["model"]), weakref.ref(names["model"][0])
    del names["model"]
    gc.collect()
    assert model() is None
    assert inside() is None
    assert carried.names == ("model",)


# -- arrays and tensors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "write", "read"),
    [
        (lambda: np.arange(6.0).reshape(2, 3), lambda x: x.fill(9), lambda x: x.tolist()),
        (lambda: np.arange(6).reshape(2, 3)[:, ::2], lambda x: x.fill(9), lambda x: x.tolist()),
        (lambda: torch.arange(6.0), lambda x: x.fill_(9), lambda x: x.tolist()),
        (lambda: np.array(["a", "b"]), lambda x: x.fill("c"), lambda x: x.tolist()),
        (lambda: [3, 1, 2], lambda x: x.sort(), list),
        (lambda: {"b": 1, "a": 2}, lambda x: x.update(b=x.pop("b")), lambda x: list(x.items())),
        (lambda: {1, 2}, lambda x: x.add(3), set),
        (lambda: collections.deque([1, 2], 2), lambda x: x.append(3), list),
        (lambda: bytearray(b"ab"), lambda x: x.extend(b"c"), bytes),
    ],
    ids=["array", "view", "tensor", "text", "list", "dict", "set", "deque", "bytearray"],
)
def test_what_can_be_written_in_place_is(make, write, read):
    names = {"x": make()}
    alias, before = names["x"], read(names["x"])
    carried = capture(names, ["x"])
    write(alias)
    changed = read(alias)
    assert changed != before
    plan = put_back(carried, names)
    assert names["x"] is alias
    assert read(alias) == before
    plan.undo()
    assert names["x"] is alias
    assert read(alias) == changed


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.lr_scheduler.OneCycleLR(p, 0.1, total_steps=20),
        lambda p: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(p, 3),
        lambda p: torch.optim.lr_scheduler.LambdaLR(p, lambda n: 0.9**n),
        lambda p: torch.optim.lr_scheduler.SequentialLR(
            p,
            [
                torch.optim.lr_scheduler.ConstantLR(p, 0.1, 2),
                torch.optim.lr_scheduler.ExponentialLR(p, 0.9),
            ],
            [3],
        ),
    ],
    ids=["one cycle", "warm restarts", "lambda", "sequential"],
)
def test_every_scheduler_goes_on_as_it_did(room, make):
    room["scheduler"] = make(room["optimizer"])
    loop(room, 2)
    carried = capture(room, list(room))
    first = loop(room)
    put_back(carried, room)
    assert equal(loop(room), first)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)),
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
        lambda: nn.utils.spectral_norm(nn.Linear(3, 3)),
        lambda: torch.optim.swa_utils.AveragedModel(nn.Linear(3, 3)),
        lambda: nn.EmbeddingBag(3, 3, sparse=True),
        lambda: torch.jit.script(nn.Linear(3, 3)),
    ],
    ids=["weight norm", "spectral norm", "old spectral norm", "average", "sparse", "script"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_layer_of_an_unusual_kind_trains_the_same(layer):
    torch.manual_seed(1)
    model = layer()
    x = torch.tensor([[0, 1, 1]]) if isinstance(model, nn.EmbeddingBag) else torch.randn(5, 3)

    def train():
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        for _ in range(3):
            loss = model(x).pow(2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    train()
    model.zero_grad()
    names = {"model": model}
    carried = capture(names, ["model"])
    first = train()
    model.zero_grad()
    put_back(carried, names)
    assert train() == first


def test_a_gradient_scaler_goes_back():
    names = {"scaler": torch.amp.GradScaler("cpu", init_scale=4.0)}
    scaler = names["scaler"]
    carried = capture(names, ["scaler"])
    scaler.scale(torch.ones(1))
    scaler.update(2.0)
    assert scaler.get_scale() == 2
    put_back(carried, names)
    assert names["scaler"] is scaler
    assert scaler.get_scale() == 4


@pytest.mark.parametrize("make", [lambda: np.arange(4.0), lambda: torch.arange(4.0)])
def test_a_view_sees_what_goes_back_and_another_array_is_left_alone(make):
    names = {"x": make()}
    view = names["x"][:2]
    carried = capture(names, ["x"])
    names["x"] *= 5
    kept = names["x"] = names["x"] + 1  # what the cell made, and may have kept in a list
    put_back(carried, names)
    assert view.tolist() == [0, 1]
    assert names["x"].tolist() == [0, 1, 2, 3]
    assert kept.tolist() == [1, 6, 11, 16]
    assert np.shares_memory(np.asarray(view), np.asarray(names["x"]))


def readonly():
    array = np.arange(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "make",
    [
        readonly,
        lambda: np.array([1, [2]], dtype=object),
        lambda: np.ma.masked_array([1, 2], [True, False]),
        lambda: torch.arange(3).expand(2, 3),
        lambda: torch.eye(2).to_sparse(),
        lambda: pd.DataFrame({"a": [1, 2]}),
        lambda: pd.Series(["x", "y"]),
        lambda: (1, [2]),
        lambda: frozenset({1}),
        lambda: io.BytesIO(b"abc"),
    ],
)
def test_other_data_is_bound_as_a_copy_each_time(make):
    names = {"x": make()}
    first, said = names["x"], repr(names["x"])
    carried = capture(names, ["x"])
    for _ in range(2):
        names["x"] = None
        put_back(carried, names)
        assert type(names["x"]) is type(first)
        assert names["x"] is not first
        if not isinstance(first, io.BytesIO):
            assert repr(names["x"]) == said
        first = names["x"]


@pytest.mark.parametrize(
    "value", [7, "text", None, 1.5, len, Net, test_other_data_is_bound_as_a_copy_each_time]
)
def test_a_plain_value_a_function_and_a_class_are_bound_again(value):
    names = {"x": value}
    carried = capture(names, ["x"])
    names["x"] = "other"
    plan = put_back(carried, names)
    assert names["x"] is value
    plan.undo()
    assert names["x"] == "other"


@pytest.mark.parametrize("kind", [torch.Tensor, nn.Parameter])
def test_a_leaf_keeps_its_place_in_an_optimizer(kind):
    def make():
        tensor = torch.ones(3)
        return nn.Parameter(tensor) if kind is nn.Parameter else tensor.requires_grad_()

    names = {"w": make()}
    names["optimizer"] = torch.optim.SGD([names["w"]], 0.5, momentum=0.9)

    def train():
        for _ in range(3):
            names["optimizer"].zero_grad()
            names["w"].pow(2).sum().backward()
            names["optimizer"].step()
        return names["w"].tolist()

    carried = capture(names, ["w", "optimizer"])
    first, leaf = train(), names["w"]
    put_back(carried, names)
    assert names["w"] is leaf
    assert leaf.requires_grad
    assert leaf.grad is None
    assert train() == first
    names["w"] = leaf = make()
    names["optimizer"] = torch.optim.SGD([leaf], 0.1)
    put_back(carried, names)
    assert names["w"] is leaf
    assert train() == first
    del names["w"], leaf
    names["optimizer"] = torch.optim.SGD([torch.ones(3, requires_grad=True)], 0.1)
    gc.collect()
    put_back(carried, names)
    assert type(names["w"]) is kind
    assert names["w"].requires_grad
    assert names["w"].tolist() == [1, 1, 1]


def test_a_tensor_of_a_graph_is_kept_until_it_is_written_into():
    w = torch.ones(2, requires_grad=True)
    names = {"h": w * 2}
    h = names["h"]
    carried = capture(names, ["h"])
    names["h"] = names["h"] + 1
    put_back(carried, names)
    assert names["h"] is h
    h.sum().backward()
    assert w.grad.tolist() == [2, 2]
    with torch.no_grad():
        h.add_(1)
    said = "a Tensor of a graph was written into; detach it above the cell"
    assert refusal(lambda: check(carried, names)) == f"--with h: {said}"


# -- other objects ---------------------------------------------------------------------------------


class Counter:
    def __init__(self) -> None:
        self.n, self.rows, self.me = 0, [[1], [2]], self
        self.first = self.rows[0]


def test_an_object_is_a_fresh_copy_for_each_run():
    names = {"counter": Counter()}
    carried = capture(names, ["counter"])
    for _ in range(2):
        names["counter"].n += 1
        names["counter"].first.append(5)
        put_back(carried, names)
        counter = names["counter"]
        assert (counter.n, counter.rows) == (0, [[1], [2]])
        assert counter.first is counter.rows[0]
        assert counter.me is counter


def test_what_variables_share_stays_shared():
    shared = [0]
    names = {"a": Counter(), "b": Counter(), "rows": shared, "pair": (shared, shared)}
    names["a"].common = names["b"].common = {"k": shared}
    carried = capture(names, list(names))
    shared.append(1)
    put_back(carried, names)
    assert names["a"].common is names["b"].common
    assert names["a"].common["k"] is shared
    assert names["pair"][0] is names["pair"][1] is names["rows"] is shared
    assert shared == [0]


class Trainer:
    def __init__(self, model, optimizer, rng) -> None:
        self.model, self.head, self.optimizer, self.rng = model, model.head, optimizer, rng
        self.averaged = torch.optim.swa_utils.AveragedModel(nn.Linear(1, 1))
        self.module, self.out = np, sys.stdout
        self.steps = 0


def test_a_trainer_still_holds_the_model_that_is_carried(room):
    rng = np.random.default_rng(3)
    room["trainer"] = Trainer(room["model"], room["optimizer"], rng)
    carried = capture(room, list(room))
    old = room["trainer"]
    old.steps = 3
    put_back(carried, room)
    trainer = room["trainer"]
    assert trainer is not old
    assert trainer.steps == 0
    assert trainer.model is room["model"]
    assert trainer.head is room["model"].head
    assert trainer.optimizer is room["optimizer"]
    assert trainer.averaged is not old.averaged
    assert trainer.rng is rng
    assert trainer.module is np
    assert carried.notes == ()
    room["model"] = Net()
    put_back(carried, room)
    assert room["trainer"].model is room["model"]
    assert room["trainer"].head is room["model"].head


def test_an_optimizer_in_a_copy_optimizes_the_model_that_is_carried(room):
    names = {"model": room["model"], "box": types.SimpleNamespace(optimizer=room["optimizer"])}
    carried = capture(names, ["model", "box"])
    put_back(carried, names)
    copied = names["box"].optimizer
    assert copied is not room["optimizer"]
    assert copied.param_groups[0]["params"][0] is next(names["model"].parameters())


def test_what_is_not_named_and_copied_all_the_same_is_said(room):
    room["trainer"] = Trainer(room["model"], room["optimizer"], None)
    carried = capture(room, ["trainer", "optimizer"])
    said = "--with trainer: it holds model, copied with it; name it too to share it"
    assert carried.notes == (said,)
    put_back(carried, room)
    assert room["trainer"].model is not room["model"]


def test_an_attribute_that_is_not_the_modules_own_is_left_and_said(room):
    model = room["model"]
    model.trainer = types.SimpleNamespace(optimizer=room["optimizer"], loader=DataLoader([1]))
    model.config = room["config"] = types.SimpleNamespace(lr=1)
    model.lock = threading.Lock()
    model.meter = types.SimpleNamespace(total=0)
    there = (model.trainer, model.config, model.lock)
    carried = capture(room, ["model", "optimizer"])
    said = "--with model: not put back: model.trainer, model.config, model.lock"
    assert carried.notes == (said,)
    model.meter.total, model.config.lr, model.trainer = 5, 2, None
    put_back(carried, room)
    assert (model.trainer, model.config, model.lock) == there
    assert (model.meter.total, model.config.lr) == (0, 2)


def test_a_data_frame_changed_in_place_and_an_estimator_that_goes_on():
    x, y = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
    forest = RandomForestClassifier(3, warm_start=True, random_state=0).fit(x, y)
    names = {"frame": pd.DataFrame({"a": [1, 2, 3]}), "forest": forest}
    carried = capture(names, ["frame", "forest"])
    for _ in range(2):
        names["frame"].loc[0, "a"] = 9
        names["forest"].set_params(n_estimators=7).fit(x, y)
        assert len(names["forest"].estimators_) == 7
        put_back(carried, names)
        assert names["frame"]["a"].tolist() == [1, 2, 3]
        assert len(names["forest"].estimators_) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([1, 2, 3, 4]),
        lambda: zip([1, 2, 3], iter("abc"), strict=False),
        lambda: map(str, range(4)),
        lambda: enumerate([5, 6, 7]),
        lambda: reversed([5, 6, 7]),
        lambda: iter({1: 2, 3: 4, 5: 6}),
        lambda: filter(None, [1, 2, 3]),
        lambda: itertools.chain([1], [2, 3]),
        lambda: itertools.count(3),
        lambda: itertools.cycle([1, 2, 3]),
        lambda: itertools.islice([1, 2, 3], 3),
        lambda: itertools.groupby([1, 1, 2, 3]),
        lambda: itertools.tee([1, 2, 3])[0],
        lambda: itertools.accumulate([1, 2, 3]),
    ],
)
def test_an_iterator_over_data_goes_back_to_its_place(make):
    def key(item):
        return item[0] if isinstance(item, tuple) else item

    names, other = {"it": make()}, make()
    next(names["it"]), next(other)
    if sys.version_info >= (3, 14) and type(other).__module__ == "itertools":
        assert refusal(lambda: capture(names, ["it"])).startswith("--with it: a")
        return
    carried = capture(names, ["it"])
    want = [key(next(other)), key(next(other))]
    for _ in range(2):
        assert [key(next(names["it"])), key(next(names["it"]))] == want
        put_back(carried, names)
    assert [key(next(names["it"])), key(next(names["it"]))] == want


def test_an_iterator_over_a_carried_list_goes_on_to_read_it():
    names = {"rows": [1, 2, 3]}
    names["it"] = iter(names["rows"])
    next(names["it"])
    carried = capture(names, ["rows", "it"])
    list(names["it"])
    put_back(carried, names)
    names["rows"].append(4)
    assert list(names["it"]) == [2, 3, 4]


# -- random generators -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: random.Random(1),
        random.SystemRandom,
        lambda: np.random.default_rng(1),
        lambda: np.random.RandomState(1),
        lambda: np.random.PCG64(1),
        lambda: torch.Generator().manual_seed(1),
    ],
)
def test_a_generator_stays_the_object_that_it_is(make):
    stream = make()
    names = {"g": stream, "box": types.SimpleNamespace(g=stream), "other": None}
    carried = capture(names, ["g", "box"])
    names["box"] = None
    put_back(carried, names)
    assert names["g"] is stream
    assert names["box"].g is stream
    names["g"] = None
    put_back(carried, names)
    assert names["g"] is stream
    names["g"] = new = make()  # its cell ran again
    put_back(carried, names)
    assert names["g"] is new
    assert names["box"].g is new


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: random.Random(1), lambda g: g.random()),
        (lambda: np.random.default_rng(1), lambda g: g.random()),
        (lambda: torch.Generator().manual_seed(1), lambda g: torch.rand(1, generator=g).item()),
    ],
)
def test_a_generator_inside_a_copy_is_rewound_and_stays_itself(make, draw):
    stream = make()
    names = {"box": [types.SimpleNamespace(g=stream)], "array": np.array([stream], object)}
    carried = capture(names, ["box", "array"])
    first = draw(stream)
    second = draw(stream)
    plan = put_back(carried, names)
    assert names["box"][0].g is names["array"][0] is stream
    assert draw(stream) == first
    plan.undo()
    stream_after = draw(stream)
    assert stream_after not in (first, second)


def test_nothing_is_drawn_by_capture_and_check(room):
    room["rng"] = np.random.default_rng(2)
    room["loader"] = DataLoader(TensorDataset(torch.ones(2)), generator=torch.Generator())
    loop(room, 2)

    def states():
        return (
            random.getstate(),
            repr(np.random.get_state(legacy=False)),
            torch.get_rng_state().tolist(),
            room["rng"].bit_generator.state,
            room["loader"].generator.get_state().tolist(),
        )

    before, held = states(), everything(room)
    carried = capture(room, list(room))
    check(carried, room)
    assert states() == before
    assert equal(everything(room), held)


def test_a_generator_in_an_array_of_objects_stays_itself():
    names = {"array": np.array([random.Random(1), [np.random.default_rng(1)]], object)}
    streams = names["array"][0], names["array"][1][0]
    put_back(capture(names, ["array"]), names)
    assert (names["array"][0], names["array"][1][0]) == streams


def test_the_global_streams_are_never_copied():
    names = {"box": types.SimpleNamespace(a=np.random.mtrand._rand, b=torch.default_generator)}
    carried = capture(names, ["box"])
    put_back(carried, names)
    assert names["box"].a is np.random.mtrand._rand
    assert names["box"].b is torch.default_generator


# -- all or nothing --------------------------------------------------------------------------------


class Fragile:
    """Gives its state, and does not take it."""

    def __init__(self) -> None:
        self.value, self.armed = 1, False

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]
        if self.armed:
            self.armed = False
            raise self.error


@pytest.mark.parametrize("error", [ValueError("no such\nkey"), KeyboardInterrupt()])
def test_a_fault_in_the_last_load_leaves_all_as_it_was(room, error):
    loop(room, 1)
    room |= {"x": np.arange(3), "rows": [1], "box": Counter(), "last": Fragile()}
    carried = capture(room, list(room))
    loop(room)
    room["x"] += 1
    room["rows"].append(2)
    room["last"].value, room["last"].error, room["last"].armed = 5, error, True
    names, before = dict(room), everything(room)
    plan = check(carried, room)
    kind = CheckpointError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(kind) as caught:
        plan.apply()
    if kind is CheckpointError:
        assert str(caught.value) == "--with last: a Fragile does not take its state (no such)"
    assert all(room[name] is names[name] for name in names)
    assert equal(everything(room), before)
    assert room["x"].tolist() == [1, 2, 3]
    assert room["rows"] == [1, 2]
    assert room["last"].value == 5


class Living:
    """Its state is what it works on, and it takes a state by writing into that."""

    def __init__(self) -> None:
        self.values = [1, 2]

    def state_dict(self):
        return {"values": self.values}

    def load_state_dict(self, state):
        self.values[:] = state["values"]


def test_a_state_that_is_the_object_itself_is_not_shared_with_what_is_kept():
    names = {"x": Living()}
    carried = capture(names, ["x"])
    for _ in range(2):
        names["x"].values.append(3)
        plan = put_back(carried, names)
        assert names["x"].values == [1, 2]
    plan.undo()
    assert names["x"].values == [1, 2, 3]


def test_undo_goes_back_to_what_was_before_apply(room):
    loop(room, 1)
    carried = capture(room, list(room))
    loop(room)
    model = room["model"]
    model.eval()
    head = model.head = nn.Linear(8, 2)
    added = nn.Parameter(torch.ones(1))
    room["optimizer"].add_param_group({"params": [added], "lr": 0.7})
    before = everything(room)
    plan = check(carried, room)
    assert equal(everything(room), before)
    plan.apply()
    assert model.head is not head
    plan.undo()
    assert model.head is head
    assert equal(everything(room), before)
    assert room["optimizer"].param_groups[1]["params"][0] is added
    assert room["optimizer"].param_groups[1]["lr"] == 0.7


def test_a_failing_check_changes_nothing(room):
    room["box"] = Counter()
    carried = capture(room, ["model", "box", "optimizer", "scheduler"])
    loop(room)
    room["optimizer"] = torch.optim.SGD(room["model"].parameters(), 0.1)
    names, before = dict(room), everything(room)
    refusal(lambda: check(carried, room))
    assert room == names
    assert equal(everything(room), before)


# -- what is refused -------------------------------------------------------------------------------


class Stubborn:
    def __deepcopy__(self, memo):
        raise RuntimeError("not\nme")


def live_loader():
    loader = DataLoader(
        TensorDataset(torch.ones(2)), num_workers=1, persistent_workers=True,
        multiprocessing_context="fork",
    )  # fmt: skip
    list(loader)
    return loader


def generator():
    yield 1


def holding(value):
    return types.SimpleNamespace(inside=value)


NO = "cannot be copied"
LIVE = "a _SingleProcessDataLoaderIter (a live iterator; make it in the cell)"
SHARED = "objects should only be shared between processes through inheritance"


def open_file():
    return open(__file__)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (generator, f"a generator {NO} (cannot pickle 'generator' object)"),
        (lambda: zip(generator(), strict=True), f"a zip {NO} (cannot pickle 'generator' object)"),
        (lambda: map(str, generator()), f"a map {NO} (cannot pickle 'generator' object)"),
        (lambda: iter(int, 1), f"a callable_iterator {NO} (it would share what it calls)"),
        (
            lambda: zip(iter(int, 1), strict=True),
            f"a zip {NO}: it holds a callable_iterator (it would share what it calls)",
        ),
        (
            lambda: iter(DataLoader([1])),
            f"a _SingleProcessDataLoaderIter {NO} (a live iterator; make it in the cell)",
        ),
        (
            lambda: holding(iter(DataLoader([1]))),
            f"a SimpleNamespace {NO}: it holds {LIVE}",
        ),
        (live_loader, f"a DataLoader {NO} (its persistent workers are alive)"),
        (open_file, f"an open file {NO} (cannot pickle '_io.TextIOWrapper' object)"),
        (
            lambda: [map(str.strip, open_file())],
            f"a list {NO} (cannot pickle '_io.TextIOWrapper' object)",
        ),
        (socket.socket, f"a socket {NO} (cannot pickle 'socket' object)"),
        (threading.Lock, f"a lock {NO} (cannot pickle '_thread.lock' object)"),
        (
            lambda: threading.Thread(target=print),
            f"a Thread {NO} (cannot pickle '_thread.lock' object)",
        ),
        (
            lambda: concurrent.futures.ThreadPoolExecutor(1),
            f"a ThreadPoolExecutor {NO} (cannot pickle '_queue.SimpleQueue' object)",
        ),
        (
            lambda: subprocess.Popen(["true"]),
            f"a Popen {NO} (cannot pickle '_thread.lock' object)",
        ),
        (
            multiprocessing.Lock,
            f"a Lock {NO} (Lock {SHARED})",
        ),
        (
            lambda: sqlite3.connect(":memory:"),
            f"a Connection {NO} (cannot pickle 'sqlite3.Connection' object)",
        ),
        (lambda: np, "a module cannot be copied; import it in the cell"),
        (Stubborn, f"a Stubborn {NO} (not)"),
        (lambda: nn.LazyLinear(2), "weight has no shape yet; run a batch through it above"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_copied_is_refused_by_name(make, said):
    value = make()
    if isinstance(value, subprocess.Popen):
        value.wait()
    assert refusal(lambda: capture({"x": value}, ["x"])) == f"--with x: {said}"
    if isinstance(value, DataLoader):
        value._iterator._shutdown_workers()
    if isinstance(value, io.IOBase | socket.socket | sqlite3.Connection):
        value.close()


def test_ipythons_own_objects_are_refused_and_kept_inside_copies():
    import ipywidgets

    widget = ipywidgets.IntSlider()
    said = "an IntSlider cannot be copied (it belongs to the front end)"
    assert refusal(lambda: capture({"x": widget}, ["x"])) == f"--with x: {said}"
    names = {"box": holding(widget)}
    carried = capture(names, ["box"])
    put_back(carried, names)
    assert names["box"].inside is widget


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"model": 1, "optimizer": 2, "_x": 3}, "; there are: model, optimizer"),
        ({}, ""),
        (
            {"a": 1, "b": [1], "mode": 2, "model": 3, "c": 4, "d": 5, "In": [], "Out": {}},
            "; there are: mode, model, b, a, c, ...",
        ),
    ],
)
def test_a_name_that_does_not_exist_is_met_with_those_that_do(names, said):
    want = f"--with modle: there is no variable of that name{said}"
    assert refusal(lambda: capture(names, ["modle"])) == want


class Touchy:
    """Whatever is asked of it that copying does not need is an error."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise AssertionError(name)

    def __eq__(self, other):
        raise AssertionError("compared")

    __bool__ = __len__ = __iter__ = __repr__ = __eq__
    __hash__ = None

    @property
    def value(self):
        raise AssertionError("read")


def test_no_property_or_comparison_of_the_users_runs():
    names = {"x": Touchy(), "y": [Touchy()], "z": Touchy(), "model": nn.Linear(1, 1)}
    names["model"].touchy = Touchy()
    carried = capture(names, ["x", "y", "model"])
    old = names["x"]
    put_back(carried, names).undo()
    put_back(carried, names)
    assert names["x"] is not old
    assert type(names["x"]) is type(names["y"][0]) is type(names["model"].touchy) is Touchy


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (640, "640 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1_249_000, "1.2 MB"),
        (999_960, "1.0 MB"),
        (3_400_000_000, "3.4 GB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_sizes_are_read_at_a_glance(size, text):
    assert shown(size) == text


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: np.zeros(1000), 8000),
        (lambda: torch.zeros(1000), 4000),
        (lambda: torch.zeros(8000)[:10], 40),
        (lambda: None, 0),
    ],
)
def test_numbers_are_counted_to_the_byte(make, size):
    assert capture({"x": make()}, ["x"]).size == size


@pytest.mark.parametrize(
    "make",
    [
        lambda: [np.zeros(100_000)],
        lambda: pd.DataFrame({"a": np.zeros(100_000)}),
        lambda: [torch.zeros(200_000)],
        lambda: nn.Linear(200_000, 1, bias=False),
        lambda: [b" " * 800_000],
    ],
    ids=["array in a list", "data frame", "tensor in a list", "module", "bytes"],
)
def test_what_is_inside_counts(make):
    assert 800_000 <= capture({"x": make()}, ["x"]).size < 808_000


def test_an_optimizer_counts_its_state(room):
    loop(room, 1)
    moments = 2 * sum(p.numel() * 4 for p in room["model"].parameters())
    size = capture(room, ["optimizer"]).size
    assert moments <= size < moments + 8000


def test_the_kept_copy_is_shared_with_nothing(room):
    loop(room, 1)
    carried = capture(room, list(room))
    before = everything(room)
    for _ in range(3):
        loop(room, 1)
        put_back(carried, room)
        assert equal(everything(room), before)
