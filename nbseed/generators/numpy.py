"""NumPy: the legacy global stream, and the objects of ``numpy.random``.

States are bytes. The common one, MT19937 with its kept Gaussian, has a fixed layout that is read in
place; every other bit generator is its own ``state`` dictionary as canonical JSON.
"""

from __future__ import annotations

import ctypes
import functools
import json
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import StateError
from .protocol import Room

if TYPE_CHECKING:
    import numpy as np

_TAG = b"MT19937\0"
# tag, whether a Gaussian is kept, which one, then 624 words and the position as they lie in memory.
_HEAD = struct.Struct("<8sId")
_WORDS = 4 * 625
_NONE_KEPT = _HEAD.pack(_TAG, 0, 0.0)
_MT19937_SIZE = _HEAD.size + _WORDS


def encode(state: dict[str, Any]) -> bytes:
    """Canonical JSON of a bit generator's ``state``: sorted keys, arrays as dtype and hex."""

    def plain(value: Any) -> Any:
        if hasattr(value, "dtype") and hasattr(value, "tobytes") and value.ndim:
            little = value.astype(value.dtype.newbyteorder("<"))
            return {"dtype": little.dtype.str, "hex": little.tobytes().hex()}
        return value.item() if hasattr(value, "item") else value

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {str(key): walk(node[key]) for key in sorted(node)}
        return plain(node)

    return json.dumps(walk(state), separators=(",", ":")).encode()


def decode(name: str, state: bytes) -> dict[str, Any]:
    """The dictionary that `encode` was given; StateError if the bytes are no such thing."""
    import numpy as np

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            if node.keys() == {"dtype", "hex"}:
                return np.frombuffer(bytes.fromhex(node["hex"]), dtype=node["dtype"]).copy()
            return {key: walk(value) for key, value in node.items()}
        return node

    try:
        decoded = walk(json.loads(state))
    except (ValueError, TypeError, RecursionError) as error:
        raise StateError(f"{name}: not a state of a NumPy bit generator ({error})") from None
    if not isinstance(decoded, dict) or not isinstance(decoded.get("bit_generator"), str):
        raise StateError(f"{name}: not a state of a NumPy bit generator")
    return decoded


@functools.cache
def _gauss_offset() -> int | None:
    """Where a RandomState keeps its spare Gaussian, in bytes from the object's start, or None.

    ``RandomState.get_state`` copies 624 words one by one to hand out two numbers that lie in the
    object itself. The place is found by looking for a known value, and taken only if the words, the
    position and both numbers then read as ``get_state`` gives them; else the slow call is used.
    """
    import numpy as np

    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return None
    probe = np.random.RandomState(20130)
    probe.standard_normal(3)
    state: Any = probe.get_state()
    _, key, position, has_gauss, gauss = state
    size = type(probe).__basicsize__
    offset = ctypes.string_at(id(probe), size).find(struct.pack("<d", gauss)) - 8
    if offset < 0:
        return None
    if _read_in_place(probe, offset) != _HEAD.pack(_TAG, has_gauss, gauss) + struct.pack(
        "<625I", *key.tolist(), position
    ):
        return None
    probe.standard_normal()
    return offset if _read_in_place(probe, offset)[8:12] == bytes(4) else None


def _read_in_place(stream: np.random.RandomState, offset: int) -> bytes:
    bits = stream._bit_generator
    with bits.lock:  # NumPy draws under this lock
        kept = ctypes.string_at(id(stream) + offset, 16)  # an int, padding, a double
        words = ctypes.string_at(bits.ctypes.state_address, _WORDS)
    if kept[:4] == bytes(4):
        return _NONE_KEPT + words
    return _TAG + kept[:4] + kept[8:] + words


@dataclass(frozen=True)
class RandomStateGenerator:
    """A legacy ``RandomState`` with its kept Gaussian, whatever its bit generator."""

    name: str
    stream: np.random.RandomState

    def get_state(self) -> bytes:
        bits = self.stream._bit_generator
        if type(bits).__name__ == "MT19937":
            offset = _gauss_offset()
            if offset is not None:
                return _read_in_place(self.stream, offset)
            legacy: Any = self.stream.get_state()
            _, key, position, has_gauss, gauss = legacy
            head = _HEAD.pack(_TAG, has_gauss, gauss if has_gauss else 0.0)
            return head + struct.pack("<625I", *key.tolist(), position)
        return encode(self.stream.get_state(legacy=False))

    def check_state(self, state: bytes) -> None:
        if state[:8] == _TAG:
            if len(state) != _MT19937_SIZE:
                raise StateError(f"{self.name}: {len(state)} bytes, expected {_MT19937_SIZE}")
            _, has_gauss, _ = _HEAD.unpack_from(state)
            (position,) = struct.unpack_from("<I", state, _MT19937_SIZE - 4)
            if position > 624 or has_gauss > 1:
                raise StateError(f"{self.name}: not a state of MT19937")
            kind = "MT19937"
        else:
            decoded = decode(self.name, state)
            kind = decoded["bit_generator"]
            _check_bits(self.name, decoded, type(self.stream._bit_generator))
            if decoded.get("has_gauss") not in (0, 1) or type(decoded.get("gauss")) is not float:
                raise StateError(f"{self.name}: not a state of a RandomState")
        own = type(self.stream._bit_generator).__name__
        if kind != own and self.name != "numpy":  # only the global one can get another kind
            raise StateError(f"{self.name}: the state is of {kind}, the object has {own}")

    def set_state(self, state: bytes) -> None:
        import numpy as np

        bits = self.stream._bit_generator
        if state[:8] != _TAG:
            decoded = decode(self.name, state)
            if decoded["bit_generator"] != type(bits).__name__:
                self._replace(decoded["bit_generator"])
            self.stream.set_state(decoded)
            return
        if type(bits).__name__ != "MT19937":
            self._replace("MT19937")
            bits = self.stream._bit_generator
        _, has_gauss, gauss = _HEAD.unpack_from(state)
        if not has_gauss and self.name == "numpy" and _gauss_offset() is not None:
            # The words go where NumPy publishes their address; setting the same bit generator
            # anew forgets a kept Gaussian. ``set_state`` would copy the words one by one.
            with bits.lock:
                ctypes.memmove(bits.ctypes.state_address, state[_HEAD.size :], _WORDS)
            _set_bit_generator(bits)
            return
        words = np.frombuffer(state, dtype="<u4", offset=_HEAD.size)
        self.stream.set_state(("MT19937", words[:624], int(words[624]), has_gauss, gauss))

    def _replace(self, kind: str) -> None:
        """Put a bit generator of another kind under the global stream, as the user once did."""
        import numpy as np

        _set_bit_generator(getattr(np.random, kind)(0))

    def seed(self, seed: int) -> None:
        bits = self.stream._bit_generator
        if type(bits).__name__ == "MT19937":
            self.stream.seed(seed)
        else:  # RandomState.seed refuses other kinds
            state = self.stream.get_state(legacy=False)
            state.update(type(bits)(seed).state, has_gauss=0, gauss=0.0)
            self.stream.set_state(state)


@dataclass(frozen=True)
class BitGeneratorGenerator:
    """A ``BitGenerator`` (also one inside a ``Generator``), with its spawn counter.

    The counter lives in the ``SeedSequence`` that the bit generator came from, not in ``state``; it
    is put back by the object's own pickling protocol, since no attribute of it can be written.
    """

    name: str
    bits: np.random.BitGenerator

    def get_state(self) -> bytes:
        state = dict(self.bits.state)
        spawned = getattr(_seed_sequence(self.bits), "n_children_spawned", None)
        return encode(state if spawned is None else {**state, "spawned": int(spawned)})

    def check_state(self, state: bytes) -> None:
        decoded = decode(self.name, state)
        if decoded["bit_generator"] != type(self.bits).__name__:
            raise StateError(
                f"{self.name}: the state is of {decoded['bit_generator']}, "
                f"the object is {type(self.bits).__name__}"
            )
        spawned = decoded.pop("spawned", 0)
        if type(spawned) is not int or not 0 <= spawned < 2**32:
            raise StateError(f"{self.name}: {spawned!r} is no number of spawned children")
        _check_bits(self.name, decoded, type(self.bits))

    def set_state(self, state: bytes) -> None:
        decoded = decode(self.name, state)
        spawned = decoded.pop("spawned", None)
        self.bits.state = decoded
        if spawned is not None:
            _set_spawned(_seed_sequence(self.bits), spawned)

    def seed(self, seed: int) -> None:
        fresh = type(self.bits)(seed)
        self.bits.state = fresh.state
        _set_spawned(_seed_sequence(self.bits), 0)


@dataclass(frozen=True)
class SeedSequenceGenerator:
    """A ``SeedSequence``: only how many children it has spawned ever changes."""

    name: str
    sequence: np.random.SeedSequence

    def get_state(self) -> bytes:
        return b"spawned %d" % self.sequence.n_children_spawned

    def check_state(self, state: bytes) -> None:
        head, _, count = state.partition(b" ")
        if head != b"spawned" or not count.isdigit() or len(count) > 10 or int(count) >= 2**32:
            raise StateError(f"{self.name}: not the state of a SeedSequence")

    def set_state(self, state: bytes) -> None:
        _set_spawned(self.sequence, int(state.partition(b" ")[2]))

    def seed(self, seed: int) -> None:
        _set_spawned(self.sequence, 0)


def _seed_sequence(bits: np.random.BitGenerator) -> Any:
    """The SeedSequence of a bit generator (``seed_seq`` is public since NumPy 1.25)."""
    return getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)


def _set_spawned(sequence: Any, count: int) -> None:
    if getattr(sequence, "n_children_spawned", count) == count:
        return
    sequence.__setstate__(
        (sequence.entropy, count, sequence.pool, sequence.pool_size, sequence.spawn_key)
    )


def _check_bits(name: str, decoded: dict[str, Any], own: type) -> None:
    """Try the state on a bit generator of nobody's, of the object's `own` kind or of NumPy's."""
    import numpy as np

    named = decoded["bit_generator"]
    kind = own if own.__name__ == named else getattr(np.random, named, None)
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise StateError(f"{name}: unknown bit generator {decoded['bit_generator']!r}")
    try:
        kind(0).state = {k: v for k, v in decoded.items() if k not in ("has_gauss", "gauss")}
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise StateError(f"{name}: not a state of {decoded['bit_generator']} ({error})") from None
    # NumPy takes any position, and then reads memory that is not its own.
    inner = decoded["state"]
    twister = issubclass(kind, np.random.MT19937)
    places = ((inner if twister else {}, "pos", 624), (decoded, "buffer_pos", 4))
    for holder, key, last in places:
        if not 0 <= holder.get(key, 0) <= last:
            raise StateError(f"{name}: not a state of {decoded['bit_generator']} ({key})")


def _set_bit_generator(bits: np.random.BitGenerator) -> None:
    random: Any = sys.modules["numpy.random"]
    random.set_bit_generator(bits)


@functools.cache
def _global() -> RandomStateGenerator:
    import numpy as np

    # The bound method's owner is the stream that np.random.rand and the others draw from.
    draw: Any = np.random.rand
    return RandomStateGenerator("numpy", draw.__self__)


def _generators() -> list[RandomStateGenerator]:
    return [_global()]


def _seed(seed: int) -> None:
    _global().seed(seed)


ROOM = Room("numpy", _generators, _seed)
