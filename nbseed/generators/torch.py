"""torch: the CPU stream, every device that torch knows, and ``torch.Generator`` objects.

A device that has not started has no state, only a queued seed. It is one generator, named after its
kind (``torch.cuda``), until it starts and becomes one for each device (``torch.cuda:0``, ...).
Nothing here starts a device: its state is read only once torch says that it is initialized.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import struct
import sys
import warnings
import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import StateError
from .protocol import Generator, Room

if TYPE_CHECKING:
    import torch

_CPU_STATE = 5056
# Seed, words left, whether seeded, next word: the head of CPUGeneratorImplStateLegacy.
_CPU_HEAD = struct.Struct("<QiiQ")
_FIRST_SEED = 67280421310721  # torch's seed before anyone has set one (c10 default_rng_seed_val)


def _to_bytes(state: torch.Tensor) -> bytes:
    return state.numpy().tobytes()


def _to_tensor(state: bytes) -> torch.Tensor:
    """A CPU uint8 tensor of its own memory, as every ``set_state`` wants it."""
    tensor: torch.Tensor = _torch().frombuffer(bytearray(state), dtype=_torch().uint8)
    return tensor


def _torch() -> Any:
    return sys.modules["torch"]


@dataclass(frozen=True)
class TorchGenerator:
    """A ``torch.Generator``: the CPU's default one, or the user's on any device."""

    name: str
    stream: torch.Generator

    def get_state(self) -> bytes:
        return _to_bytes(self.stream.get_state())

    def check_state(self, state: bytes) -> None:
        if self.stream.device.type != "cpu":
            _check_length(self.name, state, len(self.get_state()))
            _check_philox(self.name, self.stream.device.type, state)
            return
        _check_length(self.name, state, _CPU_STATE)
        _, left, seeded, following = _CPU_HEAD.unpack_from(state)
        if seeded != 1 or not 0 < left <= 624 or following > 624:  # what torch itself looks at
            raise StateError(f"{self.name}: not a state of torch's CPU generator")

    def set_state(self, state: bytes) -> None:
        self.stream.set_state(_to_tensor(state))

    def seed(self, seed: int) -> None:
        self.stream.manual_seed(seed)


@dataclass(frozen=True)
class DeviceGenerator:
    """The default stream of one device, through its module's ``get_rng_state``."""

    name: str
    family: Family
    index: int

    @property
    def model(self) -> str:
        """What the device is called, once it has started: asking before would start it."""
        ask = getattr(self.family.module, "get_device_name", None)
        return str(ask(self.index)) if ask is not None and self.family.started else ""

    @property
    def undo(self) -> Generator:
        """What to put back if a later part of a restore fails: before the start, the queue."""
        return self if self.family.started else self.family

    def get_state(self) -> bytes:
        return _to_bytes(self.family.module.get_rng_state(self.index))

    def check_state(self, state: bytes) -> None:
        if self.family.started:
            _check_length(self.name, state, len(self.get_state()))
        else:
            self.family.check_can_queue()
        _check_philox(self.name, self.family.kind, state)

    def set_state(self, state: bytes) -> None:
        if self.family.started:
            self.family.module.set_rng_state(_to_tensor(state), self.index)
        else:
            queue = self.family.queue()
            first = None if self.index == 0 else queue.first  # else the seed would come after it
            states = {**queue.states, self.index: state}
            self.family.set_queue(replace(queue, first=first, states=states))

    def seed(self, seed: int) -> None:
        generators = getattr(self.family.module, "default_generators", None)
        if generators:
            generators[self.index].manual_seed(seed)
        else:
            device = f"{self.family.kind}:{self.index}"
            state = _torch().Generator(device=device).manual_seed(seed).get_state()
            self.family.module.set_rng_state(state, self.index)


@dataclass(frozen=True)
class Queue:
    """What a device that has not started will be set to when it does.

    Attributes
    ----------
    seed
        For all devices of the kind; None if nobody has queued one.
    first
        For the current device alone (``manual_seed`` called after ``manual_seed_all``).
    states
        Exact states by device index, set after the seeds.
    """

    seed: int | None = None
    first: int | None = None
    states: dict[int, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        states = {str(index): self.states[index].hex() for index in sorted(self.states)}
        plain = {"first": self.first, "seed": self.seed, "states": states}
        return json.dumps(plain, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, name: str, state: bytes) -> Queue:
        try:
            plain = json.loads(state)
            seed, first = plain["seed"], plain["first"]
            states = {int(k): bytes.fromhex(v) for k, v in plain["states"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise StateError(f"{name}: not the state of a device that has not started") from None
        for number in (seed, first):
            if number is not None and not (type(number) is int and 0 <= number < 2**64):
                raise StateError(f"{name}: the queued seed {number!r} is not in 0..2**64 - 1")
        return cls(seed, first, states)


class _QueuedStates:
    """The call that torch makes when the device starts: seeds, then exact states.

    ``set_rng_state`` before the start would be queued ahead of the seeds, and lost. In the place of
    the seed itself it runs last, and it can be read back.
    """

    def __init__(self, module: Any, queue: Queue) -> None:
        self.module, self.queue = module, queue

    def __call__(self) -> None:
        for index, generator in enumerate(self.module.default_generators):
            if self.queue.seed is not None:
                generator.manual_seed(self.queue.seed)
            if index in self.queue.states:
                generator.set_state(_to_tensor(self.queue.states[index]))
        lost = sorted(set(self.queue.states) - set(range(len(self.module.default_generators))))
        if lost:  # how many devices there are is not asked before the start: asking starts some
            said = f"nbseed: no device for the restored state of index {', '.join(map(str, lost))}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)


# For modules that do not show what they have queued: what was queued here, and torch's own seed at
# that moment. A later torch.manual_seed changes the latter, and queues what it was called with.
_remembered: weakref.WeakKeyDictionary[Any, tuple[Queue, int]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Family:
    """All devices of one kind, started or not."""

    kind: str
    module: Any

    @property
    def name(self) -> str:
        return f"torch.{self.kind}"

    @property
    def started(self) -> bool:
        is_initialized = getattr(self.module, "is_initialized", None)
        return bool(is_initialized() if is_initialized else _available(self.kind, self.module))

    @property
    def exists(self) -> bool:
        """Whether torch has this kind at all; asked without starting it.

        ``is_available`` may start the driver, and then a forked child cannot use the device. It is
        asked only where the build has no such device, so that there is nothing to start.
        """
        compiled = getattr(self.module, "_is_compiled", None)
        if self.started:
            return True
        if getattr(self.module, "is_initialized", None) is None:
            return False
        return compiled is None or bool(compiled()) or _available(self.kind, self.module)

    def devices(self) -> list[DeviceGenerator]:
        count = self.module.device_count()
        if self.kind == "mps":  # one device, and no index in its names
            return [DeviceGenerator(self.name, self, 0)]
        return [DeviceGenerator(f"{self.name}:{index}", self, index) for index in range(count)]

    # -- before the start ------------------------------------------------------------------------

    def queue(self) -> Queue:
        """What is queued; if nothing is, a seed from the operating system is queued first.

        A device that nobody seeded starts from such a seed anyway. Choosing it now makes it known,
        so that the cell that starts the device can be rewound.
        """
        known = self._known_queue()
        if known is None:
            known = Queue(seed=int.from_bytes(os.urandom(8), "little"))
            self.set_queue(known)
        elif known.seed is None and not known.states:
            known = replace(known, seed=int.from_bytes(os.urandom(8), "little"))
            self.set_queue(known)
        return known

    def _known_queue(self) -> Queue | None:
        tracker = getattr(self.module, "_lazy_seed_tracker", None)
        if tracker is not None:
            known: Queue | None = None
            for call, _ in filter(None, tracker.get_calls()):
                if isinstance(call, _QueuedStates):
                    known = call.queue
                    continue
                seed = inspect.getclosurevars(call).nonlocals.get("seed")
                if not isinstance(seed, int):
                    continue
                seed %= 2**64
                if tracker.manual_seed_all_cb and call is tracker.manual_seed_all_cb[0]:
                    known = Queue(seed=seed)
                else:
                    known = known or Queue()
                    states = {k: v for k, v in known.states.items() if k != 0}
                    known = replace(known, first=seed, states=states)
            return known
        torch_seed = _torch().initial_seed()
        queue, seed_then = _remembered.get(self.module, (None, None))
        if queue is not None and seed_then == torch_seed:
            return queue
        return None if torch_seed == _FIRST_SEED else Queue(seed=torch_seed)

    def set_queue(self, queue: Queue) -> None:
        if queue.states:
            call = _QueuedStates(self.module, queue)
            self.module._lazy_call(call, seed_all=True)
        elif queue.seed is not None:
            self.module.manual_seed_all(queue.seed)
        if queue.first is not None:
            self.module.manual_seed(queue.first)
        try:
            _remembered[self.module] = (queue, _torch().initial_seed())
        except TypeError:  # a module object that cannot be referred to weakly: nothing to remember
            return

    def check_can_queue(self) -> None:
        if not hasattr(self.module, "_lazy_call"):
            raise StateError(
                f"{self.name} has not started, and a state set now would be lost behind its queued "
                f"seed: use the device once, then restore"
            )

    # -- as one generator ------------------------------------------------------------------------

    def get_state(self) -> bytes:
        if not self.started:
            return self.queue().to_bytes()
        return Queue(states={d.index: d.get_state() for d in self.devices()}).to_bytes()

    def check_state(self, state: bytes) -> None:
        queue = Queue.from_bytes(self.name, state)
        for index, part in queue.states.items():
            _check_philox(f"{self.name}:{index}", self.kind, part)
        if queue.states and not self.started:
            self.check_can_queue()
        if self.started:
            devices = {device.index: device for device in self.devices()}
            for index, part in queue.states.items():
                if index not in devices:
                    raise StateError(f"{self.name}:{index} does not exist")
                devices[index].check_state(part)

    def set_state(self, state: bytes) -> None:
        queue = Queue.from_bytes(self.name, state)
        if not self.started:
            self.set_queue(queue)
            return
        if queue.seed is not None:
            self.seed(queue.seed)
        devices = {device.index: device for device in self.devices()}
        if queue.first is not None:
            devices[0].seed(queue.first)
        for index, part in queue.states.items():
            devices[index].set_state(part)

    def seed(self, seed: int) -> None:
        seed_all = getattr(self.module, "manual_seed_all", None) or self.module.manual_seed
        seed_all(seed)


def _available(kind: str, module: Any) -> bool:
    asked = getattr(module, "is_available", None)
    if asked is None:
        asked = getattr(getattr(_torch().backends, kind, None), "is_available", None)
    return bool(asked and asked())


def _check_length(name: str, state: bytes, expected: int) -> None:
    if len(state) != expected:
        old = ", as torch had it before 2.1" if (len(state), expected) == (816, 16) else ""
        raise StateError(f"{name}: {len(state)} bytes{old}, expected {expected}")


def _check_philox(name: str, kind: str, state: bytes) -> None:
    """What CUDA looks at when it sets a state; before its start no one else would."""
    if kind == "cuda" and (len(state) != 16 or state[8] % 4):
        _check_length(name, state, 16)
        raise StateError(f"{name}: not a state of a CUDA generator")


def families() -> list[Family]:
    """The kinds of device that this torch has, started or waiting."""
    kinds = ["cuda", "xpu", "mps", "mtia", _torch()._C._get_privateuse1_backend_name()]
    found = []
    for kind in kinds:
        # The attribute is what torch.get_device_module returns; it raises where there is none.
        module = getattr(_torch(), kind, None)
        if module is None:
            continue
        asked = (getattr(module, "is_initialized", None), getattr(module, "is_available", None))
        if _absent.get(kind) == asked:
            continue
        family = Family(kind, module)
        if hasattr(module, "set_rng_state") and family.exists:
            found.append(family)
        else:
            _absent[kind] = asked
    return found


# Kinds that this build of torch lacks, with the functions that said so: asking all of them anew
# would cost a snapshot as much as reading NumPy's and torch's states.
_absent: dict[str, tuple[Any, Any]] = {}


@functools.cache
def cpu() -> TorchGenerator:
    """The stream that torch draws from on the CPU; always the same object."""
    return TorchGenerator("torch.cpu", _torch().default_generator)


def _generators() -> list[Generator]:
    found: list[Generator] = [cpu()]
    for family in families():
        found.extend(family.devices() if family.started else [family])
    return found


def _seed(seed: int) -> None:
    _torch().manual_seed(seed)


def _resolve(name: str) -> Generator | None:
    """``torch.cuda`` after its start, ``torch.cuda:1`` before it."""
    if not name.startswith("torch."):
        return None
    for family in families():
        if name == family.name:
            return family
        kind, _, index = name.rpartition(":")
        if kind == family.name and index.isdigit() and not family.started:
            return DeviceGenerator(name, family, int(index))
    return None


def waiting() -> list[str]:
    """The kinds of device that will be seeded when they start."""
    return [family.kind for family in families() if not family.started]


ROOM = Room("torch", _generators, _seed, _resolve)
