"""What a cell calls that no snapshot rewinds: entropy, re-seeding, processes, threads.

Nothing is patched before the cell and after it, and the calls return what they would have.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import random
import sys
import threading
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from ..errors import EntropyError
from ..generators import pinned
from ..patches import Patches, Wrap
from . import site
from .site import Site

SITES = 200
"""Different places noted in one run."""
_VALUES = 3  # seeds shown of one place


@dataclass(frozen=True)
class Call:
    """A call that was seen, and how often.

    Attributes
    ----------
    kind
        "entropy" (no seed controls it), "seed", "process" or "thread".
    what
        The call: ``np.random.default_rng()``.
    stream
        For a seed: the generator that got it, ``python``, ``numpy``, ``torch``, ``torch.cuda``.
    site
        Where it was made.
    count
        How many times.
    values
        For seeds: the first few, as text.
    digest
        For seeds: over all of them, so that two runs can be compared.
    last
        For seeds: the last one, as text.
    """

    kind: str
    what: str
    stream: str
    site: Site
    count: int = 1
    values: tuple[str, ...] = ()
    digest: int = 0
    last: str = ""


@dataclass
class _Tally:
    call: Call
    count: int = 0
    values: list[str] = field(default_factory=list)
    digest: int = 0
    last: str = ""

    def note(self, value: str | None) -> None:
        self.count += 1
        if value is not None:
            self.digest = zlib.crc32(value.encode(), self.digest)
            self.last = value
            if len(self.values) < _VALUES:
                self.values.append(value)

    def total(self) -> Call:
        return replace(
            self.call,
            count=self.count,
            values=tuple(self.values),
            digest=self.digest,
            last=self.last,
        )


class Watch:
    """What one run was seen to call."""

    def __init__(
        self,
        namespace: MutableMapping[str, Any],
        names: tuple[str, ...] = (),
        strict: Callable[[], bool] = lambda: False,
    ) -> None:
        self.namespace, self.names, self.strict = namespace, names, strict
        self.cut = 0  # calls at places beyond the bound
        self._tallies: dict[Any, _Tally | None] = {}

    def note(
        self,
        kind: str,
        what: str,
        frame: FrameType | None,
        stream: str = "",
        value: str | None = None,
    ) -> None:
        """Note a call made in `frame`, if the user's code is behind it; EntropyError if strict."""
        __tracebackhide__ = True
        # Inside random's own functions several places ask for one call of the user's.
        near = itertools.islice(site.beyond_random(frame), 4)
        outermost = site.outermost(frame, self.namespace)  # of many lines to one place in a library
        far = () if outermost is None else (outermost.f_code, outermost.f_lasti)
        key = (kind, what, far, *((f.f_code, f.f_lasti) for f in near))
        if key not in self._tallies:
            if len(self._tallies) >= SITES:
                self.cut += 1
                return
            # Another thread may have been here since.
            self._tallies.setdefault(key, self._new(kind, what, frame, stream))
        tally = self._tallies[key]
        if tally is None:
            return
        tally.note(value)
        if kind == "entropy" and self.strict():
            raise EntropyError(strictly(tally.call))

    def _new(self, kind: str, what: str, frame: FrameType | None, stream: str) -> _Tally | None:
        found = site.locate(frame, self.namespace)
        if found is None or found.innocent:
            return None
        # What a library makes while it is imported, it makes for itself.
        its_own = found.for_names or found.importing or what in _FOR_NAMES
        if kind == "entropy" and not found.users and its_own:
            return None
        shown = site.short(found.call) if kind == "entropy" else ""
        if what == "SystemRandom()" and shown and not shown.startswith(("random.", "secrets.")):
            shown = f"{shown} of a SystemRandom"
        return _Tally(Call(kind, shown or what, stream, found))

    def calls(self) -> tuple[Call, ...]:
        """What was seen, in the order it first came."""
        return tuple(tally.total() for tally in self._tallies.values() if tally is not None)


# A library that calls these makes names and identities; unseeded generators are another matter.
_FOR_NAMES = {"os.urandom()", "os.getrandom()", "uuid.uuid1()", "SystemRandom()"}


def strictly(call: Call) -> str:
    """The message of ``%seed N --strict``."""
    where = f"line {call.site.line}" if call.site.line else call.site.through or "the cell"
    by = f", in {call.site.through}" if call.site.through and call.site.line else ""
    return f"{call.what} without a seed ({where}{by}): no seed controls what it gives"


_watches: list[Watch] = []
_patches = Patches()


def begin(watch: Watch) -> None:
    """Let a watch see calls until `end`."""
    _watches.append(watch)
    patch()
    _patches.alias(watch.namespace, watch.names)


def end(watch: Watch) -> None:
    """Let it see no more; when none is left, nothing stays patched."""
    if watch in _watches:
        _watches.remove(watch)
    if not _watches:
        _patches.undo()


@contextmanager
def guarded(namespace: MutableMapping[str, Any], strict: Callable[[], bool]) -> Iterator[None]:
    """Within the block entropy is an error while `strict()` says so, and pinned entropy is fed."""
    guard = Watch(namespace, tuple(namespace), strict)
    begin(guard)
    try:
        yield
    finally:
        end(guard)


def patch() -> None:
    """Wrap what is imported by now, if somebody watches; for what arrives later call it then."""
    if not _watches:
        return
    _patches.put(random, "_urandom", _asked("os.urandom()"))
    _patches.put(random.Random, "seed", _seen_python_object)
    _patches.put(random, "seed", _seen_seed("python"))
    _patches.put(os, "urandom", _asked("os.urandom()"))
    _patches.put(os, "getrandom", _asked("os.getrandom()"))
    _patches.put(uuid, "_generate_time_safe", _asked("uuid.uuid1()"))
    _patches.put(threading.Thread, "start", _seen_start("thread"))
    numpy = sys.modules.get("numpy.random.bit_generator")
    if numpy is not None and "numpy.random.mtrand" in sys.modules:
        _patches.put(numpy, "randbits", _seen_randbits)
        _patches.put(sys.modules["numpy.random"], "seed", _seen_seed("numpy"))
        _patches.put(sys.modules["numpy.random.mtrand"], "seed", _seen_seed("numpy"))
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None:
        _patches.put(cuda, "manual_seed_all", _seen_torch)
    defined = sys.modules.get("torch.cuda.random")  # pickle looks it up there
    if defined is not None:
        _patches.put(defined, "manual_seed_all", _seen_torch)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        _patches.put(processes.BaseProcess, "start", _seen_start("process"))
    subprocess = sys.modules.get("subprocess")
    if subprocess is not None:
        _patches.put(subprocess.Popen, "__init__", _seen_start("process"))


def _note(
    kind: str,
    what: str,
    frame: FrameType | None,
    stream: str = "",
    value: str | None = None,
    unless: Callable[[FrameType], bool] | None = None,
) -> None:
    __tracebackhide__ = True
    refused = None
    for watch in list(_watches):
        try:
            if unless is not None and frame is not None and unless(frame):
                return
            watch.note(kind, what, frame, stream, value)
        except EntropyError as error:  # only when the others have seen the call
            refused = error
        except Exception as error:  # the user's call goes on whatever happens here
            said = f"nbseed: a call of {what} was not noted ({type(error).__name__}: {error})"
            warnings.warn(said, RuntimeWarning, stacklevel=4)
    if refused is not None:
        raise refused


def _shown(value: object) -> str:
    if isinstance(value, (int, float, str, bytes)):
        text = repr(value)
        return text if len(text) <= 24 else f"{text[:21]}..."
    kind = type(value)
    if kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return _shown(value.tolist()) if getattr(value, "size", 2) == 1 else f"an {kind.__name__}"
    return f"a {kind.__name__}"


# -- the wrappers; each calls what it wraps with what it was given ---------------------------------


def _named(original: Any, wrapper: Any) -> Any:
    """The wrapper under the name of what it wraps.

    Not `functools.wraps`: its ``__wrapped__`` shows the way to those who look through wrappers.
    """
    for key in ("__name__", "__qualname__", "__module__", "__doc__"):
        try:
            setattr(wrapper, key, getattr(original, key))
        except (AttributeError, TypeError):
            continue
    with suppress(Exception):  # one written in C tells none, somebody's own cannot be asked
        wrapper.__signature__ = _signature(original)
    if hasattr(original, "__self__"):  # a module's name for a method: pickle looks it up there
        wrapper.__qualname__ = wrapper.__name__
        if wrapper.__module__ == os.name:
            wrapper.__module__ = "os"
    return wrapper


@functools.lru_cache(maxsize=100)
def _signature(original: Any) -> inspect.Signature:
    return inspect.signature(original)


def _asked(what: str) -> Wrap:
    """Of a function that reads the operating system's entropy."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            frame = sys._getframe(1)
            # random's own name for os.urandom is the same function, and gets the same wrapper.
            is_randoms = frame.f_globals.get("__name__") == "random"
            if not (is_randoms and site.is_retry(frame)):
                _note("entropy", "SystemRandom()" if is_randoms else what, frame)
            return original(*args, **kwargs)

        return _named(original, call)  # type: ignore[no-any-return]

    return wrap


def _seen_randbits(original: Callable[..., Any]) -> Callable[..., Any]:
    def randbits(bits: int) -> Any:
        __tracebackhide__ = True
        if pinned.is_on():
            return pinned.randbits(bits)
        _note("entropy", "a NumPy generator", sys._getframe(1), unless=site.is_seeded)
        return original(bits)

    return _named(original, randbits)  # type: ignore[no-any-return]


def _seen_python_object(original: Callable[..., Any]) -> Callable[..., Any]:
    def seed(self: Any, a: Any = None, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        frame = sys._getframe(1)
        if a is None:
            _note("entropy", "random.Random()", frame, unless=site.is_unpickled)
        elif self is getattr(random.getrandbits, "__self__", None):
            _note("seed", "random.seed()", frame, "python", _shown(a))
        return original(self, a, *args, **kwargs)

    return _named(original, seed)  # type: ignore[no-any-return]


def _seen_seed(stream: str) -> Wrap:
    """Of a library's global ``seed(value=None)``."""
    what = {"python": "random.seed()", "numpy": "np.random.seed()"}[stream]

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def seed(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            frame = sys._getframe(1)
            value = args[0] if args else kwargs.get("seed", kwargs.get("a"))
            if value is not None:
                _note("seed", what, frame, stream, _shown(value))
            elif not (stream == "numpy" and pinned.is_on()):
                _note("entropy", what, frame, stream)
            return original(*args, **kwargs)

        return _named(original, seed)  # type: ignore[no-any-return]

    return wrap


# Once torch._dynamo is imported, torch.manual_seed is wrapped.
_TORCHS_OWN = {"torch.random", "torch._compile", "torch._dynamo.eval_frame"}


def _seen_torch(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of ``torch.cuda.manual_seed_all``.

    By way of it ``torch.manual_seed`` and ``torch.seed`` reach the devices, whatever name the user
    has for them.
    """

    def manual_seed_all(seed: Any) -> Any:
        __tracebackhide__ = True
        frame: FrameType | None = sys._getframe(1)
        name, stream = "torch.cuda.manual_seed_all()", "torch.cuda"
        while frame is not None and frame.f_globals.get("__name__") in _TORCHS_OWN:
            if frame.f_globals["__name__"] == "torch.random":
                stream = "torch"
                # The outermost of them is what the user called, all others are its inner parts.
                name = f"torch.{frame.f_code.co_name}()"
            frame = frame.f_back
        if name == "torch.seed()":
            _note("entropy", name, frame, stream)
        else:
            _note("seed", name, frame, stream, _shown(seed))
        return original(seed)

    return _named(original, manual_seed_all)  # type: ignore[no-any-return]


def _seen_start(kind: str) -> Wrap:
    """Of a method that starts a process or a thread."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def start(self: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            _note(kind, type(self).__name__, sys._getframe(1))
            return original(self, *args, **kwargs)

        return _named(original, start)  # type: ignore[no-any-return]

    return wrap
