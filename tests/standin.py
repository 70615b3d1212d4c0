"""A device module without a device: several streams, lazy start, and torch's own queue order.

As in ``torch.cuda``, what is called before the start is kept; at the start the plain calls run
first, in their order, and the latest seeds after all of them.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from typing import Any

import torch

STATE = struct.Struct("<QQ")  # seed, Philox offset


class Stream:
    """One device's generator: draws are a function of the seed and of an offset in fours."""

    def __init__(self) -> None:
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))

    def manual_seed(self, seed: int) -> Stream:
        self.seed, self.offset = seed % 2**64, 0
        return self

    def initial_seed(self) -> int:
        return self.seed

    def get_state(self) -> torch.Tensor:
        state = bytearray(STATE.pack(self.seed, self.offset))
        return torch.frombuffer(state, dtype=torch.uint8)

    def set_state(self, state: torch.Tensor) -> None:
        if state.dtype != torch.uint8 or state.device.type != "cpu" or state.numel() != STATE.size:
            raise RuntimeError("RNG state is wrong size")
        seed, offset = STATE.unpack(state.numpy().tobytes())
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self.seed, self.offset = seed, offset

    def draw(self) -> float:
        digest = hashlib.blake2b(STATE.pack(self.seed, self.offset), digest_size=8).digest()
        self.offset += 4
        return int.from_bytes(digest, "little") / 2**64


class SeedTracker:
    """The latest ``manual_seed_all`` and ``manual_seed``, in the order of their latest calls."""

    def __init__(self) -> None:
        self.manual_seed_all_cb: tuple[Any, list[str]] | None = None
        self.manual_seed_cb: tuple[Any, list[str]] | None = None
        self.call_order: list[tuple[Any, list[str]] | None] = []

    def queue_seed_all(self, cb: Any, traceback: list[str]) -> None:
        self.manual_seed_all_cb = (cb, traceback)
        self.call_order = [self.manual_seed_cb, self.manual_seed_all_cb]

    def queue_seed(self, cb: Any, traceback: list[str]) -> None:
        self.manual_seed_cb = (cb, traceback)
        self.call_order = [self.manual_seed_all_cb, self.manual_seed_cb]

    def get_calls(self) -> list[tuple[Any, list[str]] | None]:
        return self.call_order


class PublicDevices:
    """What an out-of-tree module need not share of torch's insides: only public names.

    ``_is_in_bad_fork`` is the exception, because ``torch.manual_seed`` asks for it.
    """

    def __init__(self, kind: str, count: int) -> None:
        self.kind, self.count = kind, count
        self.starts = 0
        self.default_generators: tuple[Stream, ...] = ()
        self.__initialized = False
        self.__initializing = False
        self.__queued: list[tuple[Callable[[], None], list[str]]] = []
        self.__tracker = SeedTracker()

    # -- what torch asks --------------------------------------------------------------------------

    def _is_in_bad_fork(self) -> bool:
        return False

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self.__initialized and not self.__initializing

    def device_count(self) -> int:
        return self.count

    def current_device(self) -> int:
        self.init()
        return 0

    def init(self) -> None:
        if self.is_initialized() or self.__initializing:
            return
        self.starts += 1
        self.default_generators = tuple(Stream() for _ in range(self.count))
        self.__initializing = True
        try:
            self.__queued.extend(call for call in self.tracker().get_calls() if call)
            for call, _ in self.__queued:
                call()
        finally:
            self.__initializing = False
        self.__initialized = True

    def tracker(self) -> SeedTracker:
        return self.__tracker

    def call(self, call: Callable[[], None], *, seed_all: bool = False, seed: bool = False) -> None:
        if self.is_initialized():
            call()
        elif seed_all:
            self.tracker().queue_seed_all(call, [])
        elif seed:
            self.tracker().queue_seed(call, [])
        else:
            self.__queued.append((call, []))

    def manual_seed(self, seed: int) -> None:
        seed = int(seed)

        def cb() -> None:
            self.default_generators[self.current_device()].manual_seed(seed)

        self.call(cb, seed=True)

    def manual_seed_all(self, seed: int) -> None:
        seed = int(seed)

        def cb() -> None:
            for index in range(self.device_count()):
                self.default_generators[index].manual_seed(seed)

        self.call(cb, seed_all=True)

    def get_rng_state(self, device: int = 0) -> torch.Tensor:
        self.init()
        return self.default_generators[device].get_state()

    def set_rng_state(self, new_state: torch.Tensor, device: int = 0) -> None:
        new_state = new_state.clone()

        def cb() -> None:
            self.default_generators[device].set_state(new_state)

        self.call(cb)

    # -- what a user does -------------------------------------------------------------------------

    def draw(self, device: int = 0) -> float:
        """One number from a device; starts the module."""
        self.init()
        return self.default_generators[device].draw()

    def draws(self, number: int = 3) -> list[list[float]]:
        """Numbers from every device."""
        return [[self.draw(index) for _ in range(number)] for index in range(self.count)]


class Devices(PublicDevices):
    """A module with the private names of ``torch.cuda`` as well."""

    def __init__(self, kind: str = "cuda", count: int = 3) -> None:
        super().__init__(kind, count)
        self._lazy_seed_tracker = self.tracker()

    def _is_compiled(self) -> bool:
        return True

    def _lazy_init(self) -> None:
        self.init()

    def _lazy_call(self, call: Callable[[], None], **kind: bool) -> None:
        self.call(call, **kind)
