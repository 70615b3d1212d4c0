"""What a cell has to do with: the variables that it and the notebook's functions look up."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import itertools
import sys
import tokenize
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .generators.user import is_users_module

MOST = 500
"""Variables that one cell is followed to."""
_LONGEST = 20_000  # characters of a function's text
_UNREADABLE = (OSError, TypeError, IndexError, SyntaxError, tokenize.TokenError)


def reached(namespace: Mapping[str, Any], names: Iterable[str]) -> tuple[str, ...]:
    """Some variables, and those that functions and classes of the notebook among them look up.

    Functions are followed by their code, through other functions; a class, or an object of a class
    of the notebook, by its methods. Modules and what libraries define are left out: a cell names
    them and does not change them.
    """
    todo, found = deque(names), dict[str, None]()
    while todo and len(found) < MOST:
        name = todo.popleft()
        if name in found or name not in namespace:
            continue
        value = namespace[name]
        if _is_librarys(value, namespace):
            continue
        found[name] = None
        todo.extend(n for code in _codes(value, namespace) for n in _looked_up(code))
    return tuple(found)


def own_modules(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, types.ModuleType]:
    """The user's own modules that some variables come from or lead to, by their full names.

    ``from mine import step`` brings in a function; what its module keeps decides what it does.
    """
    todo: deque[Any] = deque(namespace[name] for name in names if name in namespace)
    # What a library defines is passed over by `reached`, and may come from a module of the user's.
    found: dict[str, types.ModuleType] = {}
    seen: set[int] = set()
    while todo and len(seen) < MOST:
        value = todo.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        module = value if type(value) is types.ModuleType else _home(value)
        if module is None or module.__name__ in found or not is_users_module(module):
            continue
        if not any(value is module for value in map(namespace.get, names)):
            found[module.__name__] = module
        todo.extend(
            item
            for item in list(vars(module).values())
            if issubclass(type(item), (types.ModuleType, types.FunctionType, type))
        )
    return found


def _home(value: Any) -> types.ModuleType | None:
    """The module where a function or class, or the class of an object, was defined."""
    is_function = issubclass(type(value), types.FunctionType)
    name = value.__module__ if is_function else _class_of(value).__module__
    module = sys.modules.get(name) if isinstance(name, str) and name != "__main__" else None
    return module if type(module) is types.ModuleType else None


def sources(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """The text of each function and class of the notebook among some variables, if it is known."""
    found = {}
    for name in names:
        value = namespace.get(name)
        if any(True for _ in _codes(value, namespace)):
            text = _source(value if _is_routine(value) else _class_of(value))
            if text:
                found[name] = text[:_LONGEST]
    return found


def _is_librarys(value: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a value is a function, class or module that the notebook has not made."""
    kind = type(value)
    if issubclass(kind, types.ModuleType):
        return not is_users_module(value)
    if issubclass(kind, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return True
    if issubclass(kind, types.FunctionType):
        if _is_own(value):
            return False
        return value.__globals__ is not namespace and not _has_closure(value)
    if issubclass(kind, type):
        return bool(value.__module__ != "__main__") and not _is_own(value)
    return kind.__module__ == "typing" or value is builtins


def _is_own(value: Any) -> bool:
    """Whether a function or class was defined in a module of the user's own."""
    module = _home(value)
    return module is not None and is_users_module(module)


def _has_closure(value: types.FunctionType) -> bool:
    return any(
        type(cell.cell_contents) is types.FunctionType
        for cell in value.__closure__ or ()
        if _is_filled(cell)
    )


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _class_of(value: Any) -> Any:
    return value if issubclass(type(value), type) else type(value)


def _codes(value: Any, namespace: Mapping[str, Any]) -> Iterator[types.CodeType]:
    """The code of a notebook's function, of its decorators' inner ones, or of a class's methods."""
    for function in _functions(value, 3):
        if function.__globals__ is namespace:
            yield function.__code__


def _functions(value: Any, depth: int) -> Iterator[types.FunctionType]:
    if depth == 0:
        return
    kind = type(value)
    if issubclass(kind, types.FunctionType):
        yield value
        for cell in value.__closure__ or ():
            if _is_filled(cell):
                yield from _functions(cell.cell_contents, depth - 1)
    elif issubclass(kind, types.MethodType):
        yield from _functions(value.__func__, depth)
        yield from _functions(value.__self__, depth - 1)
    elif issubclass(kind, functools.partial):
        yield from _functions(value.func, depth - 1)
    elif kind is functools._lru_cache_wrapper:
        yield from _functions(value.__wrapped__, depth - 1)
    elif kind in (dict, list, tuple):  # a table of functions
        for item in itertools.islice(value.values() if kind is dict else value, 50):
            if issubclass(type(item), (types.FunctionType, functools.partial)):
                yield from _functions(item, depth - 1)
    else:
        owner = _class_of(value)
        if owner.__module__ == "__main__":
            for held in list(vars(owner).values()):
                if issubclass(type(held), (staticmethod, classmethod)):
                    held = held.__func__
                if issubclass(type(held), property):
                    held = held.fget
                if issubclass(type(held), types.FunctionType):
                    yield held


def _looked_up(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _looked_up(constant)


def _is_routine(value: Any) -> bool:
    kind = type(value)
    return kind is functools._lru_cache_wrapper or issubclass(
        kind, (types.FunctionType, types.MethodType)
    )


def _source(value: Any) -> str:
    if not _is_routine(value):
        return _source_of_class(value)
    with contextlib.suppress(ValueError):  # it wraps itself
        value = inspect.unwrap(value)
    code = getattr(value, "__code__", None)
    return _source_of(code) if code is not None else _source_of_class(value)


@functools.lru_cache(maxsize=500)
def _source_of(code: types.CodeType) -> str:
    try:
        return inspect.getsource(code)
    except _UNREADABLE:
        return ""


@functools.lru_cache(maxsize=200)
def _source_of_class(value: type) -> str:
    try:
        # IPython runs cells in a module without a file, so the class is found by its methods.
        codes = [h.__code__ for h in vars(value).values() if type(h) is types.FunctionType]
        return "".join(inspect.getsource(code) for code in codes)
    except _UNREADABLE:
        return ""
