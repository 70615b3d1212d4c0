"""Re-run notebook cells with identical random draws; when a re-run still differs, say why.

In a notebook: ``%load_ext nbseed``, then ``%seed 3`` and ``%%rngcheckpoint`` at the head of a cell.
From Python: the names below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import losses as losses  # cells that track variables call it by this name
from .checkpoints import runs
from .errors import NbseedError
from .generators import register, unregister
from .losses import track
from .overlay import overlay
from .run import Run
from .seeding import isolated, seed, seed_worker
from .snapshot import Snapshot, fingerprints, restore, snapshot

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .panel.widget import Panel

__version__ = "0.1.0"

__all__ = [
    "NbseedError",
    "Panel",
    "Run",
    "Snapshot",
    "fingerprints",
    "isolated",
    "overlay",
    "register",
    "restore",
    "runs",
    "seed",
    "seed_worker",
    "snapshot",
    "track",
    "unregister",
]


def __getattr__(name: str) -> Any:
    """``nbseed.Panel``: ipywidgets is imported when it is asked for."""
    if name == "Panel":
        from .panel.widget import Panel

        return Panel
    raise AttributeError(f"module 'nbseed' has no attribute {name!r}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext nbseed``."""
    from .extension import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext nbseed``: the shell is as it was."""
    from .extension import unload

    unload(shell)
