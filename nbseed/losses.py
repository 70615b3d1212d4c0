"""Where loss values come from: ``backward()`` in a checkpointed cell, ``--track``, and `track`."""

from __future__ import annotations

import functools
import sys
import warnings
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LIMIT = 10_000_000
"""Values kept for one name in one run."""
_BATCH = 1024  # device values that wait to be read together


class Series:
    """The values of one name in one run, in the order they came.

    Values on an accelerator are kept there and read a thousand at a time: reading each when it
    comes would make the processor wait for the device at every step.
    """

    def __init__(self) -> None:
        self._values = array("d")
        self._waiting: list[Any] = []
        self.skipped = 0
        self.cut = 0

    def add(self, value: Any) -> None:
        """Append a number, or a tensor or array of one element; TypeError for anything else."""
        if len(self._values) + len(self._waiting) >= LIMIT:
            self.cut += 1
        elif isinstance(value, (float, int)):
            self._values.append(value)
        elif _is_tensor(value):
            self._add_tensor(value)
        elif getattr(value, "size", 1) == 1 and hasattr(value, "item"):  # NumPy and its kin
            self._values.append(float(value.item()))
        else:
            raise TypeError(f"a {type(value).__name__} is not a number")

    def _add_tensor(self, value: Any) -> None:
        if value.numel() != 1:
            raise TypeError(f"a tensor of shape {tuple(value.shape)} is not a number")
        if value.device.type == "cpu" and not self._waiting:
            self._values.append(value.item())
            return
        # A copy: the step after this one may write to the same memory.
        self._waiting.append(value.detach().clone().reshape(()))
        if len(self._waiting) >= _BATCH:
            self._read()

    def _read(self) -> None:
        torch = sys.modules["torch"]
        waiting, self._waiting = self._waiting, []
        kinds = {(value.device, value.dtype) for value in waiting}
        if len(kinds) == 1:
            self._values.extend(torch.stack(waiting).cpu().double().tolist())
        else:
            self._values.extend(value.item() for value in waiting)

    def values(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A float64 array of its own memory; waits for the device if values are still there."""
        import numpy as np

        if self._waiting:
            self._read()
        return np.array(self._values, dtype=np.float64)


class Recorder:
    """What one run records, by name."""

    def __init__(self, tracked: tuple[str, ...] = ()) -> None:
        self.series: dict[str, Series] = {}
        self.tracked = tracked

    def add(self, name: str, value: Any) -> None:
        series = self.series.get(name)
        if series is None:
            series = self.series[name] = Series()
        series.add(value)

    def skip(self, name: str) -> None:
        self.series.setdefault(name, Series()).skipped += 1

    def notes(self) -> list[str]:
        """One sentence for each name of which something is not kept."""
        said = []
        for name, series in self.series.items():
            if series.skipped:
                said.append(f"{name}: {series.skipped} values were not numbers and are not kept")
            if series.cut:
                said.append(f"{name}: {series.cut} values beyond {LIMIT} are not kept")
        said.extend(
            f"{name} was never assigned" for name in self.tracked if name not in self.series
        )
        return said


_recorders: list[Recorder] = []


def track(name: str, value: Any) -> None:
    """Record a number under `name` in the checkpointed cell that runs now; elsewhere do nothing.

    Parameters
    ----------
    value
        A number, or a tensor or array of one element, on any device; read later, without making
        the device wait.

    Raises
    ------
    TypeError
        If `value` is not one number.
    """
    for recorder in _recorders:
        if name in recorder.tracked:  # assigned by the cell, perhaps to more than numbers
            passed_through(name, value)
        else:
            recorder.add(name, value)


def passed_through(name: str, value: Any) -> Any:
    """Record `value` if it is a number; returns it as it is."""
    for recorder in _recorders:
        try:
            recorder.add(name, value)
        except TypeError:
            recorder.skip(name)
    return value


def tracked_names() -> set[str]:
    """The names whose assignments the running cells record."""
    return {name for recorder in _recorders for name in recorder.tracked}


# -- backward() ------------------------------------------------------------------------------------

_originals: dict[str, tuple[type, Callable[..., Any], Callable[..., Any]]] = {}
_scaled: list[tuple[Any, Any, Any]] = []  # what GradScaler.scale returned, was given, and its scale


def begin(recorder: Recorder) -> None:
    """Record into `recorder` until `end`."""
    _recorders.append(recorder)
    patch()


def end(recorder: Recorder) -> None:
    """Record into `recorder` no more; when none is left, nothing stays patched."""
    if recorder in _recorders:
        _recorders.remove(recorder)
    if not _recorders:
        unpatch()


def patch() -> None:
    """See ``backward()`` and ``GradScaler.scale()``, if torch is there and a run wants losses."""
    torch: Any = sys.modules.get("torch")
    if torch is None or _originals or not _recorders or not hasattr(torch, "Tensor"):
        return
    for name, owner, wrap in (
        ("backward", torch.Tensor, _seen_backward),
        ("scale", torch.amp.GradScaler, _seen_scale),
    ):
        original = getattr(owner, name)
        wrapper = wrap(original)
        _originals[name] = (owner, original, wrapper)
        setattr(owner, name, wrapper)


def unpatch() -> None:
    """Put the methods back; one that somebody else has wrapped since then is left to them."""
    for name, (owner, original, wrapper) in _originals.items():
        if vars(owner).get(name) is wrapper:
            setattr(owner, name, original)
    _originals.clear()
    _scaled.clear()


def _seen_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if _recorders:
            _record_loss(self)
        return original(self, *args, **kwargs)

    return backward


def _seen_scale(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any) -> Any:
        __tracebackhide__ = True
        scaled = original(self, outputs)
        if _recorders and _is_tensor(outputs):
            _scaled.append((scaled, outputs.detach(), getattr(self, "_scale", None)))
            del _scaled[:-8]  # a step scales few losses, and one backward() uses them up
        return scaled

    return scale


def _record_loss(loss: Any) -> None:
    try:
        if loss.numel() != 1:
            return
        value = _unscaled(loss)
        for recorder in _recorders:
            if "loss" not in recorder.tracked:  # else its assignments are recorded
                recorder.add("loss", value)
    except Exception as error:  # the user's backward() goes on whatever happens here
        warnings.warn(
            f"nbseed: a loss was not recorded ({type(error).__name__}: {error})",
            RuntimeWarning,
            stacklevel=3,
        )


def _unscaled(loss: Any) -> Any:
    """The loss as it was before a GradScaler multiplied it."""
    for index, (scaled, outputs, scale) in enumerate(_scaled):
        if scaled is loss:
            del _scaled[index]
            return outputs
        if _comes_from(loss, scaled):  # a sum or mean of scaled losses: all of one scale
            _scaled.clear()
            return loss if scale is None else loss.detach() / scale.to(loss.device)
    return loss


def _comes_from(loss: Any, scaled: Any, steps: int = 4) -> bool:
    """Whether `scaled` is among the last few operands that `loss` was computed from."""
    nodes, target = [loss.grad_fn], scaled.grad_fn
    for _ in range(steps):
        nodes = [node for parent in nodes if parent for node, _ in parent.next_functions]
        if target is not None and target in nodes:
            return True
    return False


def _is_tensor(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
