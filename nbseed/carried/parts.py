"""One variable each: how it is kept, and how it goes back, in place or bound anew."""

from __future__ import annotations

import copy
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from .copies import Step, a, deep_copy, guarded, is_a, refuse, stand_in

Namespace = MutableMapping[str, Any]
MISSING = object()
ANEW = "--reset takes the checkpoint anew"


class Part:
    """A variable whose copy is bound to its name; the others say where they differ.

    Attributes
    ----------
    content
        What is copied together with the other variables': replaced by its copy at capture, and
        copied from there for each run.
    """

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.content = value

    def originals(self) -> Iterator[Any]:
        """Objects that copies of other variables hold as themselves."""
        return iter(())

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        """What will be written into; CheckpointError if that cannot be.

        `memo` learns what copies of other variables are to hold in place of the originals.
        """
        return None

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        yield bind(self.name, fresh, names)

    def bytes_beside(self) -> int:
        """What it keeps apart from `content`, in bytes."""
        return 0


class Stream(Part):
    """A random generator: the checkpoint restores it under its name, so the binding is enough."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, None)
        self.value = value

    def originals(self) -> Iterator[Any]:
        yield self.value

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        # If its cell was run again, others hold the new one.
        aim = now if type(now) is type(self.value) else self.value
        stand_in(memo, self.value, aim)
        return aim

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        yield bind(self.name, aim, names)


class Container(Part):
    """A list, dict, set, deque or bytearray: filled anew in place, so that aliases see it."""

    FILL: dict[type, Callable[[Any, Any], None]] = {  # noqa: RUF012
        list: lambda old, new: old.__setitem__(slice(None), new),
        bytearray: lambda old, new: old.__setitem__(slice(None), new),
        dict: lambda old, new: (old.clear(), old.update(new)),  # type: ignore[dict-item]
        set: lambda old, new: (old.clear(), old.update(new)),  # type: ignore[dict-item]
        deque: lambda old, new: (old.clear(), old.extend(new)),  # type: ignore[dict-item]
    }

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, copy.copy(value))
        self.value = value  # for good: lists have no weak references

    def originals(self) -> Iterator[Any]:
        yield self.value

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        stand_in(memo, self.value, self.value)
        return self.value

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        value, fill = self.value, self.FILL[type(self.value)]
        before = copy.copy(value)
        yield Step(self.name, lambda: fill(value, fresh), lambda: fill(value, before))
        yield bind(self.name, value, names)


class Array(Part):
    """A NumPy array of numbers: written in place, so that its views see it.

    If the name is bound to another array by now, that one is left alone: the cell may have kept it
    elsewhere, and what it kept is not to be overwritten.
    """

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, None)
        self.ref = weakref.ref(value)
        self.kept = value.copy(order="K")

    def originals(self) -> Iterator[Any]:
        yield self.ref()

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        original = self.ref()
        if original is None:
            return self.kept.copy(order="K")
        same = original.shape == self.kept.shape and original.dtype == self.kept.dtype
        aim = original if same and original.flags.writeable else self.kept.copy(order="K")
        stand_in(memo, original, aim)
        return aim

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        write, before = sys.modules["numpy"].copyto, aim.copy(order="K")
        yield Step(self.name, lambda: write(aim, self.kept), lambda: write(aim, before))
        yield bind(self.name, aim, names)

    def bytes_beside(self) -> int:
        return int(self.kept.nbytes)


class Stateful(Part):
    """What has ``state_dict`` and ``load_state_dict``: an optimizer, a scheduler, a scaler."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, guarded(name, f"{a(value)} gives no state", value.state_dict))
        self.ref = weak(value)
        self.kind = type(value)
        self.was = a(value)
        self.shapes = _shapes(value)

    def originals(self) -> Iterator[Any]:
        yield self.ref()

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        original = self.ref()
        # Of another object of its kind it is the state that goes back: its cell was run again.
        aim = now if type(now) is self.kind else original
        if aim is None or (now is not MISSING and now is not None and type(now) is not self.kind):
            gone(self.name, now, self.was)
        shapes = _shapes(aim)
        if aim is original and len(shapes) > len(self.shapes):
            shapes = shapes[: len(self.shapes)]  # groups that the cell has added are taken out
        if len(shapes) != len(self.shapes):
            count = f"{len(shapes)} parameter groups now, was {len(self.shapes)}"
            refuse(self.name, f"it has {count}; {ANEW}")
        for number, (new, old) in enumerate(zip(shapes, self.shapes, strict=True)):
            where = f" of group {number}" if len(shapes) > 1 else ""
            if len(new) != len(old):
                refuse(
                    self.name, f"it has {len(new)} parameters{where} now, was {len(old)}; {ANEW}"
                )
            for place, (shape, was) in enumerate(zip(new, old, strict=True)):
                if shape != was:
                    refuse(self.name, f"parameter {place}{where} is {shape} now, was {was}; {ANEW}")
        if original is not None:
            stand_in(memo, original, aim)
        return aim

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        state = guarded(self.name, f"{a(aim)} gives no state", aim.state_dict)
        before = deep_copy(self.name, state, {}, aim)
        groups = aim.param_groups if self.shapes else []
        added = list(groups[len(self.shapes) :])

        def do() -> None:
            del groups[len(self.shapes) :]
            _load(self.name, aim, fresh)

        def undo() -> None:
            if added and len(aim.param_groups) == len(self.shapes):
                aim.param_groups.extend(added)
            _load(self.name, aim, before)

        yield Step(self.name, do, undo)
        yield bind(self.name, aim, names)


def _load(name: str, value: Any, state: Any) -> None:
    guarded(name, f"{a(value)} does not take its state", lambda: value.load_state_dict(state))


def _shapes(value: Any) -> list[list[tuple[int, ...]]]:
    """By group the shapes of what an optimizer optimizes; empty for everything else."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not is_a(value, torch.optim.Optimizer):
        return []
    return [[tuple(p.shape) for p in group["params"]] for group in value.param_groups]


def gone(name: str, now: Any, was: str) -> None:
    """Raise CheckpointError for an object that was to be written into and is not there."""
    if now is MISSING:
        refuse(name, f"there is no variable of that name now; {ANEW}")
    refuse(name, f"it is {a(now)} now, was {was}; {ANEW}")


def bind(name: str, value: Any, names: Namespace) -> Step:
    before = names.get(name, MISSING)

    def undo() -> None:
        if before is MISSING:
            names.pop(name, None)
        else:
            names[name] = before

    return Step(name, lambda: names.__setitem__(name, value), undo)


def weak(value: Any) -> Callable[[], Any]:
    """The object as long as others hold it; for good where Python has no weak references to it."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def is_plain_array(value: object) -> bool:
    """Whether an array can be written in place as a whole: numbers, and no class of its own."""
    numpy: Any = sys.modules.get("numpy")
    kinds = [getattr(numpy, name) for name in ("ndarray", "memmap") if hasattr(numpy, name)]
    if type(value) not in kinds:
        return False
    array: Any = value
    return array.flags.writeable and not array.dtype.hasobject


def is_plain_tensor(value: object) -> bool:
    """Whether a tensor is a leaf of torch's own class, each element at a place of its own."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    tensor: Any = value
    return tensor.is_leaf and in_one_piece(tensor)


def in_one_piece(tensor: Any) -> bool:
    """Whether each element has its own place in memory, so that it can be written."""
    if str(tensor.layout) != "torch.strided" or tensor.is_nested or tensor.is_inference():
        return False
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return all(stride for size, stride in sizes if size > 1)


def is_stateful(value: object) -> bool:
    """Whether its class has both methods of torch's protocol."""
    methods = (getattr(type(value), name, None) for name in ("state_dict", "load_state_dict"))
    return not is_a(value, type) and all(callable(method) for method in methods)
