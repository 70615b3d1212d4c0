"""Variables that belong to a checkpoint: kept when it is taken, put back before each later run.

What others hold goes back in place: modules, optimizers, tensors, arrays, lists and dicts. Anything
else is copied, and a fresh copy is bound to its name each time. Random generators are not copied:
the checkpoint restores them, after ``Plan.apply``, and undoes it if that fails.
"""

from __future__ import annotations

import difflib
import sys
import types
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from random import SystemRandom
from typing import Any

from ..errors import CheckpointError
from ..generators.user import adapt
from .copies import (
    ENDS,
    Keeper,
    Step,
    a,
    deep_copy,
    is_a,
    one_line,
    reach,
    refuse,
    shown,
    size_of,
    stand_in,
    stays,
)
from .modules import Module, Tensor
from .parts import (
    MISSING,
    Array,
    Container,
    Part,
    Stateful,
    Stream,
    is_plain_array,
    is_plain_tensor,
    is_stateful,
)

__all__ = ["Carried", "Plan", "capture", "check", "shown"]

SHOWN = 5
"""How many variables an error lists."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Variables as they were when a checkpoint was taken.

    Attributes
    ----------
    names
        The variables, in the order given, each once.
    size
        Bytes that it takes: exact for tensors, arrays and buffers, others estimated.
    notes
        What is not as one might think, a sentence each: attributes of modules that are not copied,
        objects that a copy no longer shares with a variable that is not carried.
    """

    names: tuple[str, ...]
    size: int
    notes: tuple[str, ...]
    _parts: tuple[Part, ...]
    _streams: tuple[tuple[str, Any, bytes], ...]  # generators inside copies, and their states
    _graphs: tuple[tuple[str, Any, int], ...]  # tensors of a graph, and how often written into


class Plan:
    """All that is to be put back, checked: nothing in it is expected to fail."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._done: list[Step] = []

    def apply(self) -> None:
        """Put all back, in place or bound to their names; if one fails, none is changed.

        What loads may draw random numbers: the generators are restored after it.

        Raises
        ------
        CheckpointError
            If something fails nevertheless.
        """
        for step in self._steps:
            self._done.append(step)
            try:
                step.do()
            except BaseException as error:
                self._back()
                if isinstance(error, CheckpointError) or not isinstance(error, Exception):
                    raise
                refuse(step.name, f"it cannot be put back ({one_line(error)})", error)

    def undo(self) -> None:
        """Go back to what was before ``apply``.

        Raises
        ------
        CheckpointError
            If something could not go back; the others have.
        """
        error = self._back()
        if error is not None:
            raise CheckpointError(one_line(error)) from error

    def _back(self) -> Exception | None:
        first = None
        while self._done:
            try:
                self._done.pop().undo()
            except Exception as error:
                first = first or error
        return first


def capture(namespace: Mapping[str, Any], names: Sequence[str]) -> Carried:
    """What the variables hold now; later changes do not reach it.

    Raises
    ------
    CheckpointError
        If a variable does not exist or cannot be copied; one line that names it.
    """
    names = tuple(dict.fromkeys(names))
    for name in names:
        if name not in namespace:
            refuse(name, f"there is no variable of that name{_there_are(name, namespace)}")
    keeper = Keeper({})
    parts = [_part(name, namespace[name]) for name in names]
    for part in parts:
        for item in part.originals():
            stand_in(keeper.memo, item, item)
    for part in parts:
        keeper.look(part.name, part.content)
    others = _others(namespace, names)
    notes = [note for part in parts for note in _unshared(part, keeper.memo, others)]
    for part in parts:
        part.content = deep_copy(part.name, part.content, keeper.memo, namespace[part.name])
    for part in parts:
        if isinstance(part, Module):
            part.take_attributes(keeper, set(others))
            if part.left:
                notes.append(f"--with {part.name}: not put back: {', '.join(part.left)}")
    streams = [(name, x, adapt(name, x)) for name, x in keeper.streams]
    known = {key for key, item in keeper.memo.items() if id(item) == key}
    size = sum(part.bytes_beside() + size_of(part.content, known) for part in parts)
    return Carried(
        names,
        size,
        tuple(notes),
        tuple(parts),
        tuple((name, x, stream.get_state()) for name, x, stream in streams if stream is not None),
        tuple(keeper.graphs),
    )


def check(carried: Carried, namespace: MutableMapping[str, Any]) -> Plan:
    """A plan to put all back into the namespace; all that can fail is tried, nothing changes.

    Raises
    ------
    CheckpointError
        If a variable has become something that its content does not fit.
    """
    for name, tensor, version in carried._graphs:
        if tensor._version != version:
            refuse(name, f"{a(tensor)} of a graph was written into; detach it above the cell")
    keeper = Keeper({})
    aims = [part.aim(namespace.get(part.name, MISSING), keeper.memo) for part in carried._parts]
    for part in carried._parts:
        keeper.look(part.name, part.content)
    steps: list[Step] = []
    for part, aim in zip(carried._parts, aims, strict=True):
        fresh = deep_copy(part.name, part.content, keeper.memo, aim)
        steps += part.steps(aim, fresh, namespace)
    for name, item, state in carried._streams:
        stream = adapt(name, item)
        if stream is not None:
            steps.append(_rewinding(name, stream, state))
    return Plan(steps)


def _rewinding(name: str, stream: Any, state: bytes) -> Step:
    before = stream.get_state()
    return Step(name, lambda: stream.set_state(state), lambda: stream.set_state(before))


def _part(name: str, value: Any) -> Part:
    """How a variable of this kind is kept."""
    if is_a(value, types.ModuleType):
        refuse(name, "a module cannot be copied; import it in the cell")
    if stays(value) and (adapt(name, value) is not None or is_a(value, SystemRandom)):
        return Stream(name, value)
    if stays(value):
        refuse(name, f"{a(value)} cannot be copied (it belongs to the front end)")
    torch: Any = sys.modules.get("torch")
    nn, jit = getattr(torch, "nn", None), getattr(torch, "jit", None)
    if nn and jit and is_a(value, nn.Module) and not is_a(value, jit.ScriptModule):
        return Module(name, value)
    if type(value) in Container.FILL:
        return Container(name, value)
    if is_plain_array(value):
        return Array(name, value)
    if is_plain_tensor(value):
        return Tensor(name, value)
    if is_stateful(value):
        return Stateful(name, value)
    return Part(name, value)


def _others(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[int, str]:
    """By id the variables that are not carried, and that one could change; not IPython's own."""
    carried = {id(namespace[name]) for name in names}
    return {
        id(value): name
        for name, value in namespace.items()
        if name not in names and _is_users(name, value) and id(value) not in carried
    }


def _unshared(part: Part, memo: Mapping[int, Any], others: Mapping[int, str]) -> list[str]:
    """A note for a copy that will no longer hold what a variable holds."""
    found = [others[id(x)] for x in reach(part.content, memo) if id(x) in others]
    if not found:
        return []
    some = ", ".join(sorted(found)[:SHOWN])
    return [f"--with {part.name}: it holds {some}, copied with it; name it too to share it"]


def _is_users(name: str, value: Any) -> bool:
    if name.startswith("_") or name in ("In", "Out", "exit", "quit", "get_ipython", "open"):
        return False
    return not is_a(value, ENDS) and type(value).__module__ != "torch"  # a dtype, a device


def _there_are(name: str, namespace: Mapping[str, Any]) -> str:
    """``; there are: model, optimizer, ...``, those that look alike first."""
    known = [key for key, value in namespace.items() if _is_users(key, value)]
    known += [key for key in namespace if key not in known and not key.startswith("_")]
    alike = difflib.get_close_matches(name, known, SHOWN)
    names = list(dict.fromkeys([*alike, *known]))
    more = ", ..." if len(names) > SHOWN else ""
    return f"; there are: {', '.join(names[:SHOWN])}{more}" if names else ""
