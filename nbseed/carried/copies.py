"""Deep copies that keep a few things as themselves, and that fail with one line."""

from __future__ import annotations

import copy
import gc
import io
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from random import SystemRandom
from typing import Any, NoReturn

from ..errors import CheckpointError
from ..generators.user import adapt

# The way ends here: deep copies share these, or they are the way to everything else.
_SHARED = (
    type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType,
    types.FrameType, weakref.ref, type(None),
)  # fmt: skip
ENDS = (*_SHARED, str, bytes, int, float, complex, range)
_FRONT_END = {"IPython", "ipykernel", "ipywidgets"}
_IN_MEMORY = (io.BytesIO, io.StringIO)
_CALLING = type(iter(int, 1))


@dataclass(frozen=True)
class Step:
    """One thing to put back, and the way back; ``undo`` is right at any point of ``do``."""

    name: str
    do: Callable[[], None]
    undo: Callable[[], None]


def is_a(value: object, kinds: Any) -> bool:
    """``isinstance`` that believes the type alone: a proxy or a mock says what it likes."""
    return issubclass(type(value), kinds)


def a(value: object) -> str:
    """``a Net``, ``an Adam``; an open file by that name, because its class says nothing."""
    if is_a(value, io.IOBase) and not is_a(value, _IN_MEMORY):
        return "an open file"
    kind = type(value).__name__
    return f"{'an' if kind[:1] in set('AEIOaeio') else 'a'} {kind}"


def refuse(name: str, reason: str, cause: BaseException | None = None) -> NoReturn:
    raise CheckpointError(f"--with {name}: {reason}") from cause


def one_line(error: BaseException) -> str:
    """What an error says, in one line of at most 160 characters."""
    try:
        said = str(error).strip()
    except Exception:  # a user's exception says what it likes
        said = ""
    line = said.splitlines()[0].strip() if said else type(error).__name__
    return line if len(line) <= 160 else f"{line[:157]}..."


def guarded(name: str, what: str, call: Callable[[], Any]) -> Any:
    """What a call of the user's code returns; any exception becomes ``--with NAME: WHAT (WHY)``.

    Whatever it warns of is no concern of the cell that is about to run.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except CheckpointError:
        raise
    except Exception as error:
        refuse(name, f"{what} ({one_line(error)})", error)


def deep_copy(name: str, value: Any, memo: dict[int, Any], shown: Any = None) -> Any:
    """A deep copy with what is in `memo` as it says there.

    Parameters
    ----------
    memo
        As for ``copy.deepcopy``; one for all variables, so that what they share stays shared.
    shown
        The object to name if it fails, by default `value`.
    """
    what = f"{a(value if shown is None else shown)} cannot be copied"
    return guarded(name, what, lambda: copy.deepcopy(value, memo))


def stand_in(memo: dict[int, Any], old: Any, new: Any) -> None:
    """Have copies hold `new` where the original holds `old`."""
    memo[id(old)] = new
    # As deepcopy does it: an object that goes could leave its id to another one.
    memo.setdefault(id(memo), []).append(old)


def reach(value: Any, known: Collection[int]) -> Iterator[Any]:
    """All objects that a deep copy may meet, each once; not past those whose id is in `known`.

    The collector is asked, not the objects: no property, ``__iter__`` or ``__getattr__`` runs.
    """
    arrays = _class("numpy", "ndarray")
    todo, seen = [value], set()
    while todo:
        item = todo.pop()
        if id(item) in seen or id(item) in known:
            continue
        seen.add(id(item))
        yield item
        if id(item) in known or is_a(item, ENDS):
            continue
        if is_a(item, arrays):
            if arrays.dtype.__get__(item).hasobject and type(item) is arrays:
                todo += arrays.tolist(arrays.ravel(item))
            continue
        todo += gc.get_referents(item)


class Keeper:
    """Finds, in what is to be copied, the objects that stay themselves in every copy.

    Random generators do, because the checkpoint restores them in place under their names, and two
    objects that draw from one stream must go on to; so do Python modules, widgets, and standard
    output.
    """

    def __init__(self, memo: dict[int, Any]) -> None:
        self.memo = memo
        self.streams: list[tuple[str, Any]] = []
        self.graphs: list[tuple[str, Any, int]] = []
        self._stays: dict[type, bool] = {}
        for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            stand_in(memo, stream, stream)

    def look(self, name: str, value: Any) -> None:
        """Put all that stays itself into the memo; CheckpointError for what copies would share."""
        tensors = _class("torch", "Tensor")
        loaders = _class("torch.utils.data.dataloader", "DataLoader")
        iterators = _class("torch.utils.data.dataloader", "_BaseDataLoaderIter")
        for item in reach(value, self.memo):
            kind = type(item)
            if kind is _CALLING:
                # A copy calls the same function, and so goes on where this one stops.
                _refuse_within(name, value, item, "it would share what it calls")
            if is_a(item, loaders) and vars(item).get("_iterator") is not None:
                _refuse_within(name, value, item, "its persistent workers are alive")
            if is_a(item, iterators):
                _refuse_within(name, value, item, "a live iterator; make it in the cell")
            if kind not in self._stays:
                self._stays[kind] = stays(item)
            if self._stays[kind]:
                stand_in(self.memo, item, item)
                if adapt(name, item) is not None:
                    self.streams.append((name, item))
            elif is_a(item, tensors) and not item.is_leaf:
                # Copying it would need its graph. It is kept, as long as nobody writes into it.
                stand_in(self.memo, item, item)
                self.graphs.append((name, item, item._version))


def _refuse_within(name: str, value: Any, item: Any, reason: str) -> NoReturn:
    inside = "" if item is value else f": it holds {a(item)}"
    refuse(name, f"{a(value)} cannot be copied{inside} ({reason})")


def _class(module: str, name: str) -> Any:
    """A class of a library that is imported; else nothing that an object could be."""
    return getattr(sys.modules.get(module), name, ())


def stays(value: object) -> bool:
    """Whether every copy holds the object itself; the same for all objects of a type."""
    if is_a(value, (types.ModuleType, SystemRandom)):
        return True
    if any(kind.__module__.partition(".")[0] in _FRONT_END for kind in type(value).__mro__):
        return True
    # A qmc engine is copied; the generator that it draws from is not.
    return adapt("", value) is not None and not hasattr(type(value), "fast_forward")


def size_of(value: Any, known: set[int]) -> int:
    """Bytes that objects take, each counted once; those in `known` are not, and join it.

    Exact for tensors, arrays and buffers; others by what Python says of the object alone.
    """
    arrays, tensors = _class("numpy", "ndarray"), _class("torch", "Tensor")
    total, counted = 0, set[int]()
    for item in reach(value, frozenset(known)):
        if id(item) in known:
            continue
        known.add(id(item))
        if is_a(item, arrays):
            # A data frame's block is a view of an array that nothing else leads to.
            while is_a(arrays.base.__get__(item), arrays):
                item = arrays.base.__get__(item)
            total += arrays.nbytes.__get__(item) if id(item) not in counted else 0
            counted.add(id(item))
        elif is_a(item, tensors):
            total += bytes_of(item)
        elif not is_a(item, _SHARED):
            builtin = type(item).__module__ in ("builtins", "collections")
            total += sys.getsizeof(item) if builtin else object.__sizeof__(item)
    return total


def bytes_of(tensor: Any) -> int:
    """The bytes of a tensor's elements."""
    try:
        return int(tensor.numel() * tensor.element_size())
    except (RuntimeError, NotImplementedError):  # some layouts have no size
        return 0


def shown(size: int) -> str:
    """``640 bytes``, ``1.2 MB``, ``3.4 GB``: powers of 1000, as disks are sold."""
    if size < 1000:
        return f"{size} byte{'' if size == 1 else 's'}"
    value, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"
