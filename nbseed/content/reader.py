"""Reads variables: walks what they hold, within a time, and remembers what it has seen."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from . import arrays, code, frames, learning, live, plain, values
from .attributes import has_no_state, instance, mro, with_attributes
from .record import PARTS, Content, Contents, Node, digest

DEPTH = 30
"""How many steps below a variable are looked at."""
COUNT = 20_000
"""How many objects of one variable are looked at; numbers and texts do not count."""
OPAQUE = 20
"""How many of the things that were not looked into are named."""
BYTES_A_SECOND = 2e9
"""No processor hashes faster: what is larger than this allows is not even begun."""

Handler = Callable[["Reader", Any], Node]

# Rooms of the front end, drawings, bars, loggers, and what lives outside this thread: their objects
# change by being looked at or by themselves, and no result comes from them.
_NOT_LOOKED_INTO = {
    "IPython", "ipykernel", "ipywidgets", "traitlets", "zmq", "comm", "matplotlib",
    "matplotlib_inline", "tqdm", "logging", "loguru", "rich", "plotly", "bokeh", "altair", "wandb",
    "mlflow", "nbseed", "asyncio", "threading", "concurrent", "multiprocessing", "socket", "ssl",
    "subprocess", "mmap", "_thread", "weakref", "_weakref", "contextvars", "_contextvars", "ctypes",
    "_ctypes", "selectors", "tensorboard", "tensorboardX", "sqlite3", "requests", "urllib3", "http",
    "joblib", "_io", "signal",
}  # fmt: skip
_HANDLERS: dict[str, Handler] = {
    **plain.HANDLERS,
    **values.HANDLERS,
    **code.HANDLERS,
    **arrays.HANDLERS,
    **frames.HANDLERS,
    **learning.HANDLERS,
    **live.HANDLERS,
}
# A user's class below one of these has attributes of its own besides.
_OPEN = {"builtins", "collections", "numpy", "torch", "io", "_io", "datetime", "random", "array"}


class OutOfBudgetError(Exception):
    """A bound was hit; its text says which."""


class Reader:
    """One walk over several variables; arrays that several of them hold are hashed once."""

    def __init__(self, deadline: float, depth: int = DEPTH, count: int = COUNT) -> None:
        self.deadline = deadline
        self.depth, self.count = depth, count
        self.buffers: dict[int, tuple[object, Node]] = {}
        self._handlers: dict[type, Handler] = {}
        self._begin()

    def _begin(self) -> None:
        self.stack: dict[int, int] = {}
        self._seen: dict[int, tuple[object, Node]] = {}
        self._log: list[int] = []
        self._looked = 0

    def content(self, value: object) -> Content:
        """What `value` holds now; raises `OutOfBudgetError`."""
        self._begin()
        root = self.look(value)
        parts, opaque = _parts(root)
        return Content(type(value).__name__, root.digest.hex(), parts, root.bag[:32], opaque)

    def check_time(self) -> None:
        if perf_counter() > self.deadline:
            raise OutOfBudgetError("the time ran out")

    def look(self, value: Any) -> Node:
        """The node of one object, and of all below it."""
        kind = type(value)
        if kind in plain.LEAVES:
            return plain.leaf(value)
        key = id(value)
        known = self._seen.get(key) or self.buffers.get(key)
        if known is not None:
            return known[1]
        if key in self.stack:
            # By the distance, so that it is the same wherever the walk began.
            up = len(self.stack) - self.stack[key]
            own = digest("above", up)
            return Node(own, kind.__name__, ["an object above"])
        if len(self.stack) >= self.depth:
            return self.opaque(value, f"over {self.depth} steps away")
        self._looked += 1
        if self._looked > self.count:
            raise OutOfBudgetError(f"it holds over {self.count} objects")
        self.check_time()
        self.stack[key] = len(self.stack)
        try:
            node = self._handler(kind)(self, value)
        finally:
            del self.stack[key]
        self._seen[key] = value, node  # and lives on, so that no other gets its address
        self._log.append(key)
        return node

    def apart(self, values: Iterable[object]) -> list[Node]:
        """Nodes that do not depend on the order in which `values` come."""
        nodes = []
        mark = len(self._log)
        for value in values:
            nodes.append(self.look(value))
            for key in self._log[mark:]:
                self._seen.pop(key, None)
            del self._log[mark:]
        return nodes

    def node(
        self,
        value: object,
        children: Sequence[tuple[str, Node]],
        fields: Sequence[str] = (),
        payload: object = b"",
        bag: str = "",
        ordered: bool = True,
    ) -> Node:
        """The node of `value`: its type, its `fields` and `payload`, and all `children`."""
        kind = type(value)
        steps = [step for step, _ in children]
        digests = [child.digest for _, child in children]
        if not ordered:
            pairs = sorted(zip(steps, digests, strict=True))
            steps, digests = [step for step, _ in pairs], [part for _, part in pairs]
        name = f"{kind.__module__}.{kind.__qualname__}"
        own = digest(name, *fields, payload, steps, b"".join(digests))
        return Node(own, kind.__name__, fields, children, bag)

    def opaque(self, value: object, *fields: str) -> Node:
        """The node of what is not looked into: its type alone."""
        kind = type(value)
        own = digest(f"{kind.__module__}.{kind.__qualname__}", *fields)
        return Node(own, kind.__name__, fields, opaque=True)

    def _handler(self, kind: type) -> Handler:
        handler = self._handlers.get(kind)
        if handler is None:
            handler = self._handlers[kind] = _choose(kind)
        return handler


def _choose(kind: type) -> Handler:
    bases = mro(kind)
    for base in bases:
        handler = _HANDLERS.get(f"{base.__module__}.{base.__qualname__}")
        if handler is not None:
            if base is kind or base.__module__ not in _OPEN:
                return handler
            return with_attributes(handler)
        if base.__module__.partition(".")[0] in _NOT_LOOKED_INTO:
            return Reader.opaque
    if kind.__module__.startswith("sklearn.") and has_no_state(kind):
        return learning.in_c
    return instance


def _parts(root: Node) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts by path, nearest first, and the paths that were not looked into."""
    parts: dict[str, str] = {}
    opaque: list[str] = []
    todo = deque([("", root)])
    while todo and len(parts) < PARTS:
        path, node = todo.popleft()
        parts.setdefault(path, node.text)
        if node.opaque and len(opaque) < OPAQUE:
            opaque.append(path)
        room = PARTS - len(parts) - len(todo)
        todo.extend((path + step, child) for step, child in node.children[: max(room, 0)])
    return parts, tuple(opaque)


def read(namespace: Mapping[str, object], names: Iterable[str], seconds: float = 0.05) -> Contents:
    """What the variables `names` hold now, small ones first, in at most about `seconds`.

    Names that are no variables are passed over. Whatever goes wrong inside one variable leaves
    that one out, with the reason.
    """
    start = perf_counter()
    reader = Reader(start + seconds)
    wanted = [name for name in dict.fromkeys(names) if name in namespace]
    if seconds <= 0:
        return Contents({}, dict.fromkeys(wanted, "no time is given for it"))
    sizes = {name: arrays.size(namespace[name]) for name in wanted}
    found: dict[str, Content] = {}
    left_out: dict[str, str] = {}
    for name in sorted(wanted, key=sizes.__getitem__):
        if sizes[name] > seconds * BYTES_A_SECOND:
            left_out[name] = f"{_bytes(sizes[name])}, over the budget"
            continue
        try:
            found[name] = reader.content(namespace[name])
        except OutOfBudgetError as bound:
            left_out[name] = str(bound)
        except Exception as error:
            left_out[name] = f"{type(error).__name__} while it was read"
    return Contents(
        {name: found[name] for name in wanted if name in found},
        {name: left_out[name] for name in wanted if name in left_out},
    )


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return re.sub(r"\.0$", "", f"{size:.1f}") + f" {unit}"
        size /= 1000
    return f"{size:.1f} GB"
