"""How many draws lie between two states of a generator, from the states' bytes alone."""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BOUND = 1_000_000
"""Words of a Mersenne Twister that are counted unless told otherwise: some 10 ms."""
_FAR = 2**63  # a distance in the cycle of 2**128 states beyond which nobody has drawn
_CHUNK = 624 * 256  # words that are generated at once, at most


@dataclass(frozen=True)
class Draws:
    """How far a generator went from one state to another.

    Attributes
    ----------
    kind
        "still": the states are equal. "drawn": `count` draws lie between them. "back": the second
        lies before the first. "re-seeded": no draws lead from one to the other. "beyond": more
        draws than `count`, or re-seeded, which cannot be told apart. "moved": a state that cannot
        be counted.
    count
        In units.
    unit
        "word" is a 32-bit word of MT19937; "64-bit word" of NumPy's other bit generators, of which
        two 32-bit draws share one; "offset" CUDA's Philox offset; "point" of a qmc engine; "child"
        of a SeedSequence; "block" of the pinned entropy.
    """

    kind: str
    count: int = 0
    unit: str = "word"

    def __str__(self) -> str:
        """``640 words``, ``re-seeded``, ``more than 1,000,000 words``."""
        match self.kind:
            case "still":
                return "nothing"
            case "drawn" if self.count == 0:
                return "a kept Gaussian"
            case "drawn":
                return self._counted()
            case "back":
                return f"back {self._counted()}"
            case "beyond":
                return f"more than {self._counted()}"
        return self.kind

    def _counted(self) -> str:
        plural = "children" if self.unit == "child" else f"{self.unit}s"
        return f"{self.count:,} {self.unit if self.count == 1 else plural}"


_MOVED = Draws("moved")
_RESEEDED = Draws("re-seeded")


def count(name: str, before: bytes, after: bytes, bound: int = BOUND) -> Draws:
    """How far generator `name` went from state `before` to state `after`.

    Parameters
    ----------
    bound
        How many words of a Mersenne Twister to step at most; its distances cannot be computed, only
        walked. All other kinds are exact and take no time.
    """
    if before == after:
        return Draws("still")
    try:
        readers: tuple[Callable[[str, bytes], Any], ...] = (
            _read_twister,
            _read_json,
            _read_device,
            _read_counter,
        )
        for read in readers:
            first, second = read(name, before), read(name, after)
            if first is not None and second is not None:
                found: Draws = first.to(second, bound)
                return found
            if first is not None or second is not None:
                return _RESEEDED  # another kind of state: another generator
    except (ValueError, KeyError, TypeError, IndexError, struct.error, RecursionError):
        pass  # bytes that are no state
    return _MOVED


# -- MT19937: Python's, NumPy's, numba's, and torch's on the CPU -----------------------------------


@dataclass(frozen=True)
class _Twister:
    """624 words as 4 little-endian bytes each, how many of them are used, and torch's seed."""

    key: bytes
    position: int
    seed: int | None = None

    def to(self, other: _Twister, bound: int) -> Draws:
        words = self._steps_to(other, bound)
        if words is not None:
            return Draws("drawn", words) if words >= 0 else Draws("back", -words)
        if self.seed != other.seed:
            return _RESEEDED
        back = other._steps_to(self, min(bound, 10_000))
        return Draws("back", back) if back is not None else Draws("beyond", bound)

    def _steps_to(self, other: _Twister, bound: int) -> int | None:
        """Words from here to there, negative within one block; None if not within `bound`."""
        if self.key == other.key:
            return other.position - self.position
        wanted = b"".join(
            _tempered(w).to_bytes(4, "little") for w in struct.unpack("<8I", other.key[:32])
        )
        walker = random.Random()
        walker.setstate((3, (*struct.unpack("<624I", self.key), 624), None))
        left, start, size = 624 - self.position, 0, 624 * 4
        while left + start <= bound:
            words = walker.getrandbits(32 * size).to_bytes(4 * size, "little")
            place = words.find(wanted)
            while place >= 0 and place % (4 * 624):
                place = words.find(wanted, place + 1)
            if place >= 0:
                found = left + start + place // 4 + other.position
                return found if found <= bound else None
            start, size = start + size, min(2 * size, _CHUNK)
        return None


def _tempered(word: int) -> int:
    """What MT19937 puts out for a word of its state (Matsumoto and Nishimura, 1998)."""
    word ^= word >> 11
    word ^= word << 7 & 0x9D2C5680
    word ^= word << 15 & 0xEFC60000
    return word ^ word >> 18


def _read_twister(name: str, state: bytes) -> _Twister | None:
    if len(state) == 2509:  # Python: 625 words, whether a Gaussian is kept, and which
        return _twister(state[:2496], int.from_bytes(state[2496:2500], "little"))
    if state[:8] == b"MT19937\0":  # NumPy's global stream
        return _twister(state[-2500:-4], int.from_bytes(state[-4:], "little"))
    if len(state) == 2516 and name.startswith("numba"):
        return _twister(state[4:2500], int.from_bytes(state[:4], "little"))
    if len(state) == 5056:  # torch: each word in 8 bytes; `left` is 1 when a block is used up
        seed, left, _, following = struct.unpack_from("<QiiQ", state)
        key = struct.pack("<624I", *struct.unpack_from("<624Q", state, 24))
        return _twister(key, 624 if left == 1 else following, seed)
    if state[:1] == b"{":
        inner = _decoded(state)
        if inner["bit_generator"] == "MT19937":
            return _twister(bytes.fromhex(inner["state"]["key"]["hex"]), inner["state"]["pos"])
    return None


def _twister(key: bytes, position: int, seed: int | None = None) -> _Twister:
    if len(key) != 2496 or not 0 <= position <= 624:
        raise ValueError("not a state of MT19937")
    return _Twister(key, position, seed)


# -- NumPy's other bit generators ------------------------------------------------------------------


def _decoded(state: bytes) -> Any:
    return json.loads(state)


@dataclass(frozen=True)
class _Bits:
    """A bit generator's dictionary."""

    state: dict[str, Any]

    def to(self, other: _Bits, bound: int) -> Draws:
        if self.state["bit_generator"] != other.state["bit_generator"]:
            return _RESEEDED
        spawned = other.state.get("spawned", 0) - self.state.get("spawned", 0)
        walked = self._walked(other, bound)
        if walked.kind == "drawn" and walked.count == 0 and spawned:
            return Draws("drawn", spawned, "child") if spawned > 0 else _RESEEDED
        return walked

    def _walked(self, other: _Bits, bound: int) -> Draws:
        match self.state["bit_generator"]:
            case "PCG64":
                return self._congruential(other, 0x2360ED051FC65DA44385DF649FCCF645)
            case "PCG64DXSM":
                return self._congruential(other, 0xDA942042E4DD58B5)
            case "Philox":
                return self._counted(other)
            case "SFC64":
                return self._chaotic(other, bound)
        return _MOVED

    def _congruential(self, other: _Bits, factor: int) -> Draws:
        one, two = self.state["state"], other.state["state"]
        if one["inc"] != two["inc"]:
            return _RESEEDED
        steps = lcg_distance(one["state"], two["state"], factor, one["inc"])
        if steps < _FAR:
            return Draws("drawn", steps, "64-bit word")
        back = 2**128 - steps
        return Draws("back", back, "64-bit word") if back < _FAR else _RESEEDED

    def _counted(self, other: _Bits) -> Draws:
        if self.state["state"]["key"] != other.state["state"]["key"]:
            return _RESEEDED
        steps = other._philox_words() - self._philox_words()
        if abs(steps) >= _FAR:
            return _RESEEDED
        return Draws("drawn" if steps >= 0 else "back", abs(steps), "64-bit word")

    def _philox_words(self) -> int:
        """A block of four is made from each value of the counter, when the last one is used up."""
        counter = bytes.fromhex(self.state["state"]["counter"]["hex"])
        used: int = self.state["buffer_pos"]
        return 4 * int.from_bytes(counter, "little") + used - 4

    def _chaotic(self, other: _Bits, bound: int) -> Draws:
        """SFC64 counts its own steps in its last word; whether they lead there must be tried."""
        first, last = (
            struct.unpack("<4Q", bytes.fromhex(s.state["state"]["state"]["hex"]))
            for s in (self, other)
        )
        steps = (last[3] - first[3]) % 2**64
        numpy: Any = sys.modules.get("numpy.random")
        if steps > bound or numpy is None:
            return _MOVED if steps < _FAR else _RESEEDED
        walker = numpy.SFC64(0)
        walker.state = {**walker.state, "state": {"state": list(first)}}
        walker.random_raw(steps, output=False)
        reached = tuple(int(word) for word in walker.state["state"]["state"])
        return Draws("drawn", steps, "64-bit word") if reached == last else _RESEEDED

    def _chaotic_words(self) -> tuple[int, ...]:
        return struct.unpack("<4Q", bytes.fromhex(self.state["state"]["state"]["hex"]))


def lcg_distance(state: int, target: int, factor: int, increment: int) -> int:
    """Steps of ``state = state * factor + increment`` modulo 2**128 that lead to `target`.

    One bit of the distance a round (F. Brown, "Random Number Generation with Arbitrary Stride",
    1994): the lowest bits of a state depend on the lowest bits of the distance alone.
    """
    mask = 2**128 - 1
    steps, bit = 0, 1
    while state != target and bit <= mask:
        if (state ^ target) & bit:
            state = state * factor + increment & mask
            steps |= bit
        increment = (factor + 1) * increment & mask
        factor = factor * factor & mask
        bit <<= 1
    return steps


def _read_json(name: str, state: bytes) -> _Bits | None:
    return _Bits(_decoded(state)) if state[:1] == b"{" and b'"bit_generator"' in state else None


# -- counters --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Counter:
    """A place on a line that a key names."""

    key: object
    place: int
    unit: str

    def to(self, other: _Counter, bound: int) -> Draws:
        if (self.key, self.unit) != (other.key, other.unit):
            return _RESEEDED
        steps = other.place - self.place
        return Draws("drawn" if steps >= 0 else "back", abs(steps), self.unit)


def _read_device(name: str, state: bytes) -> _Counter | None:
    """CUDA's 16 bytes: a seed and the offset into its Philox sequence."""
    if len(state) != 16 or not name.startswith(("torch.", "user:")):
        return None
    seed, offset = struct.unpack("<Qq", state)
    return _Counter(seed, offset, "offset")


def _read_counter(name: str, state: bytes) -> _Counter | None:
    if state[:8] == b"pinned\0\0":
        _, seed, blocks = struct.unpack("<8sIQ", state)
        return _Counter(seed, blocks, "block")
    head, _, rest = state.partition(b" ")
    if head == b"spawned":
        return _Counter(None, int(rest), "child")
    head, line, _ = state.partition(b"\n")
    if line and head.isdigit():
        return _Counter(None, int(head), "point")
    return None
