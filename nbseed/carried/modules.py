"""Tensors and torch modules: written in place, so that optimizers and aliases still hold them."""

from __future__ import annotations

import copy
import functools
import sys
import types
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ..errors import CheckpointError
from .copies import (
    Keeper,
    Step,
    a,
    bytes_of,
    deep_copy,
    guarded,
    is_a,
    reach,
    refuse,
    stand_in,
    stays,
)
from .parts import ANEW, Namespace, Part, bind, gone, in_one_piece


class Held:
    """What a tensor held: its elements, whether it requires a gradient, and its gradient."""

    def __init__(self, tensor: Any) -> None:
        self.data = tensor.detach().clone()
        self.requires_grad = tensor.requires_grad and tensor.is_leaf
        grad = tensor.grad if tensor.is_leaf else None
        self.grad = None if grad is None else grad.detach().clone()

    def fits(self, tensor: Any) -> bool:
        return in_one_piece(tensor) and _kind(tensor) == _kind(self.data)

    def put(self, tensor: Any) -> None:
        """Write it into a tensor; the tensor gets new memory where it does not fit into its own."""
        torch: Any = sys.modules["torch"]
        with torch.no_grad():
            if not tensor.is_leaf:  # the cell has made it part of a graph
                tensor.detach_()
            if self.fits(tensor):
                tensor.copy_(self.data)
            else:
                tensor.data = self.data.clone()
            tensor.requires_grad_(self.requires_grad)
            if self.grad is None:
                tensor.grad = None
            elif tensor.grad is not None and _kind(tensor.grad) == _kind(self.grad):
                tensor.grad.detach().copy_(self.grad)
            else:
                tensor.grad = self.grad.clone()

    def new(self, kind: type) -> Any:
        """A tensor of its own with the same content."""
        torch: Any = sys.modules["torch"]
        data = self.data.clone()
        tensor = torch.nn.Parameter(data, False) if kind is torch.nn.Parameter else data
        self.put(tensor)
        return tensor

    def size(self) -> int:
        return bytes_of(self.data) + (0 if self.grad is None else bytes_of(self.grad))


def _kind(tensor: Any) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device, tensor.layout


def writing(name: str, tensor: Any, held: Held) -> Step:
    """Put back what a tensor held."""
    before, data = Held(tensor), tensor.data
    grad = tensor.grad if tensor.is_leaf else None

    def undo() -> None:
        if not before.fits(tensor):
            tensor.data = data
        tensor.grad = grad
        before.put(tensor)

    return Step(name, lambda: held.put(tensor), undo)


class Tensor(Part):
    """A leaf tensor.

    One that requires a gradient is written in place even if it is another one by now, because an
    optimizer holds it; any other that is new to the name is left alone, as arrays are.
    """

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, None)
        self.ref = weakref.ref(value)
        self.kind = type(value)
        self.held = Held(value)

    def originals(self) -> Iterator[Any]:
        yield self.ref()

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        original = self.ref()
        other = type(now) is self.kind and self.held.requires_grad and now.requires_grad
        aim = now if other and now.is_leaf and self.held.fits(now) else original
        if aim is None or not aim.is_leaf or not self.held.fits(aim):
            aim = self.held.new(self.kind)
        if original is not None:
            stand_in(memo, original, aim)
        return aim

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        yield writing(self.name, aim, self.held)
        yield bind(self.name, aim, names)

    def bytes_beside(self) -> int:
        return self.held.size()


class Module(Part):
    """A torch module with all below it.

    As long as it is the same object, everything goes back: the very submodules and parameters,
    what they hold, hooks, the mode, and other attributes. Into another module goes what has a
    place there, provided that its tensors have the same names, shapes and types.

    Attributes
    ----------
    content
        By submodule the attributes that are copied.
    left
        Attributes that keep their binding, and are not copied.
    """

    def __init__(self, name: str, module: Any) -> None:
        super().__init__(name, {})
        self.was = a(module)
        self.left: list[str] = []
        # Held for as long as the module itself lives, so that it is not kept from going.
        self._below: dict[str, Any] = {}
        self._inner: dict[str, dict[str, Any]] = {}
        self._rest: dict[str, dict[str, Any]] = {}
        self._refs: dict[str, weakref.ref[Any]] = {}
        self.tensors: dict[str, Held] = {}
        self.first: dict[str, str] = {}  # tied tensors are one: each name -> the first it goes by
        names: dict[int, str] = {}
        for path, sub in _submodules(module).items():
            held = vars(sub)
            self._inner[path] = {key: copy.copy(held[key]) for key in _inner_keys(held)}
            self._rest[path] = {key: x for key, x in held.items() if key not in self._inner[path]}
            self._refs[f"{path}:"] = weakref.ref(sub)
            if path:
                self._below[path] = sub
            for key, tensor in _tensors(path, sub):
                if sys.modules["torch"].nn.parameter.is_lazy(tensor):
                    refuse(name, f"{key} has no shape yet; run a batch through it above")
                self.first[key] = names.setdefault(id(tensor), key)
                if self.first[key] == key:
                    what = f"{key} cannot be copied"
                    self.tensors[key] = guarded(name, what, functools.partial(Held, tensor))
                    self._refs[key] = weakref.ref(tensor)
        held_here = (self._below, self._inner, self._rest)
        self.ref = weakref.ref(module, lambda _: [held.clear() for held in held_here])

    def originals(self) -> Iterator[Any]:
        for ref in self._refs.values():
            yield ref()

    def take_attributes(self, keeper: Keeper, others: set[int]) -> None:
        """Copy the attributes that are data of the module; the others keep their binding.

        An attribute that leads to a module, an optimizer or another part of torch (a trainer that
        refers back, a compiled function), or to one of the `others`, what the notebook has under
        another name, is not the module's own.
        """
        for path, rest in self._rest.items():
            own = self.content[path] = {}
            for key, value in rest.items():
                if _is_scalar(value):
                    own[key] = value
                    continue
                # A copy that fails leaves halves in the memo, which must not be met again.
                trial = Keeper(dict(keeper.memo))
                try:
                    if not _leads_out(value, trial.memo, others):
                        trial.look(self.name, value)
                        own[key] = deep_copy(self.name, value, trial.memo)
                        keeper.memo.update(trial.memo)
                        keeper.streams += trial.streams
                        keeper.graphs += trial.graphs
                        continue
                except CheckpointError:
                    pass
                if not key.startswith("_"):
                    self.left.append(".".join(filter(None, (self.name, path, key))))
        root = self.ref()
        for path, sub in {"": root, **self._below}.items():
            if _has_extra_state(sub):
                extra = guarded(self.name, f"{self.was} gives no state", sub.get_extra_state)
                self.content[path][_EXTRA] = deep_copy(self.name, extra, keeper.memo, root)

    def aim(self, now: Any, memo: dict[int, Any]) -> Any:
        torch: Any = sys.modules["torch"]
        original, aim = self.ref(), now
        if not is_a(now, torch.nn.Module):
            aim = original
        elif original is not None and any(sub is original for sub in now.modules()):
            aim = original  # the cell has wrapped or compiled it
        if aim is None:
            gone(self.name, now, self.was)
        submodules = _submodules(aim)
        if aim is not original:
            self._compare(submodules)
        tensors = {key: x for path, sub in submodules.items() for key, x in _tensors(path, sub)}
        for key, ref in self._refs.items():
            old = ref()
            new = submodules.get(key[:-1]) if key.endswith(":") else tensors.get(key)
            if old is not None:
                stand_in(memo, old, old if aim is original or new is None else new)
        return aim

    def _compare(self, submodules: dict[str, Any]) -> None:
        """Raise CheckpointError if tensors have other names, shapes or types than at capture."""
        first: dict[int, str] = {}
        there = {key: x for path, sub in submodules.items() for key, x in _tensors(path, sub)}
        for key in [*self.first, *there]:
            if key not in there:
                refuse(self.name, f"{key} is missing now; {ANEW}")
            if key not in self.first:
                refuse(self.name, f"{key} was not there; {ANEW}")
            tensor, held = there[key], self.tensors[self.first[key]].data
            for new, old in ((tuple(tensor.shape), tuple(held.shape)), (tensor.dtype, held.dtype)):
                if new != old:
                    refuse(self.name, f"{key} is {new} now, was {old}; {ANEW}")
            if self.first[first.setdefault(id(tensor), key)] != self.first[key]:
                refuse(self.name, f"{key} and {first[id(tensor)]} are one tensor now; {ANEW}")

    def steps(self, aim: Any, fresh: Any, names: Namespace) -> Iterator[Step]:
        same = aim is self.ref()
        if same:
            submodules = {"": aim, **self._below}
            keys = {key: ref() for key, ref in self._refs.items()}
        else:
            submodules = _submodules(aim)
            keys = {key: x for path, sub in submodules.items() for key, x in _tensors(path, sub)}
        for path, sub in submodules.items():
            attributes = {k: x for k, x in fresh.get(path, {}).items() if k != _EXTRA}
            before = {k: copy.copy(x) if _is_inner(k, x) else x for k, x in vars(sub).items()}
            if same:
                after = {**self._rest[path], **attributes, **self._inner[path]}
            else:
                after = {**before, **{k: x for k, x in attributes.items() if k in before}}
            yield Step(
                self.name,
                functools.partial(_set_attributes, sub, after),
                functools.partial(_set_attributes, sub, before),
            )
        for key, tied in self.first.items():
            if key == tied or not same:
                yield writing(self.name, keys[key], self.tensors[tied])
        for path, sub in submodules.items():
            if _EXTRA in fresh.get(path, {}) and _has_extra_state(sub):
                before = deep_copy(self.name, sub.get_extra_state(), {}, sub)
                yield Step(
                    self.name,
                    functools.partial(sub.set_extra_state, fresh[path][_EXTRA]),
                    functools.partial(sub.set_extra_state, before),
                )
        yield bind(self.name, aim, names)

    def bytes_beside(self) -> int:
        return sum(held.size() for held in self.tensors.values())


_EXTRA = "extra state"  # no attribute's name


def _submodules(module: Any) -> dict[str, Any]:
    """All modules below one, by path, each once; itself comes first, as ``""``."""
    return dict(sys.modules["torch"].nn.Module.named_modules(module))


def _tensors(path: str, module: Any) -> Iterator[tuple[str, Any]]:
    """A module's own parameters and buffers, by their path from the top."""
    dot = f"{path}." if path else ""
    for key in ("_parameters", "_buffers"):
        for name, tensor in vars(module)[key].items():
            if tensor is not None:
                yield dot + name, tensor


@functools.cache
def _own_keys() -> frozenset[str]:
    """The attributes in which torch keeps a module's structure and hooks."""
    held = vars(sys.modules["torch"].nn.Module())
    return frozenset(key for key, x in held.items() if type(x) in (dict, OrderedDict, set))


def _is_inner(key: str, value: Any) -> bool:
    return key in _own_keys() and type(value) in (dict, OrderedDict, set)


def _inner_keys(held: dict[str, Any]) -> list[str]:
    return [key for key, value in held.items() if _is_inner(key, value)]


def _set_attributes(module: Any, values: dict[str, Any]) -> None:
    """Give a module exactly these attributes; handles of hooks go on to hold its dictionaries."""
    held = vars(module)
    for key in [key for key in held if key not in values]:
        del held[key]
    for key, value in values.items():
        if _is_inner(key, value) and type(held.get(key)) is type(value):
            held[key].clear()
            held[key].update(value)
        else:
            held[key] = copy.copy(value) if _is_inner(key, value) else value


def _is_scalar(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_scalar, value))
    return type(value) in (int, float, bool, complex, str, bytes, type(None))


def _leads_out(value: Any, known: dict[int, Any], others: set[int]) -> bool:
    """Whether a module's attribute leads out of the module, so that it is not its to copy."""
    tensors = sys.modules["torch"].Tensor
    for item in reach(value, known):
        if id(item) in others or is_a(item, weakref.ref):
            return True
        if is_a(item, types.MethodType):
            return True
        of_torch = any(kind.__module__.startswith("torch.") for kind in type(item).__mro__)
        if of_torch and not is_a(item, tensors) and not stays(item):
            return True
    return False


def _has_extra_state(module: Any) -> bool:
    base = sys.modules["torch"].nn.Module
    return type(module).get_extra_state is not base.get_extra_state
