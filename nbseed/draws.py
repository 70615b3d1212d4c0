"""How many draws lie between two states of one generator, told from the states alone.

Nothing of the user's is stepped, and no library is imported: a Mersenne Twister is walked with one
of Python's own, whichever library its state came from; counters and linear congruential generators
are solved, at no cost. A state says where a stream stands, not who moved it: a stream that was
re-seeded with its own seed, and then drew beyond where it had been, looks as if it had only drawn.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .twister import Twister, read, walk, was_seeded

_FAR = 2**63
"""A distance that nobody draws: at a word per nanosecond it would take 292 years."""

_PLURALS = {"child": "children", "spawned child": "spawned children"}


@dataclass(frozen=True)
class Draws:
    """How far a generator went from one state to another.

    Attributes
    ----------
    kind
        ``still`` (the states are equal), ``drawn``, ``re-seeded`` (no path leads from the first to
        the second), ``beyond`` (more than the bound, or re-seeded: cannot be told), ``moved`` (a
        state of a kind that cannot be counted), ``back`` (the second state lies before the first).
    count
        How many were drawn; for ``back`` how far, for ``beyond`` the bound. 0 if ``drawn`` means
        that only a kept number came or went (a Gaussian, half of a 64-bit word).
    unit
        What is counted, in the singular.
    """

    kind: str
    count: int = 0
    unit: str = "word"

    def __str__(self) -> str:
        units = self.unit if self.count == 1 else _PLURALS.get(self.unit, f"{self.unit}s")
        counted = f"{self.count:,} {units}"
        if self.kind == "drawn" and not self.count:
            return f"{counted}, a kept {'Gaussian' if self.unit == 'word' else 'number'}"
        said = {
            "still": "nothing",
            "drawn": counted,
            "beyond": f"more than {counted}",
            "back": f"went back {counted}",
        }
        return said.get(self.kind, self.kind)


_RESEEDED = Draws("re-seeded")
_MOVED = Draws("moved")


def count(name: str, before: bytes, after: bytes, bound: int = 1_000_000) -> Draws:
    """How far the generator `name` went from state `before` to state `after`.

    Parameters
    ----------
    name
        The generator's name. 16 bytes are a seed and an offset only where torch's devices, or the
        user's objects, have given them.
    before, after
        What its ``get_state`` returned; any other bytes have ``moved``.
    bound
        In words: how far a state is looked for where every step costs time (MT19937, SFC64). What
        can be solved is exact at any distance. A million words of MT19937 cost about 20 ms if the
        states are that far apart, and three times as much if no way is found.
    """
    if before == after:
        return Draws("still")
    try:
        return _count(name, before, after, max(bound, 0))
    except _DAMAGED:
        return _MOVED


_DAMAGED = (
    ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, struct.error,
)  # fmt: skip


def _count(name: str, before: bytes, after: bytes, bound: int) -> Draws:
    first, second = read(before), read(after)
    if first and second:
        return _twisted(first, second, bound)
    if first or second:
        # NumPy's global stream got another bit generator.
        other = json.loads(after if first else before)
        return _RESEEDED if "bit_generator" in other else _MOVED
    if before[:1] == after[:1] == b"{":
        return _from_json(json.loads(before), json.loads(after), bound)
    if before[:8] == after[:8] == _PINNED and len(before) == len(after) == _TAGGED.size:
        (_, seed, start), (_, other, end) = _TAGGED.unpack(before), _TAGGED.unpack(after)
        return _between(start, end, "block") if seed == other else _RESEEDED
    if len(before) == len(after) == _PHILOX.size and name.startswith(("torch.", "user:")):
        (seed, start), (other, end) = _PHILOX.unpack(before), _PHILOX.unpack(after)
        return _between(start, end, "offset") if seed == other else _RESEEDED
    spawned = b"spawned "
    if before.startswith(spawned) and after.startswith(spawned):
        return _between(_digits(before[8:]), _digits(after[8:]), "child")
    points, first_line, scramble = before.partition(b"\n")
    others, other_line, inner = after.partition(b"\n")
    if not (first_line and other_line):
        return _MOVED
    start, end = _digits(points), _digits(others)
    return _between(start, end, "point") if start != end else count(name, scramble, inner, bound)


_PINNED = b"pinned\0\0"
_TAGGED = struct.Struct("<8sIQ")
_PHILOX = struct.Struct("<Qq")


def _digits(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise ValueError("not a number")
    return int(text)


def _between(start: int, end: int, unit: str) -> Draws:
    return Draws("drawn", end - start, unit) if start <= end else Draws("back", start - end, unit)


def _twisted(before: Twister, after: Twister, bound: int) -> Draws:
    if before.origin != after.origin:
        return _RESEEDED
    ahead = walk(before, after, bound)
    if ahead is not None:
        return Draws("drawn", ahead)
    behind = walk(after, before, bound)
    if behind is not None:  # under the seed that torch remembers it is rather seeded anew than set
        return Draws("back", behind) if after.origin is None else _RESEEDED
    return _RESEEDED if was_seeded(after, bound) else Draws("beyond", bound)


# -- NumPy's bit generators ----------------------------------------------------------------------


def _from_json(before: Any, after: Any, bound: int) -> Draws:
    if "bit_generator" not in before or "bit_generator" not in after:
        # A device that has not started has only what is queued for it.
        queued = {"first", "seed", "states"}
        return _RESEEDED if before.keys() == after.keys() == queued else _MOVED
    kind = before["bit_generator"]
    if kind != after["bit_generator"]:
        return _RESEEDED
    solve = _KINDS.get(kind)
    if solve is None:
        return _MOVED
    found = solve(before, after, bound)
    spawned = after.get("spawned", 0) - before.get("spawned", 0)
    if found == Draws("drawn", 0, found.unit) and spawned and _but_spawned(before, after):
        return _between(0, spawned, "spawned child")
    return found


def _but_spawned(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return {**before, "spawned": 0} == {**after, "spawned": 0}


def _mt19937(before: Any, after: Any, bound: int) -> Draws:
    start, end = (
        Twister(bytes.fromhex(state["key"]["hex"]), state["pos"])
        for state in (before["state"], after["state"])
    )
    return _twisted(start, end, bound)


def _along(period: int, distance: int) -> Draws:
    """Draws for a distance on a circle: what nobody can have drawn, either way, was set."""
    ahead = distance % period
    if ahead < _FAR:
        return Draws("drawn", ahead, _WIDE)
    if period - ahead < _FAR:
        return Draws("back", period - ahead, _WIDE)
    return _RESEEDED


# A Generator that needs 32 bits takes a word of 64 and keeps the other half. The word counts when
# it is taken, so the kept half counts for nothing when it is used.
_WIDE = "64-bit word"
_PCG64 = 0x2360ED051FC65DA44385DF649FCCF645
_PCG64DXSM = 0xDA942042E4DD58B5


def _pcg(multiplier: int) -> Callable[[Any, Any, int], Draws]:
    def solve(before: Any, after: Any, bound: int) -> Draws:
        start, end = before["state"], after["state"]
        if start["inc"] != end["inc"]:
            return _RESEEDED
        steps = _lcg_steps(start["state"], end["state"], multiplier, start["inc"])
        return _along(2**128, steps)

    return solve


def _lcg_steps(state: int, end: int, multiplier: int, increment: int) -> int:
    """How often ``state * multiplier + increment`` must be taken, modulo 2**128, to come to `end`.

    O'Neill's ``distance``: bit `n` of the state repeats every 2**(n+1) steps, so the lowest bit
    that differs tells one bit of the answer; the step is doubled on the way.
    """
    mask, steps, bit = 2**128 - 1, 0, 1
    while bit <= mask:
        if (state ^ end) & bit:
            state = (state * multiplier + increment) & mask
            steps |= bit
        bit <<= 1
        increment = (multiplier + 1) * increment & mask
        multiplier = multiplier * multiplier & mask
    if state != end:
        raise ValueError("no state of this generator: its increment is even")
    return steps


def _words(array: Any) -> list[int]:
    """The numbers of an array of 64-bit words, as ``generators.numpy.encode`` writes it."""
    return [word for (word,) in struct.iter_unpack("<Q", bytes.fromhex(array["hex"]))]


def _philox(before: Any, after: Any, bound: int) -> Draws:
    if before["state"]["key"] != after["state"]["key"]:
        return _RESEEDED
    start, end = (
        4 * int.from_bytes(bytes.fromhex(state["state"]["counter"]["hex"]), "little")
        + state["buffer_pos"]
        for state in (before, after)
    )
    return _along(2**258, end - start)


def _sfc64(before: Any, after: Any, bound: int) -> Draws:
    """The counter tells how far, if the rest agrees once that many are drawn."""
    start, end = _words(before["state"]["state"]), _words(after["state"]["state"])
    found = _along(2**64, end[3] - start[3])
    if found.kind == "drawn" and found.count > bound:
        return Draws("beyond", bound, _WIDE)
    if found.kind == "back" and found.count > bound:
        return _RESEEDED
    earlier, later = (before, end) if found.kind == "drawn" else (after, start)
    reached = _sfc64_after(earlier, found.count)
    return found if reached == later else _RESEEDED


def _sfc64_after(state: Any, steps: int) -> list[int]:
    # A state of NumPy's has come from NumPy. Were it not there, the state would have just `moved`.
    numpy = sys.modules["numpy"]
    bits = numpy.random.SFC64(0)
    words = numpy.array(_words(state["state"]["state"]), dtype=numpy.uint64)
    bits.state = {**state, "state": {"state": words}}
    bits.random_raw(steps, output=False)
    return [int(word) for word in bits.state["state"]["state"]]


_KINDS: Mapping[str, Callable[[Any, Any, int], Draws]] = {
    "MT19937": _mt19937,
    "PCG64": _pcg(_PCG64),
    "PCG64DXSM": _pcg(_PCG64DXSM),
    "Philox": _philox,
    "SFC64": _sfc64,
}
