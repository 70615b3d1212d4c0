"""Call back when a module has been imported: seeds and states are due before the user draws."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_callbacks: dict[str, Callable[[str], None]] = {}
_run: set[str] = set()  # modules that have run to their end, though the import goes on for a moment


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a watched module as all others do, and puts a loader in between."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _callbacks:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Runs the module by its own loader, puts that one back, and calls."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        """``find_spec("torch").loader`` answers as the module's own loader."""
        return getattr(self.loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module and its resources see the loader that they would have seen.
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _run.add(module.__name__)
        callback = _callbacks.pop(module.__name__, None)
        if callback is not None:
            callback(module.__name__)


_FINDER = _Finder()


def watch(names: Sequence[str], callback: Callable[[str], None]) -> None:
    """Call `callback(name)` right after each of `names` is imported for the first time."""
    _callbacks.update(dict.fromkeys(names, callback))
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def unwatch() -> None:
    """Forget all names; ``sys.meta_path`` is as it was."""
    _callbacks.clear()
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)


def is_imported(name: str) -> bool:
    """Whether a module is there and has run to its end."""
    module = sys.modules.get(name)
    if module is None:
        return False
    if name not in _run:
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            return False
        _run.add(name)
    return True
