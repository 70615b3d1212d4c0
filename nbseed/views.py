"""The magics that look: ``%rng``, ``%losses`` and ``%rngpanel``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

from . import actions, report, tables, why
from .answer import Answer
from .arguments import arguments, words_of
from .checkpoint import Ended
from .checkpoints import CHECKPOINTS
from .ledger import LEDGER
from .show import show_losses, worded

if TYPE_CHECKING:
    from .panel.widget import Panel

# How many names each action of %rng takes.
_ACTIONS: dict[str, int | tuple[int, int]] = {
    "show": 0, "list": 0, "checkpoint": 1, "restore": 1, "drop": 1, "diff": (1, 2), "save": 1,
    "load": (1, 2), "sync": 1, "why": (0, 1),
}  # fmt: skip

_FILES = {"save": "FILE", "load": "FILE [--partial]"}


@magics_class
class Views(Magics):
    """``%rng``, ``%losses`` and ``%rngpanel``; they have no settings."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.panel: Panel | None = None

    # -- %rng --------------------------------------------------------------------------------------

    @worded
    @line_magic
    def rng(self, line: str) -> Any:
        """Look at the generators and the checkpoints.

        ::

            %rng                   the generators: fingerprints, who moved them last, draws
            %rng list              the checkpoints
            %rng checkpoint NAME   take the checkpoint of the cell NAME here, without a run
            %rng restore NAME      put the generators back to a checkpoint
            %rng drop NAME         forget a checkpoint and its runs
            %rng diff A [B]        which generators differ between two checkpoints, or A and now
            %rng save FILE         write the state of every generator to a file
            %rng load FILE         put the generators to the states in a file, all or none;
                                   with --partial those that are there and fit
            %rng sync SOURCE       give a device's state, as torch.cuda:0, to its sisters
            %rng why [NAME]        why the last run differs from the first: causes and remedies
        """
        words = words_of("rng", line)
        action, names = (words[0], words[1:]) if words else ("show", [])
        if action not in _ACTIONS:
            raise UsageError(f"%rng knows {', '.join(sorted(_ACTIONS))}; got {action!r}")
        wanted = _ACTIONS[action]
        counts = wanted if isinstance(wanted, tuple) else (wanted,)
        if len(names) not in counts:
            takes = _FILES.get(action) or _counted(counts)
            raise UsageError(f"%rng {action} takes {takes}, got {len(names)}")
        return getattr(self, f"_rng_{action}")(*names)

    def _rng_show(self) -> Any:
        return tables.of_generators(LEDGER)

    def _rng_list(self) -> Any:
        return tables.of_checkpoints()

    def _rng_checkpoint(self, name: str) -> None:
        print(actions.checkpoint(name))

    def _rng_restore(self, name: str) -> None:
        print(actions.restore(name))

    def _rng_drop(self, name: str) -> None:
        print(actions.drop(name))

    def _rng_diff(self, first: str, second: str | None = None) -> None:
        print(actions.compare(first, second))

    def _rng_save(self, path: str) -> None:
        print(actions.save(path))

    def _rng_load(self, *words: str) -> None:
        paths = [word for word in words if word != "--partial"]
        if len(paths) != 1:
            raise UsageError(f"%rng load takes {_FILES['load']}, got {' '.join(words)}")
        print(actions.load(paths[0], partial="--partial" in words))

    def _rng_sync(self, source: str) -> None:
        print(actions.synchronize(source))

    def _rng_why(self, name: str | None = None) -> Any:
        name = name or CHECKPOINTS.latest_name()
        base, run = CHECKPOINTS.pair(name)
        if base is None:
            print(f"{name} has run once from its checkpoint: nothing to compare it with yet")
            for said in why.warnings_of(run):
                print(f"worth knowing: {said}")
            return None
        ended = Ended(run, base, False, False)
        return Answer(report.sentence(ended), why.explain(base, run))

    # -- %losses -----------------------------------------------------------------------------------

    @worded
    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="A checkpoint; by default the latest.")
    @argument("--metric", default="loss", metavar="M", help="What was recorded under this name.")
    @argument("--last", type=int, metavar="K", help="Only the last K runs.")
    @argument("--log", action="store_true", help="A logarithmic axis.")
    @argument("--save", metavar="FILE", help="Write the picture to a file as well.")
    @line_magic
    def losses(self, line: str) -> None:
        """Draw the losses of a cell's runs over each other.

        The title says whether they are bit-identical or where they part; the lower part shows the
        difference from the first run.

        Examples
        --------
        ::

            %losses
            %losses train --metric accuracy --last 5 --save runs.png
        """
        args = arguments(self.losses, line)
        name = args.name or CHECKPOINTS.latest_name()
        show_losses(self.shell, name, args)

    # -- %rngpanel ---------------------------------------------------------------------------------

    @worded
    @line_magic
    def rngpanel(self, line: str) -> None:
        """Show the panel: every generator's state after each cell, and buttons for the magics.

        Shown again it is the same panel in another place. ``nbseed.Panel()`` makes one of its own.
        """
        if line.strip():
            raise UsageError(f"%rngpanel takes nothing, got {line.strip()!r}")
        from .panel.widget import Panel

        if self.panel is None or self.panel.is_closed:
            self.panel = Panel()
        display(self.panel)


def _counted(counts: tuple[int, ...]) -> str:
    names = {0: "no name", 1: "one name", 2: "two names"}
    return " or ".join(names[count] for count in counts)
