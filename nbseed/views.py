"""The magics that look: ``%rng`` and ``%losses``."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from . import report, tables, why
from .answer import Answer
from .arguments import arguments, words_of
from .checkpoints import CHECKPOINTS, Ended
from .ledger import Ledger
from .rewinding import left_out
from .show import show_losses, worded
from .snapshot import restore, snapshot


@magics_class
class Views(Magics):
    """``%rng`` and ``%losses``; they have no settings."""

    def __init__(self, shell: Any, ledger: Ledger) -> None:
        super().__init__(shell)
        self.ledger = ledger

    # -- %rng --------------------------------------------------------------------------------------

    @worded
    @line_magic
    def rng(self, line: str) -> Any:
        """Look at the generators and the checkpoints.

        ::

            %rng                   the generators: fingerprints, who moved them last, draws
            %rng list              the checkpoints
            %rng restore NAME      put the generators back to a checkpoint
            %rng drop NAME         forget a checkpoint and its runs
            %rng diff A [B]        which generators differ between two checkpoints, or A and now
            %rng why [NAME]        why the last run differs from the first: causes and remedies
        """
        words = words_of("rng", line)
        action, names = (words[0], words[1:]) if words else ("show", [])
        actions = {"show": 0, "list": 0, "restore": 1, "drop": 1, "diff": (1, 2), "why": (0, 1)}
        if action not in actions:
            raise UsageError(f"%rng knows {', '.join(sorted(actions))}; got {action!r}")
        wanted = actions[action]
        counts = wanted if isinstance(wanted, tuple) else (wanted,)
        if len(names) not in counts:
            raise UsageError(f"%rng {action} takes {_counted(counts)}, got {len(names)}")
        return getattr(self, f"_rng_{action}")(*names)

    def _rng_show(self) -> Any:
        return tables.of_generators(self.ledger)

    def _rng_list(self) -> Any:
        return tables.of_checkpoints()

    def _rng_restore(self, name: str) -> None:
        checkpoint = CHECKPOINTS.find(name)
        done = restore(checkpoint.snapshot, strict=False)
        print(f"restored {name}, {checkpoint.snapshot.fingerprint[:8]}: {', '.join(done.names)}")
        for note in left_out(done):
            print(f"  note: {note}")

    def _rng_drop(self, name: str) -> None:
        count = CHECKPOINTS.drop(name)
        print(f"dropped {name}: {count} checkpoint{'' if count == 1 else 's'} and the runs")

    def _rng_diff(self, first: str, second: str | None = None) -> None:
        before = CHECKPOINTS.find(first).snapshot
        after = snapshot() if second is None else CHECKPOINTS.find(second).snapshot
        print(f"{first} and {second or 'now'}: {before.diff(after)}")

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


def _counted(counts: tuple[int, ...]) -> str:
    names = {0: "no name", 1: "one name", 2: "two names"}
    return " or ".join(names[count] for count in counts)
