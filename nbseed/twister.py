"""MT19937 from any library: what lies between two of its states, and whether a seeding does.

It is stepped with one of Python's own twisters, at C speed, whichever library a state came from.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Twister:
    """A Mersenne Twister, wherever its state came from.

    Attributes
    ----------
    key
        624 words of 32 bits, little-endian.
    position
        How many of them are drawn; 624 after seeding by most libraries.
    kept
        Whatever else the state holds: Gaussians that were made and not yet handed out.
    origin
        The seed that it started from, where the state tells (torch).
    """

    key: bytes
    position: int
    kept: bytes = b""
    origin: int | None = None


_PYTHON = struct.Struct("<2496sI9s")
_NUMPY = struct.Struct("<8s12s2496sI")
_NUMBA = struct.Struct("<I2496s16s")
_TORCH = struct.Struct("<QiiQ4992s40s")


def read(state: bytes) -> Twister | None:
    """The state as MT19937's, None if it is of another kind."""
    if len(state) == _PYTHON.size:
        key, position, kept = _PYTHON.unpack(state)
        found = Twister(key, position, kept)
    elif len(state) == _NUMPY.size and state[:8] == b"MT19937\0":
        _, kept, key, position = _NUMPY.unpack(state)
        found = Twister(key, position, kept)
    elif len(state) == _NUMBA.size:
        position, key, kept = _NUMBA.unpack(state)
        found = Twister(key, position, kept)
    elif len(state) == _TORCH.size:
        seed, left, _, _, wide, kept = _TORCH.unpack(state)
        key = struct.pack("<624I", *struct.unpack("<624Q", wide))
        found = Twister(key, 625 - left, kept, seed)
    else:
        return None
    return found if 0 <= found.position <= 624 else None


def walk(start: Twister, end: Twister, bound: int) -> int | None:
    """How many words lead from `start` to `end`, None if it is more than `bound`.

    The words of a key are replaced all at once, so the end's key is one of the blocks of 624 that
    the start comes to. What is compared are the tempered words, as both are drawn at C speed.
    """
    if start.key == end.key and start.position <= end.position:
        return end.position - start.position
    least = 624 - start.position + end.position
    sought = _drawn(_stream(end.key, 0), 1)
    stream = _stream(start.key, 624)
    blocks = (bound - least) // 624 + 1  # how many may be looked at; none if that is negative
    passed, some = 0, 8
    while passed < blocks:
        some = min(2 * some, 1024, blocks - passed)  # at most 2.5 MB, and little if it is near
        words = _drawn(stream, some)
        place = words.find(sought)
        while place % len(sought) and place >= 0:
            place = words.find(sought, place + 1)
        if place >= 0:
            return least + 624 * (passed + place // len(sought))
        passed += some
    return None


def _stream(key: bytes, position: int) -> Random:
    stream = Random(0)  # an argument, for without one it would take the system's entropy
    stream.setstate((3, (*struct.unpack("<624I", key), position), None))
    return stream


def _drawn(stream: Random, blocks: int) -> bytes:
    return stream.getrandbits(32 * 624 * blocks).to_bytes(4 * 624 * blocks, "little")


def was_seeded(state: Twister, bound: int) -> bool:
    """Whether a seeding lies at most `bound` words before, of a kind that shows in the words.

    The state before it did not lead here, so this tells a stream that was seeded anew from one
    that went far. Seeds of more than 32 bits in Python's way (a text's), and keys from the system's
    entropy, show nothing.
    """
    key, low = int.from_bytes(state.key, "little"), _lanes(10)
    for _ in range((bound - state.position) // 624 + 2):
        if _is_fresh(struct.unpack("<10I", (key & low).to_bytes(40, "little"))):
            return True
        key = _untwisted(key)
    return False


def _lanes(words: int) -> int:
    return (1 << 32 * words) - 1


_ONES = int.from_bytes(b"\1\0\0\0" * 624, "little")
_TOP, _LOW = _ONES << 31, _ONES * 0x7FFFFFFF


def _untwisted(key: int) -> int:
    """The block before, as one integer of 624 words, but for the low bits of its word 0.

    New word `k` is word ``k + 397``, counted on into the new ones, exclusive-or the twist of the
    top bit of word `k` and the low bits of the next. All words that need no others go at once.
    A block's own last word tells the low bits of its word 0, if they were lost the step before.
    """
    first = _before_twist(key >> 32 * 623 ^ key >> 32 * 396 & _M)
    key ^= (key ^ first) & 0x7FFFFFFF
    high = _before_twist((key >> 32 * 227) ^ (key & _lanes(397)))
    known = (high & _TOP | (high << 32) & _LOW) >> 32 * 170 & _lanes(227)
    mixed = high << 32 * 227 | _before_twist((key & _lanes(227)) ^ known)
    return mixed & _TOP | (mixed << 32) & _LOW


def _before_twist(words: int) -> int:
    lowest = (words >> 31) & _ONES  # the constant's top bit is set, so it tells the lost one
    return (words ^ lowest * 0x9908B0DF) << 1 | lowest


def _is_fresh(key: Sequence[int]) -> bool:
    """Whether a key, of which the first 10 words are given, is as a seeding leaves it.

    The seedings mix one value into several words, each with its neighbours: it must come out of
    three places alike, which are 64 bits of evidence. Word 0 is not asked, as it may be lost.
    """
    return any(
        hidden(key, first) == hidden(key, second) == hidden(key, third)
        for hidden, (first, second, third) in _SEEDINGS
    )


_M = 0xFFFFFFFF


def _mix(word: int) -> int:
    return word ^ (word >> 30)


def _by_knuth(key: Sequence[int], place: int) -> int:
    """0, if the key is of NumPy's legacy seeding, torch's or numba's."""
    return key[place] - 1812433253 * _mix(key[place - 1]) - place & _M


_BASE = [19650218]  # Python's seeding starts from Knuth's of this one
for _place in range(1, 7):
    _BASE.append(1812433253 * _mix(_BASE[-1]) + _place & _M)


def _by_python(key: Sequence[int], place: int) -> int:
    """The seed, if it had one word; its two passes are undone."""
    before, word = (
        key[k] + k & _M ^ 1566083941 * _mix(key[k - 1]) & _M for k in (place - 1, place)
    )
    return word - (_BASE[place] ^ 1664525 * _mix(before) & _M) & _M


def _by_sequence(key: Sequence[int], place: int) -> int:
    """The word of a ``SeedSequence``'s pool, which every fourth word of the key is made of."""
    constant, inverse = _hashes(place)
    return (key[place] ^ key[place] >> 16) * inverse & _M ^ constant


@functools.cache
def _hashes(place: int) -> tuple[int, int]:
    constant = 0x8B51F9DD * pow(0x58F38DED, place, 2**32) & _M
    return constant, pow(constant * 0x58F38DED, -1, 2**32)


_SEEDINGS: tuple[tuple[Callable[[Sequence[int], int], int], tuple[int, int, int]], ...] = (
    (_by_knuth, (2, 3, 4)),
    (_by_python, (4, 5, 6)),
    (_by_sequence, (1, 5, 9)),
)
