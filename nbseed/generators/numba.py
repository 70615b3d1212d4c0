"""numba: the two streams that compiled functions draw from, apart from NumPy's and Python's.

They belong to the calling thread; the streams of numba's own worker threads (``parallel=True``)
cannot be reached. Layout: ``rnd_state_t`` in numba's ``_random.c``.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from dataclasses import dataclass
from typing import Any

from ..errors import StateError
from .protocol import Room

_LAYOUT = struct.Struct("<I2496sIdI")


class _State(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_int),
        ("words", ctypes.c_uint32 * 624),
        ("has_gauss", ctypes.c_int),
        ("gauss", ctypes.c_double),
        ("is_initialized", ctypes.c_int),
    )


def _library() -> Any:
    return sys.modules["numba._helperlib"]


@dataclass(frozen=True)
class NumbaGenerator:
    """One of numba's Mersenne Twisters, of the thread that asks."""

    name: str
    pointer: str  # the call that tells its address

    def _state(self) -> _State:
        return _State.from_address(getattr(_library(), self.pointer)())

    def get_state(self) -> bytes:
        state = self._state()
        return _LAYOUT.pack(
            state.index, bytes(state.words), state.has_gauss, state.gauss, state.is_initialized
        )

    def check_state(self, state: bytes) -> None:
        if len(state) != _LAYOUT.size:
            raise StateError(f"{self.name}: {len(state)} bytes, expected {_LAYOUT.size}")
        index, _, has_gauss, _, initialized = _LAYOUT.unpack(state)
        if index > 624 or has_gauss > 1 or initialized > 1:
            raise StateError(f"{self.name}: not a state of numba's generator")

    def set_state(self, state: bytes) -> None:
        place = self._state()
        index, words, place.has_gauss, place.gauss, place.is_initialized = _LAYOUT.unpack(state)
        ctypes.memmove(ctypes.addressof(place.words), words, len(words))
        place.index = index

    def seed(self, seed: int) -> None:
        """As ``numpy.random.seed(seed)`` or ``random.seed(seed)`` inside a compiled function."""
        # Knuth's initialisation, the one that those compile to (numba_rnd_init).
        word, words = seed, []
        for position in range(624):
            words.append(word)
            word = (1812433253 * (word ^ (word >> 30)) + position + 1) & 0xFFFFFFFF
        self.set_state(_LAYOUT.pack(624, struct.pack("<624I", *words), 0, 0.0, 1))


def _generators() -> list[NumbaGenerator]:
    return [
        NumbaGenerator("numba.numpy", "rnd_get_np_state_ptr"),
        NumbaGenerator("numba.python", "rnd_get_py_state_ptr"),
    ]


def _seed(seed: int) -> None:
    for generator in _generators():
        generator.seed(seed)


ROOM = Room("numba", _generators, _seed)
