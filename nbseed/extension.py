"""Load and unload: each line of one has its mirror in the other."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import cells, generators, seeding
from .checkpoints import CHECKPOINTS
from .completion import complete
from .ledger import LEDGER
from .magics import NBSeed
from .show import warn_of_fault
from .views import Views

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class _Loaded:
    """What `load` has put into a shell."""

    def __init__(self, shell: Any) -> None:
        self.magics = NBSeed(shell)
        self.views = Views(shell)
        self.covered = {  # other magics of our names
            kind: {
                name: known[name]
                for ours in (self.magics, self.views)
                for name in ours.magics[kind]
                if name in known
            }
            for kind, known in shell.magics_manager.magics.items()
        }
        self.unfold: Callable[[list[str]], list[str]] = functools.partial(
            _unfold, transform=shell.transform_cell
        )
        self.pre = _safe("the beginning of the cell", self.magics.enter)
        self.post = _safe("the end of the cell", self.magics.leave)


_loaded: dict[int, _Loaded] = {}


def load(shell: InteractiveShell) -> None:
    """Put the magics, hooks and transformers into a shell; twice is once."""
    if id(shell) in _loaded:
        return
    parts = _Loaded(shell)
    shell.register_magics(parts.magics, parts.views)
    shell.input_transformers_post.append(parts.unfold)
    shell.ast_transformers.append(parts.magics)  # type: ignore[arg-type]
    shell.events.register("pre_run_cell", parts.pre)
    shell.events.register("post_run_cell", parts.post)
    _matchers(shell).append(complete)
    generators.look_into(shell.user_ns)
    _loaded[id(shell)] = parts


def unload(shell: InteractiveShell) -> None:
    """Take them out again, with the seed in force, the checkpoints and every patch."""
    parts = _loaded.pop(id(shell), None)
    if parts is None:
        return
    generators.look_into(None)
    _matchers(shell).remove(complete)
    shell.events.unregister("post_run_cell", parts.post)
    shell.events.unregister("pre_run_cell", parts.pre)
    shell.ast_transformers.remove(parts.magics)  # type: ignore[arg-type]
    shell.input_transformers_post.remove(parts.unfold)
    _deregister(shell, parts.views)
    _deregister(shell, parts.magics)
    for kind, covered in parts.covered.items():
        shell.magics_manager.magics[kind].update(covered)
    parts.magics.frames.close()
    _close_panels()
    LEDGER.close()
    CHECKPOINTS.clear()
    seeding.forget()


def _close_panels() -> None:
    """Close what was opened; where no panel was, its module is not imported for it."""
    widget = sys.modules.get("nbseed.panel.widget")
    if widget is not None:
        widget.close_all()


def _deregister(shell: Any, magics: NBSeed | Views) -> None:
    """The mirror of ``register_magics``, which IPython does not have."""
    manager = shell.magics_manager
    manager.registry.pop(type(magics).__name__, None)
    for kind, names in magics.magics.items():
        for name in names:
            manager.magics[kind].pop(name, None)
    if magics in shell.configurables:
        shell.configurables.remove(magics)


def _unfold(lines: list[str], transform: Callable[[str], str]) -> list[str]:
    try:
        return cells.unfold(lines, transform)
    except SyntaxError:  # IPython's own word on bad input, and it stops the cell
        raise
    except Exception as error:
        warn_of_fault("the rewrite of the cell", error)
        return lines


def _safe(where: str, hook: Callable[[Any], None]) -> Callable[[Any], None]:
    def call(argument: Any) -> None:
        try:
            hook(argument)
        except Exception as error:
            warn_of_fault(where, error)

    return call


def _matchers(shell: Any) -> list[Any]:
    return shell.Completer.custom_matchers  # type: ignore[no-any-return]
