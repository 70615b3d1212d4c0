"""Modules, optimizers, schedulers and loaders of torch, and estimators of scikit-learn."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .attributes import attributes, built, mro
from .record import Node, digest

if TYPE_CHECKING:
    from .reader import Handler, Reader

# Of a module: shown under other names, or made from the parameters on the way.
_INNER = {
    "_parameters", "_buffers", "_modules", "training", "_flat_weights", "_flat_weight_refs",
    "_compiled_call_impl", "_is_full_backward_hook", "_is_hf_initialized", "_version",
}  # fmt: skip
# Of an optimizer: whether it was wrapped or has warned, which says nothing of its next step.
_KEPT_BY_OPTIMIZERS = {
    "param_groups",
    "state",
    "defaults",
    "step",
    "zero_grad",
    "profile_hook_step",
}


def network(reader: Reader, value: Any) -> Node:
    """A module: parameters, buffers, mode and inner modules by name, then its plain attributes."""
    held = object.__getattribute__(value, "__dict__")
    mode = "train" if held.get("training") else "eval"
    children = [(".train mode", Node(digest("mode", mode), "mode", shown=mode))]
    for store in ("_parameters", "_buffers"):
        children += [(_step(key), reader.look(item)) for key, item in held[store].items()]
    children += [(_step(key), reader.look(item)) for key, item in held["_modules"].items()]
    plain = []
    for key, item in attributes(value):
        if key in _INNER:
            continue
        if "hook" in key:
            # Their keys are counted through the whole process.
            if type(item) in (dict, OrderedDict) and item:
                plain.append((f".{key}", reader.look(list(item.values()))))
            continue
        plain.append((f".{key}", reader.look(item)))
    return built(reader, value, children + plain)


def _step(key: str) -> str:
    return f"[{key}]" if key.isdigit() else f".{key}"


def optimizer(reader: Reader, value: Any) -> Node:
    """An optimizer: each group's options, and what it remembers of each parameter, by number."""
    held = object.__getattribute__(value, "__dict__")
    children: list[tuple[str, Node]] = []
    numbers: dict[int, int] = {}
    for place, group in enumerate(held["param_groups"]):
        for parameter in group["params"]:
            numbers.setdefault(id(parameter), len(numbers))
        options = {key: item for key, item in group.items() if key != "params"}
        options["params"] = len(group["params"])
        children.append((f".param_groups[{place}]", reader.look(options)))
    for parameter, memory in held["state"].items():
        number = numbers.get(id(parameter), "?")
        children.append((f".state[{number}]", reader.look(memory)))
    more = [
        (f".{key}", reader.look(item))
        for key, item in attributes(value)
        if key not in _KEPT_BY_OPTIMIZERS and not key.startswith("_") and "hook" not in key
    ]
    return built(reader, value, children + more)


def _without(*names: str) -> Handler:
    """An object by its attributes, but for some that follow from other variables."""

    def handler(reader: Reader, value: Any) -> Node:
        held = [(key, item) for key, item in attributes(value) if key not in names]
        return built(reader, value, [(f".{key}", reader.look(item)) for key, item in held])

    return handler


def loader_iterator(reader: Reader, value: Any) -> Node:
    """A loader's iterator by how many batches it has given, and by its loader's dataset."""
    held = dict(attributes(value))
    children = [("._dataset", reader.look(held.get("_dataset")))]
    return reader.node(value, children, [f"batch {held.get('_num_yielded')}"])


def in_c(reader: Reader, value: Any) -> Node:
    """A tree, a loss and the like of scikit-learn, by what they say for a copy."""
    for base in mro(type(value))[:-1]:
        if not base.__module__.startswith("sklearn."):
            break
        held: Any = base.__dict__
        if "__getstate__" in held:
            return reader.node(value, (), (), reader.look(held["__getstate__"](value)).digest)
        if "__reduce__" in held:
            # The class, and what it is made with.
            parts = [reader.look(part).digest for part in held["__reduce__"](value)]
            return reader.node(value, (), (), parts)
    return reader.opaque(value)


HANDLERS: dict[str, Handler] = {
    "torch.nn.modules.module.Module": network,
    "torch.optim.optimizer.Optimizer": optimizer,
    **{
        f"torch.optim.lr_scheduler.{name}": _without("optimizer")
        for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau")
    },
    "torch.utils.data.dataloader.DataLoader": _without(
        "_IterableDataset_len_called",
        "_DataLoader__multiprocessing_context",
        "_DataLoader__initialized",
    ),
    "torch.utils.data.dataloader._BaseDataLoaderIter": loader_iterator,
}
