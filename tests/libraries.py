"""Libraries that one test wants and the next must not meet: they show in every report."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_kept: dict[str, ModuleType] = {}


@contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """Have a library imported inside the block, and out of sight after it."""
    was_there = name in sys.modules
    if not was_there and name in _kept:
        sys.modules[name] = _kept[name]
    module = _kept[name] = importlib.import_module(name)
    try:
        yield module
    finally:
        if not was_there:
            del sys.modules[name]
