"""Functions, classes and modules: by what they do, not by where they were written."""

from __future__ import annotations

import functools
import sys
import types
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from ..generators.user import _owned, is_users_module
from .attributes import attributes, is_users, mro
from .plain import leaf
from .record import Node, digest

if TYPE_CHECKING:
    from .reader import Handler, Reader

# What Python itself adds to a class: where it was written, and what follows from the rest.
_NOT_OF_A_CLASS = {
    "__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__firstlineno__",
    "__slots__", "__static_attributes__", "__annotations__", "__annotate__", "__annotate_func__",
    "__type_params__", "__annotations_cache__", "__abstractmethods__", "_abc_impl",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__orig_bases__",
    "__parameters__", "__hash__", "__classcell__", "__jit_unused_properties__",
}  # fmt: skip


# Where an object keeps an attribute, of which the object itself tells.
_PLACES = {
    types.MemberDescriptorType, types.GetSetDescriptorType,
    type(vars(namedtuple("_", "x"))["x"]),
}  # fmt: skip


def named(reader: Reader, value: Any) -> Node:
    """What a library calls by a name: the name says all."""
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    own = digest(type(value).__name__, name)
    return Node(own, type(value).__name__, [name])


def code_digest(reader: Reader, code: types.CodeType) -> bytes:
    """Over what code does: no file, no line, no order of a set of constants."""
    constants = []
    for item in code.co_consts:
        if type(item) is types.CodeType:
            constants.append(code_digest(reader, item))
        elif "__firstlineno__" not in code.co_names or item != code.co_firstlineno:
            constants.append(reader.look(item).digest)
    return digest(
        code.co_name, code.co_code, getattr(code, "co_exceptiontable", b""), constants,
        code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
    )  # fmt: skip


def _code(reader: Reader, value: types.CodeType) -> Node:
    return reader.node(value, (), (), code_digest(reader, value))


def function(reader: Reader, value: types.FunctionType) -> Node:
    """A function of the user's by its code, defaults, and the variables it closes over."""
    code = value.__code__
    children = []
    users = _is_home(value.__globals__)
    names = code.co_varnames[: code.co_argcount]
    if users:
        defaults = value.__defaults__ or ()
        given = list(zip(names[len(names) - len(defaults) :], defaults, strict=False))
        given += list((value.__kwdefaults__ or {}).items())
        children += [(f"({name})", reader.look(item)) for name, item in given]
        children += [(f".{name}", reader.look(item)) for name, item in attributes(value)]
    for variable, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
        try:
            held = cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
        # Of a library's wrapper only what it wraps is the user's; its own caches are not.
        if users or (type(held) is types.FunctionType and _is_home(held.__globals__)):
            children.append((f"<{variable}>", reader.look(held)))
    payload = code_digest(reader, code) if users else digest(value.__module__, value.__qualname__)
    return reader.node(value, children, (), payload)


def _is_home(home: dict[str, Any]) -> bool:
    """Whether a function's globals are the notebook's, or those of a module of the user's own."""
    name = home.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return name == "__main__" or module is None or is_users_module(module)


def builtin(reader: Reader, value: Any) -> Node:
    """A function written in C by its name, and by the object it belongs to."""
    home = value.__self__
    if home is None or type(home) is types.ModuleType or id(home) in _owned():
        return named(reader, value)
    own = digest(type(home).__name__, value.__name__)
    return reader.node(value, [(".__self__", reader.look(home))], [value.__name__], own)


def method(reader: Reader, value: Any) -> Node:
    if id(value.__self__) in _owned():
        return named(reader, value.__func__)
    parts = [(".__self__", reader.look(value.__self__)), (".__func__", reader.look(value.__func__))]
    return reader.node(value, parts, [getattr(value.__func__, "__name__", "")])


def klass(reader: Reader, value: Any) -> Node:
    """A class of the user's by what its body holds, and by its bases; any other by its name."""
    name = f"{value.__module__}.{value.__qualname__}"
    if not is_users(value):
        own = digest("class", name)
        return Node(own, "class", [name])
    bases = [reader.look(base).digest for base in mro(value)[1:]]
    enum = sys.modules["enum"]
    held: list[tuple[str, Any]]
    if issubclass(type(value), enum.EnumMeta):
        held = [(key, item._value_) for key, item in value.__dict__["_member_map_"].items()]
    else:
        held = [pair for pair in value.__dict__.items() if pair[0] not in _NOT_OF_A_CLASS]
    children = [(f".{key}", reader.look(item)) for key, item in held if type(item) not in _PLACES]
    pairs = sorted((step, node.digest) for step, node in children)
    own = digest("class", name, bases, pairs)
    return Node(own, "class", [name], children)


def module(reader: Reader, value: types.ModuleType) -> Node:
    """A module of the user's own by its plain globals; any other is not looked into."""
    name = value.__name__
    if not is_users_module(value):
        own = digest("module", name)
        return Node(own, "module", [name], opaque=len(reader.stack) == 1)
    children = [
        (f".{key}", reader.look(item))
        for key, item in list(vars(value).items())
        if not key.startswith("__") and type(item) is not types.ModuleType
    ]
    return reader.node(value, children, [name], ordered=False)


def partial(reader: Reader, value: Any) -> Node:
    parts = {
        name: functools.partial.__dict__[name].__get__(value)
        for name in ("func", "args", "keywords")
    }
    return reader.node(value, [(f".{name}", reader.look(item)) for name, item in parts.items()])


def cached(reader: Reader, value: Any) -> Node:
    """A cache around a function: how many entries it has; how often it was hit says nothing."""
    function = dict(attributes(value)).get("__wrapped__")
    if type(function) is types.FunctionType and not _is_home(function.__globals__):
        return named(reader, value)  # a library's own
    info = value.cache_info()
    inner = reader.look(function)
    entries, largest = leaf(info.currsize), leaf(info.maxsize)
    return reader.node(
        value, [(".cache entries", entries), (".maxsize", largest), (".__wrapped__", inner)]
    )


def _wrapped(*names: str) -> Handler:
    def handler(reader: Reader, value: Any) -> Node:
        held = [(f".{name}", getattr(value, name, None)) for name in names]
        return reader.node(value, [(step, reader.look(item)) for step, item in held])

    return handler


HANDLERS: dict[str, Handler] = {
    "builtins.function": function,
    "builtins.code": _code,
    "builtins.builtin_function_or_method": builtin,
    "builtins.method": method,
    "builtins.type": klass,
    "builtins.module": module,
    "builtins.classmethod": _wrapped("__func__"),
    "builtins.staticmethod": _wrapped("__func__"),
    "builtins.property": _wrapped("fget", "fset", "fdel"),
    "functools.cached_property": _wrapped("func"),
    "functools.partial": partial,
    "functools._lru_cache_wrapper": cached,
    **{
        f"builtins.{name}": named
        for name in ("wrapper_descriptor", "method_descriptor", "classmethod_descriptor")
    },
    "builtins.getset_descriptor": named,
    "builtins.member_descriptor": named,
    "numpy.ufunc": named,
    "numpy._ArrayFunctionDispatcher": named,
    "numpy.core._multiarray_umath._ArrayFunctionDispatcher": named,
}
