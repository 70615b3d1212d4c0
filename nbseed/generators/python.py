"""Python's own generator: the module-level stream and ``random.Random`` objects."""

from __future__ import annotations

import functools
import random
import struct
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import StateError
from .protocol import Room

# 624 words of MT19937 and the position, then whether a Gaussian is kept, and which.
_WORDS = struct.Struct("<625I")
_GAUSS = struct.Struct("<Bd")
_SIZE = _WORDS.size + _GAUSS.size


class _Stream(Protocol):
    """What the module ``random`` and a ``random.Random`` have in common."""

    def getstate(self) -> tuple[object, ...]: ...
    def setstate(self, state: tuple[object, ...], /) -> None: ...
    def seed(self, a: int, /) -> None: ...


@functools.lru_cache(maxsize=4)  # a cell is rewound to the same state over and over
def _unpacked(state: bytes) -> tuple[object, ...]:
    kept, gauss = _GAUSS.unpack_from(state, _WORDS.size)
    return 3, _WORDS.unpack_from(state), gauss if kept else None


@dataclass(frozen=True)
class PythonGenerator:
    """A Mersenne Twister of Python's ``random``, with its kept Gaussian (``gauss_next``)."""

    name: str
    stream: _Stream

    def get_state(self) -> bytes:
        state: Any = self.stream.getstate()
        _, words, gauss = state
        return _WORDS.pack(*words) + _GAUSS.pack(gauss is not None, gauss or 0.0)

    def check_state(self, state: bytes) -> None:
        if len(state) != _SIZE:
            raise StateError(f"{self.name}: {len(state)} bytes, expected {_SIZE}")
        position, kept = struct.unpack_from("<IB", state, 4 * 624)
        if position > 624 or kept > 1:
            raise StateError(f"{self.name}: not a state of Python's random")

    def set_state(self, state: bytes) -> None:
        self.stream.setstate(_unpacked(state))

    def seed(self, seed: int) -> None:
        self.stream.seed(seed)


_GLOBAL = PythonGenerator("python", random)


def _generators() -> list[PythonGenerator]:
    return [_GLOBAL]


ROOM = Room("random", _generators, random.seed)
