"""TensorFlow: the global ``tf.random.Generator``. Its op-level streams can be seeded, not read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ..errors import StateError
from .protocol import Room


@dataclass(frozen=True)
class TensorflowGenerator:
    """The generator of ``tf.random.get_global_generator()``, once the user has asked for it."""

    name: str
    stream: Any

    def get_state(self) -> bytes:
        words: bytes = self.stream.state.numpy().astype("<i8").tobytes()
        return int(self.stream.algorithm).to_bytes(1, "little") + words

    def check_state(self, state: bytes) -> None:
        own = self.get_state()
        if len(state) != len(own) or state[:1] != own[:1]:
            raise StateError(f"{self.name}: not a state of this TensorFlow generator")

    def set_state(self, state: bytes) -> None:
        import numpy as np

        self.stream.state.assign(np.frombuffer(state, dtype="<i8", offset=1))

    def seed(self, seed: int) -> None:
        self.stream.reset_from_seed(seed)


def _generators() -> list[TensorflowGenerator]:
    # get_global_generator() would make one, and start the devices: look whether there is one.
    module = sys.modules.get("tensorflow.python.ops.stateful_random_ops")
    stream = getattr(module, "global_generator", None)
    return [] if stream is None else [TensorflowGenerator("tensorflow", stream)]


def _seed(seed: int) -> None:
    sys.modules["tensorflow"].random.set_seed(seed)
    for generator in _generators():
        generator.seed(seed)


def _uncovered() -> list[str]:
    return ["tensorflow: tf.random.normal and the like keep counters that cannot be read"]


ROOM = Room("tensorflow", _generators, _seed, uncovered=_uncovered)
