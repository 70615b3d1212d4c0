"""Generator objects of the user's: found from the notebook's variables, named as one types them."""

from __future__ import annotations

import functools
import re
import site
import sys
import sysconfig
import types
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Any

from ..errors import StateError
from .protocol import Generator
from .python import PythonGenerator

DEPTH = 6
"""How many steps from a variable an object may lie."""
COUNT = 20_000
"""How many objects one search looks at."""

_LEAVES = (
    str, bytes, bytearray, int, float, complex, bool, type(None), types.CodeType,
    types.BuiltinFunctionType, types.GeneratorType, types.CoroutineType, types.FrameType, range,
)  # fmt: skip
# A torch module alone has a dozen of them, most of them empty.
_CONTAINERS = {list, tuple, dict, set, frozenset, deque, OrderedDict}
# From any of their objects the way leads through the shell to all variables.
_FRONT_END = {"IPython", "ipykernel", "ipywidgets", "traitlets", "zmq"}
# Objects that hold no generator, or a great many numbers: by the module and name of their class.
_LEAF_CLASSES = {
    "numpy.ndarray", "torch.Tensor", "torch.nn.parameter.Parameter", "pandas.DataFrame",
    "pandas.Series", "pandas.core.frame.DataFrame", "pandas.core.series.Series",
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes
    ----------
    generators
        By name, nearest first; an object that several names reach counts once.
    cut
        One sentence for each bound that was hit and each object that cannot be captured; empty if
        everything is covered.
    """

    generators: dict[str, Generator]
    cut: tuple[str, ...]


@dataclass(frozen=True)
class QMCGenerator:
    """The position of a ``scipy.stats.qmc`` engine, and of the generator that scrambles it."""

    name: str
    engine: Any
    scramble: Generator | None

    def get_state(self) -> bytes:
        inner = self.scramble.get_state() if self.scramble else b""
        return b"%d\n" % self.engine.num_generated + inner

    def check_state(self, state: bytes) -> None:
        head, _, inner = state.partition(b"\n")
        if not head.isdigit() or len(head) > 18:
            raise StateError(f"{self.name}: not the state of a qmc engine")
        if self.scramble:
            self.scramble.check_state(inner)

    def set_state(self, state: bytes) -> None:
        head, _, inner = state.partition(b"\n")
        position, stream = int(head), getattr(self.engine, "rng", None)
        if position != self.engine.num_generated:
            self.engine.reset()  # replaces its rng by a copy: the user's own object goes back below
            if position:
                self.engine.fast_forward(position)
            self.engine.rng = stream
        if self.scramble:
            self.scramble.set_state(inner)

    def seed(self, seed: int) -> None:
        self.engine.reset()
        if self.scramble:
            self.scramble.seed(seed)


def adapt(name: str, value: Any) -> Generator | None:
    """A generator named `name` for an object of a kind that is known, else None."""
    if _is(value, Random):
        return PythonGenerator(name, value) if _is_twister(value) else None
    random = sys.modules.get("numpy.random")
    if random is not None:
        from . import numpy as room

        if _is(value, random.Generator):
            return room.BitGeneratorGenerator(name, value.bit_generator)
        if _is(value, random.BitGenerator):
            return room.BitGeneratorGenerator(name, value)
        if _is(value, random.RandomState):
            return room.RandomStateGenerator(name, value)
        if _is(value, random.SeedSequence):
            return room.SeedSequenceGenerator(name, value)
    torch: Any = sys.modules.get("torch")
    # While torch is being imported the name is there and the class is not.
    if torch is not None and _is(value, getattr(torch, "Generator", ())):
        from .torch import TorchGenerator

        stream: Any = value
        return TorchGenerator(name, stream)
    qmc = sys.modules.get("scipy.stats.qmc")
    if qmc is not None and _is(value, qmc.QMCEngine) and not _is_poisson_disk(value):
        stream = getattr(value, "rng", None)
        return QMCGenerator(name, value, adapt(f"{name}.rng", stream))
    return None


def _is(value: object, kinds: Any) -> bool:
    """``isinstance`` that believes the type alone: a proxy or a mock says what it likes."""
    return issubclass(type(value), kinds)


def unreadable(value: Any) -> str | None:
    """Why an object that draws random numbers cannot be captured; None for all others."""
    if _is(value, SystemRandom):
        return "reads the operating system's entropy, which has no state"
    if _is(value, Random) and not _is_twister(value):
        return f"a {type(value).__name__} keeps its state in a way of its own"
    if _is_poisson_disk(value):
        return "a PoissonDisk's sample cannot be put back"
    return None


def _is_twister(value: Random) -> bool:
    """Whether a Random keeps the state that Python's own does."""
    return type(value).getstate is Random.getstate and not _is(value, SystemRandom)


def _is_poisson_disk(value: object) -> bool:
    # What it draws next depends on its pool and grid, and on how it was asked before.
    qmc = sys.modules.get("scipy.stats.qmc")
    return qmc is not None and _is(value, qmc.PoissonDisk)


def _identity(value: Any) -> int:
    """Equal for objects that share one stream."""
    random: Any = sys.modules.get("numpy.random")
    # Asked of NumPy's class alone: a user's property or ``__getattr__`` is the user's code.
    if random is not None and _is(value, getattr(random, "Generator", ())):
        stream: Any = value
        return id(stream.bit_generator)
    return id(value)


def _owned() -> set[int]:
    """Streams that are generators in their own right, wherever the user's objects refer to them."""
    owned = set()
    random = sys.modules.get("numpy.random")
    if random is not None:
        stream = random.rand.__self__
        owned |= {id(stream), id(stream._bit_generator)}
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        owned.add(id(torch.default_generator))
        for kind in ("cuda", "xpu", "mtia"):
            owned.update(map(id, getattr(getattr(torch, kind, None), "default_generators", ())))
    python = sys.modules["random"]
    owned.add(id(python.getstate.__self__))
    return owned


def find(
    namespace: Mapping[str, object],
    names: Iterable[str] | None = None,
    apart: Iterable[object] = (),
    depth: int = DEPTH,
    count: int = COUNT,
) -> Found:
    """Every generator object that the variables `names` (default: all) reach, nearest first.

    Nothing of the user's is called: items of built-in containers and entries of ``__dict__`` and
    ``__slots__`` are looked at, properties are not. Objects in `apart` are left out.
    """
    roots = list(namespace) if names is None else [name for name in names if name in namespace]
    todo = deque((f"user:{name}", namespace[name], 0) for name in roots if not _IPYTHONS(name))
    seen = _owned() | set(map(_identity, apart))
    last = len(seen) + count
    leaves: dict[type, bool] = {}
    found: dict[str, Generator] = {}
    cut: list[str] = []
    deep = False
    while todo:
        name, value, level = todo.popleft()
        identity = _identity(value)
        if identity in seen or _is_leaf(value, leaves):
            continue
        if len(seen) >= last:
            cut.append(f"the search for generators stopped after {count} objects")
            break
        seen.add(identity)
        generator = adapt(name, value)
        if generator is not None:
            found[name if name not in found else f"{name}#{len(found)}"] = generator
            # What a RandomState or an engine holds is part of its state, not one more.
            seen.update(map(_identity, _inner(value)))
            continue
        reason = unreadable(value)
        if reason is not None:
            cut.append(f"{name}: {reason}")
            continue
        children = [
            (path, child)
            for path, child in _children(name, value, namespace, leaves)
            if not _is_leaf(child, leaves) and (type(child) not in _CONTAINERS or child)
        ]
        if level < depth:
            todo.extend((path, child, level + 1) for path, child in children)
        elif children and not deep:
            deep = True
            cut.append(f"the search for generators stopped {depth} steps below {_root(name)}")
    return Found(found, tuple(cut))


# IPython keeps its own names among the user's: its history, its shortcuts, and module attributes.
_IPYTHONS = re.compile(
    r"In|Out|get_ipython|exit|quit|open|_{1,3}|_i{1,3}|_i?\d+|_[dio]h|__\w*__"
).fullmatch


def _root(name: str) -> str:
    bare = name.removeprefix("user:").removeprefix("type(")
    return re.split(r"[.\[{()<]", bare, maxsplit=1)[0]


def _inner(value: object) -> list[object]:
    held = (getattr(value, "_bit_generator", None), getattr(value, "rng", None))
    return [stream for stream in held if stream is not None]


def _is_leaf(value: object, known: dict[type, bool]) -> bool:
    kind = type(value)
    if kind not in known:
        bases = {f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__}
        known[kind] = (
            kind.__module__.partition(".")[0] in _FRONT_END
            or issubclass(kind, _LEAVES)
            or not _LEAF_CLASSES.isdisjoint(bases)
        )
    return known[kind]


def _children(
    name: str, value: Any, namespace: Mapping[str, object], leaves: dict[type, bool]
) -> Iterator[tuple[str, object]]:
    """What lies one step from `value`, with the expression that reaches it."""
    if _is(value, (list, tuple, deque, set, frozenset, dict)):
        items = dict.values(value) if _is(value, dict) else _items(value)
        # A million numbers are passed over by looking at their types alone.
        if all(leaves.get(kind) or issubclass(kind, _LEAVES) for kind in set(map(type, items))):
            return
    if _is(value, (list, tuple, deque)):
        for index, item in enumerate(_items(value)):
            yield f"{name}[{index}]", item
    elif _is(value, dict):
        for key, item in list(dict.items(value)):
            yield f"{name}[{_short(key)}]", item
    elif _is(value, (set, frozenset)):
        for index, item in enumerate(_items(value)):
            yield f"{name}{{{index}}}", item
    elif _is(value, types.FunctionType):
        yield from _of_function(name, value, namespace)
    elif _is(value, types.MethodType):
        yield f"{name}.__self__", value.__self__
        yield f"{name}.__func__", value.__func__
    elif _is(value, types.ModuleType):
        if is_users_module(value):
            for key, item in list(vars(value).items()):
                if not isinstance(item, types.ModuleType):
                    yield f"{name}.{key}", item
        return
    elif _is(value, functools.partial):
        yield f"{name}.func", value.func
        yield f"{name}.args", value.args
        yield f"{name}.keywords", value.keywords
    elif _is(value, type):
        if value.__module__ == "__main__":
            for key, item in list(vars(value).items()):
                yield f"{name}.{key}", item
        return
    for key, item in list(_attributes(value).items()):
        yield f"{name}.{_public(value, key)}", item
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for key in (slots,) if isinstance(slots, str) else tuple(slots):
            place = vars(kind).get(key)
            if isinstance(place, types.MemberDescriptorType):
                try:
                    yield f"{name}.{_public(value, key)}", place.__get__(value)
                except AttributeError:  # a slot that is empty
                    continue
    kind = type(value)
    if kind.__module__ == "__main__":
        yield f"user:type({name.removeprefix('user:')})", kind


def _items(value: Any) -> list[object]:
    """What a container holds, past any ``__iter__`` of the user's."""
    kind = next(k for k in (list, tuple, deque, set, frozenset, dict) if _is(value, k))
    return list(kind.__iter__(value))


def _attributes(value: object) -> dict[str, object]:
    """The object's own ``__dict__``, past any ``__getattr__`` of the user's."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:  # slots alone
        return {}
    return held if isinstance(held, dict) else {}


def _of_function(
    name: str, function: types.FunctionType, namespace: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    for argument, item in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        yield f"{name}({argument})", item
    for argument, item in (function.__kwdefaults__ or {}).items():
        yield f"{name}({argument})", item
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{name}<{variable}>", cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    home = function.__globals__
    module = sys.modules.get(function.__module__ or "")
    if home is namespace:
        head = "user:"
    elif module is not None and vars(module) is home and is_users_module(module):
        head = f"user:{module.__name__}."
    else:
        return
    for variable in _globals_of(code):
        if _IPYTHONS(variable):
            continue  # from ``get_ipython`` the way leads through the whole shell
        if variable in home and not isinstance(home[variable], types.ModuleType):
            yield f"{head}{variable}", home[variable]


@functools.cache
def library_folders() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*(sysconfig.get_path(kind) for kind in kinds), site.getusersitepackages())


def is_users_module(module: types.ModuleType) -> bool:
    """Whether a module is of the user's own: its file lies outside Python and what is installed."""
    file = getattr(module, "__file__", None)
    if module.__name__.partition(".")[0] in ("__main__", "nbseed", *sys.builtin_module_names):
        return False
    if file is None or file.startswith(library_folders()):
        return False
    return not {"site-packages", "dist-packages"}.intersection(file.replace("\\", "/").split("/"))


def _globals_of(code: types.CodeType) -> Iterator[str]:
    """Names that a function's code, and the code inside it, may look up in the notebook."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant)


def _public(value: object, key: str) -> str:
    """``np_random`` for an attribute ``_np_random`` that the class shows under that name."""
    bare = key.lstrip("_")
    if bare and bare != key:
        for base in type(value).__mro__:
            shown = vars(base).get(bare)
            if isinstance(shown, (property, functools.cached_property)):
                return bare
    return key


def _short(key: object) -> str:
    if isinstance(key, (str, bytes, int, float, bool, type(None))):
        text = repr(key)
        return text if len(text) <= 40 else f"{text[:36]}...{text[0]}"
    return f"<{type(key).__name__}>"
