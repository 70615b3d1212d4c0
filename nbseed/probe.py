"""A run that looks for operators without a deterministic kernel: torch names them in warnings."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

_NAMED = re.compile(r"^(\S+) does not have a deterministic implementation").match
_PATTERN = r"\S+ does not have a deterministic implementation"


class Probe:
    """Deterministic algorithms with ``warn_only``, from `begin` to `end`.

    The kernels that torch takes may be other ones than without it; memory is not filled, so that
    values stay as they are.
    """

    def __init__(self) -> None:
        self.operators: dict[str, None] = {}
        self._before: tuple[bool, bool, bool] | None = None
        self._show: Any = None

    def begin(self) -> None:
        """Ask torch to warn, if it is imported, and listen."""
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return
        filling = torch.utils.deterministic.fill_uninitialized_memory
        self._before = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            filling,
        )
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        warnings.filterwarnings("always", message=_PATTERN)
        self._show = warnings.showwarning
        warnings.showwarning = self._listen

    def _listen(self, message: Warning | str, *args: Any, **kwargs: Any) -> None:
        named = _NAMED(str(message))
        if named and self._before is not None:  # somebody may have kept this function
            self.operators[named[1]] = None
        else:
            self._show(message, *args, **kwargs)

    def end(self) -> tuple[str, ...] | None:
        """Put everything back; the operators that were named, None if torch is not there."""
        if self._before is None:
            return None
        torch: Any = sys.modules["torch"]
        enabled, warn_only, filling = self._before
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = filling
        if warnings.showwarning == self._listen:
            warnings.showwarning = self._show
        ours = [f for f in warnings.filters if getattr(f[1], "pattern", None) == _PATTERN]
        for entry in ours:
            warnings.filters.remove(entry)  # type: ignore[attr-defined]
        self._before = None
        return tuple(self.operators)
