"""JAX: keys are values, so a stream of them exists only where the user registers a key."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import StateError


def is_key(value: object) -> bool:
    """Whether `value` is a JAX key (new style, ``jax.random.key``)."""
    jax = sys.modules.get("jax")
    return (
        jax is not None
        and isinstance(value, jax.Array)
        and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
        and value.shape == ()
    )


class KeyStream:
    """A key that is replaced each time it is split; what ``nbseed.register`` makes of a key.

    >>> keys = nbseed.register("keys", jax.random.key(0))  # doctest: +SKIP
    >>> jax.random.normal(keys.split(), (3,))  # doctest: +SKIP
    """

    def __init__(self, name: str, key: Any) -> None:
        self.name, self.key = name, key

    def split(self) -> Any:
        """A fresh key for one use; the stream moves on."""
        self.key, fresh = sys.modules["jax"].random.split(self.key)
        return fresh

    def get_state(self) -> bytes:
        random = sys.modules["jax"].random
        data = random.key_data(self.key)
        words = b"".join(int(word).to_bytes(4, "little") for word in data.ravel())
        return str(random.key_impl(self.key)).encode() + b"\0" + words

    def check_state(self, state: bytes) -> None:
        own = self.get_state()
        if state.partition(b"\0")[0] != own.partition(b"\0")[0] or len(state) != len(own):
            raise StateError(f"{self.name}: not the state of a {own.partition(bytes(1))[0]!r} key")

    def set_state(self, state: bytes) -> None:
        jax = sys.modules["jax"]
        _, _, words = state.partition(b"\0")
        numbers = [int.from_bytes(words[i : i + 4], "little") for i in range(0, len(words), 4)]
        data = jax.numpy.asarray(numbers, dtype=jax.numpy.uint32)
        shape = jax.random.key_data(self.key).shape
        self.key = jax.random.wrap_key_data(data.reshape(shape), impl=jax.random.key_impl(self.key))

    def seed(self, seed: int) -> None:
        random = sys.modules["jax"].random
        self.key = random.key(seed, impl=random.key_impl(self.key))
