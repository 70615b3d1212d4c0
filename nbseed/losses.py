"""Where loss values come from: ``backward()`` in a checkpointed cell, ``--track``, and `track`."""

from __future__ import annotations

import functools
import sys
import warnings
from array import array
from collections.abc import Callable
from typing import Any

from .patches import Patches

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
        elif _is_tensor(value):
            self._add_tensor(value)
        else:
            number = _number(value)
            if self._waiting:  # what came before it goes before it
                self._read()
            self._values.append(number)

    def add_scalar(self, value: Any) -> None:
        """The same for a tensor of one element: each step of a training loop comes here."""
        if value.is_cpu and not self._waiting and len(self._values) < LIMIT:
            number = value.item()
            if type(number) is float:
                self._values.append(number)
                return
        self.add(value)

    def _add_tensor(self, value: Any) -> None:
        if value.numel() != 1:
            raise TypeError(f"a tensor of shape {tuple(value.shape)} is not a number")
        if value.is_complex() or value.is_meta:
            kind = "complex tensor" if value.is_complex() else "tensor without data"
            raise TypeError(f"a {kind} is not a number")
        if value.device.type == "cpu" and not self._waiting:
            self._values.append(_number(value.item()))
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

    def values(self) -> array[float]:
        """The doubles, a copy; waits for the device if values are still there.

        Not NumPy's array: a run ends in a kernel where the user may not have imported NumPy.
        """
        if self._waiting:
            self._read()
        return self._values[:]


def _number(value: Any) -> float:
    try:
        if isinstance(value, int) and int(float(value)) != value:
            raise TypeError(f"the integer {value} is not a double")
        if isinstance(value, (float, int)):
            return float(value)
        if getattr(value, "size", 1) == 1 and hasattr(value, "item"):  # NumPy and its kin
            item = value.item()
            if not isinstance(item, (str, bytes)):
                return float(item)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"a {type(value).__name__} is not a number")


class Recorder:
    """What one run records, by name."""

    def __init__(self, tracked: tuple[str, ...] = ()) -> None:
        self.series: dict[str, Series] = {}
        self.tracked = tracked

    def add(self, name: str, value: Any) -> None:
        series = self.series.get(name)
        if series is None:
            series = Series()
            series.add(value)
            self.series[name] = series
        else:
            series.add(value)

    def add_loss(self, value: Any) -> None:
        """Add a tensor of one element under "loss"."""
        series = self.series.get("loss")
        if series is None:
            self.add("loss", value)
        else:
            series.add_scalar(value)

    def skip(self, name: str) -> None:
        self.series.setdefault(name, Series()).skipped += 1

    def notes(self) -> list[str]:
        """One sentence for each name of which something is not kept."""
        said = []
        for name, series in self.series.items():
            if series.skipped:
                values = "1 value was no number and is"
                if series.skipped > 1:
                    values = f"{series.skipped} values were not numbers and are"
                said.append(f"{name}: {values} not kept")
            if series.cut:
                values = "1 value" if series.cut == 1 else f"{series.cut} values"
                verb = "is" if series.cut == 1 else "are"
                said.append(f"{name}: {values} beyond {LIMIT} {verb} not kept")
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
        recorder.add(name, value)


def assigned(name: str, value: Any) -> None:
    """Record a value that a cell has assigned, in the runs that track its name, if it is a number.

    The cell assigns what it likes; nothing is raised here.
    """
    for recorder in _recorders:
        if name in recorder.tracked:
            try:
                recorder.add(name, value)
            except Exception:  # whatever the value's own methods raise
                recorder.skip(name)


def passed_through(name: str, value: Any) -> Any:
    """The same within an expression; returns the value as it is."""
    assigned(name, value)
    return value


def tracked_names() -> set[str]:
    """The names whose assignments the running cells record."""
    return {name for recorder in _recorders for name in recorder.tracked}


# -- backward() ------------------------------------------------------------------------------------

_patches = Patches()
_generation = 0  # a wrapper that somebody else's holds on to is of an older one, and sees nothing
_under_way: set[int] = set()  # losses whose backward() runs
_UNSCALED = "nbseed: unscaled"  # in the graph node of a scaled loss: what it was, and its scale
_scales = False  # whether a GradScaler has scaled anything since `patch`


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
    global _generation
    torch: Any = sys.modules.get("torch")
    if torch is None or _patches or not _recorders or not hasattr(torch, "Tensor"):
        return
    _generation += 1
    _patches.put(torch.Tensor, "backward", _seen_backward)
    _patches.put(torch.amp.GradScaler, "scale", _seen_scale)


def unpatch() -> None:
    """Put the methods back; one that somebody else has wrapped since then is left to them."""
    global _scales
    _scales = False
    _patches.undo()


def _seen_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    born = _generation
    plain: type = sys.modules["torch"].Tensor

    @functools.wraps(original)
    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if born != _generation or not _recorders:
            return original(self, *args, **kwargs)
        if type(self) is plain:
            _record_loss(self)
            return original(self, *args, **kwargs)
        # A subclass of Tensor comes back here by way of __torch_function__: one call of the user's
        # is one loss.
        if id(self) in _under_way:
            return original(self, *args, **kwargs)
        _record_loss(self)
        _under_way.add(id(self))
        try:
            return original(self, *args, **kwargs)
        finally:
            _under_way.discard(id(self))

    return backward


def _seen_scale(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any) -> Any:
        __tracebackhide__ = True
        scaled = original(self, outputs)
        if _recorders:
            try:
                _mark(scaled, outputs, self)
            except Exception as error:  # the user's scale() has its result already
                _warn("a loss that a GradScaler scaled was not noted", error)
        return scaled

    return scale


def _mark(scaled: Any, outputs: Any, scaler: Any) -> None:
    """Note in a scaled loss's graph what it was; the note lives as long as the graph."""
    global _scales
    if isinstance(outputs, (list, tuple)):
        for pair in zip(scaled, outputs, strict=True):
            _mark(*pair, scaler)
    elif _is_tensor(outputs) and scaled is not outputs and scaled.grad_fn is not None:
        scaled.grad_fn.metadata[_UNSCALED] = (outputs.detach(), scaler._scale)
        _scales = True


def _record_loss(loss: Any) -> None:
    try:
        if loss.numel() != 1:
            return
        value = _unscaled(loss) if _scales else loss
        for recorder in _recorders:
            if "loss" not in recorder.tracked:  # else its assignments are recorded
                recorder.add_loss(value)
    except Exception as error:  # the user's backward() goes on whatever happens here
        _warn("a loss was not recorded", error)


def _warn(what: str, error: Exception) -> None:
    text = f"nbseed: {what} ({type(error).__name__}: {error})"
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def _unscaled(loss: Any, steps: int = 4) -> Any:
    """The loss as it was before a GradScaler multiplied it.

    A sum or mean of scaled losses, which all have one scale, is divided by it.
    """
    nodes = [loss.grad_fn]
    for step in range(steps + 1):
        for node in nodes:
            found = node.metadata.get(_UNSCALED) if node is not None else None
            if found is not None:
                outputs, scale = found
                return outputs if step == 0 else loss.detach() / scale.to(loss.device)
        nodes = [parent for node in nodes if node for parent, _ in node.next_functions]
    return loss


def _is_tensor(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
