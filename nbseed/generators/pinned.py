"""Entropy that repeats: ``%seed N --pin-entropy`` feeds NumPy's unseeded generators from a stream.

The stream is a generator like the others, so that it is in every snapshot, and a rewind reaches it.
"""

from __future__ import annotations

import hashlib
import struct

from ..errors import StateError
from .protocol import Room

_STATE = struct.Struct("<8sIQ")  # tag, seed, how many blocks were drawn
_TAG = b"pinned\0\0"


class PinnedEntropy:
    """A counter under a seed; block `n` is the 512-bit BLAKE2b of both as the state has them."""

    name = "numpy.entropy"

    def __init__(self) -> None:
        self._seed = self._drawn = 0

    def get_state(self) -> bytes:
        return _STATE.pack(_TAG, self._seed, self._drawn)

    def check_state(self, state: bytes) -> None:
        if len(state) != _STATE.size or state[:8] != _TAG:
            raise StateError(f"{self.name}: not a state of the pinned entropy")

    def set_state(self, state: bytes) -> None:
        _, self._seed, self._drawn = _STATE.unpack(state)

    def seed(self, seed: int) -> None:
        self._seed, self._drawn = seed, 0

    def randbits(self, bits: int) -> int:
        """An integer of `bits` random bits, as ``secrets.randbits`` gives one."""
        blocks = []
        for _ in range(-(-bits // 512)):
            blocks.append(hashlib.blake2b(self.get_state()).digest())
            self._drawn += 1
        return int.from_bytes(b"".join(blocks), "little") & ((1 << bits) - 1)


_STREAM = PinnedEntropy()
_on = False


def switch(on: bool) -> None:
    """Let NumPy's unseeded generators be fed from the stream, or no longer."""
    global _on
    _on = on


def is_on() -> bool:
    """Whether they are."""
    return _on


def randbits(bits: int) -> int:
    """The next `bits` bits of the stream."""
    return _STREAM.randbits(bits)


def _generators() -> list[PinnedEntropy]:
    return [_STREAM] if _on else []


def _seed(seed: int) -> None:
    if _on:
        _STREAM.seed(seed)


ROOM = Room("numpy", _generators, _seed)
