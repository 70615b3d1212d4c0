"""CuPy: its streams can be seeded; cuRAND hands out no state, so none can be captured."""

from __future__ import annotations

import sys

from .protocol import Room


def _seed(seed: int) -> None:
    sys.modules["cupy"].random.seed(seed)


def _uncovered() -> list[str]:
    return ["cupy: cuRAND's state cannot be read; call cupy.random.seed(...) in the cell"]


ROOM = Room("cupy", list, _seed, uncovered=_uncovered)
