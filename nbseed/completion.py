"""Completion of the magics' options and of checkpoint names."""

from __future__ import annotations

import re

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from . import generators
from .checkpoints import CHECKPOINTS
from .sync import families

_OPTIONS = {
    "seed": ("--deterministic", "--each-cell", "--strict", "--pin-entropy", "--new"),
    "rngcheckpoint": ("--runs", "--track", "--with", "--probe", "--isolate", "--reset", "--keep"),
    "losses": ("--metric", "--last", "--log", "--save"),
    "rng": (),
}
_ACTIONS = ("show", "list", "checkpoint", "restore", "drop", "diff", "save", "load", "sync", "why")
_HEAD = re.compile(r"\s*%{1,2}(seed|rngcheckpoint|losses|rng)\s+(.*)")


def words(line: str) -> list[str]:
    """What may stand at the end of a line that begins with one of the magics."""
    head = _HEAD.fullmatch(line)
    if head is None:
        return []
    magic, rest = head.groups()
    before = rest.split() if rest.endswith(" ") or not rest else rest.split()[:-1]
    if magic == "rng":
        if before and before[0] == "sync":
            existing = generators.existing(()).generators
            return [name for sisters in families(existing).values() for name in sisters]
        named = before and before[0] in ("checkpoint", "restore", "drop", "diff", "why")
        return CHECKPOINTS.names() if named else list(_ACTIONS) if not before else []
    names = CHECKPOINTS.names() if magic != "seed" and not before else []
    metrics = {name for run in CHECKPOINTS.runs() for name in run.values}
    if magic == "losses" and before and before[-1] == "--metric":
        return sorted(metrics)
    return [*names, *(option for option in _OPTIONS[magic] if option not in before)]


@context_matcher(identifier="nbseed")
def complete(context: CompletionContext) -> dict[str, object]:
    """IPython's matcher: completions for the token under the cursor."""
    token = context.line_with_cursor.rpartition(" ")[2]
    fitting = [word for word in words(context.line_with_cursor) if word.startswith(token)]
    # IPython replaces what it takes for the token; it stops at a dash.
    cut = len(token) - len(context.token) if token.endswith(context.token) else 0
    return {
        "completions": [SimpleCompletion(text=word[cut:], type="param") for word in fitting],
        "suppress": bool(fitting),
    }
