"""What became of a run, as one line of text, as HTML, and as data."""

from __future__ import annotations

import html
from typing import Any

from .checkpoint import Ended
from .outcome import Outcome, compare
from .run import Run
from .why import explain, warnings_of

MIME = "application/vnd.nbseed.runs+json"
VERSION = 1
_SHOWN = 20  # lines; a cell under %%timeit may have run thousands of times


def sentence(ended: Ended) -> str:
    """One line: ``train, run 2: rewound to 4f09c1d2; same draws; losses bit-identical``."""
    run, base = ended.run, ended.base
    parts = [_how_it_began(ended)]
    if base is None:
        parts.append(_draws_of(run))
        parts += [_recorded(name, len(values)) for name, values in run.values.items()]
        parts += _how_it_ended(run)
        return f"{run.name}, run {run.number}: {'; '.join(parts)}"
    outcome = compare(base, run)
    whole = run.status == base.status == "ok"
    alike = (run.status, run.error) == (base.status, base.error)
    parts += [f"{said}, as run {base.number}" if alike else said for said in _how_it_ended(run)]
    if base.status != "ok" and not alike:
        parts.append(f"run {base.number} was {_ended_as(base)}")
    if not outcome.elsewhere:
        parts.append(_alike(run))
    elif whole:
        parts.append(f"other draws: {_elsewhere(base, run, outcome)}")
    parts += _losses(outcome)
    if outcome.values and not outcome.parted:
        verb = "differs" if len(outcome.values) == 1 else "differ"
        parts.append(f"{_list(outcome.values)} {verb}")
    why = explain(base, run).in_short if whole else ""
    if why:
        parts.append(f"why: {why}")
    return f"{run.name}, run {run.number}: {'; '.join(parts)}"


def _how_it_began(ended: Ended) -> str:
    run = ended.run
    if ended.is_first:
        under = ", no seed in force" if run.seed is None else f" under seed {run.seed}"
        return f"checkpoint {run.start[:8]} taken{under}"
    return f"rewound to {run.start[:8]}"


def _how_it_ended(run: Run) -> list[str]:
    if run.status == "ok":
        return []
    return [_ended_as(run)]


def _ended_as(run: Run) -> str:
    if run.status == "interrupted":
        return "interrupted"
    return f"ended by {run.error}" if run.error else "ended by an error"


def _moved(run: Run) -> list[str]:
    def moved(name: str, end: str) -> bool:
        # A device that started in the cell was its kind's queue before: torch.cuda, torch.cuda:0.
        return run.starts.get(name, end) != end or name.rpartition(":")[0] in run.starts

    return [name for name, end in run.ends.items() if moved(name, end)]


def _alike(run: Run) -> str:
    if not _moved(run):
        return _NONE_MOVED
    return "same draws from what was rewound" if run.partial else "same draws"


def _draws_of(run: Run) -> str:
    moved = _moved(run)
    counted = run.observed.draws if run.observed else {}
    said = [
        f"{name} ({counted[name]})" if name in counted and counted[name].kind != "moved" else name
        for name in moved
    ]
    return f"drew from {_list(said)}" if said else _NONE_MOVED


def _elsewhere(base: Run, run: Run, outcome: Outcome) -> str:
    """Which generators ended elsewhere; with the numbers of draws, where these differ."""
    first = base.observed.draws if base.observed else {}
    now = run.observed.draws if run.observed else {}
    told = [n for n in outcome.elsewhere if n in now and n in first and now[n] != first[n]]
    others = [name for name in outcome.elsewhere if name not in told]
    said = [_list([f"{n} {now[n]}, run {base.number} {first[n]}" for n in told])] if told else []
    said += [f"{_list(others)} ended elsewhere"] if others else []
    return "; ".join(said)


# Not "drew nothing": a generator that lives only inside the cell leaves no trace.
_NONE_MOVED = "no known generator moved"


def _losses(outcome: Outcome) -> list[str]:
    said = []
    for name, step, first, second in outcome.parted:
        what = "losses part" if name == "loss" else f"{name} parts"
        said.append(f"{what} at step {step} ({first!r}, now {second!r})")
    parted = {name for name, *_ in outcome.parted}
    for name, steps in outcome.steps.items():
        if name in parted or (steps == 0 and name not in outcome.unequal):
            continue
        what = "losses" if name == "loss" else name
        if name in outcome.unequal:
            before, now = outcome.unequal[name]
            said.append(
                f"{what} bit-identical over the common {_steps(steps)} ({before}, now {now})"
            )
        else:
            said.append(f"{what} bit-identical ({_steps(steps)})")
    if outcome.lacking:
        said.append(f"recorded in one run only: {_list(outcome.lacking)}")
    return said


def _recorded(name: str, count: int) -> str:
    if name == "loss":
        return "1 loss" if count == 1 else f"{count} losses"
    return f"1 value of {name}" if count == 1 else f"{count} values of {name}"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _list(names: tuple[str, ...] | list[str], most: int = 6) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def notes(ended: Ended) -> list[str]:
    """What the user should know beside the outcome, a sentence each."""
    said = list(ended.run.notes)
    if ended.base is None:
        said += warnings_of(ended.run)
    if ended.met_other:
        said.append(
            "the cells before this one now leave another state than when its checkpoint was taken; "
            "--reset takes it anew"
        )
    return said


def text(reports: list[Ended]) -> str:
    """The lines of all runs of one cell, with their notes."""
    lines = []
    for ended in reports[-_SHOWN:]:
        lines.append(sentence(ended))
        lines += [f"  note: {note}" for note in notes(ended)]
    if len(reports) > _SHOWN:
        lines.insert(0, f"{len(reports) - _SHOWN} earlier runs of this cell are not shown")
    return "\n".join(lines)


def as_html(reports: list[Ended]) -> str:
    """The same for a notebook. It takes the page's own colours, so it fits any theme."""
    rows = []
    for ended in reports[-_SHOWN:]:
        mark, colour, word = _mark(ended)
        head, _, rest = sentence(ended).partition(": ")
        rows.append(
            f'<div style="border-left:3px solid {colour};padding:1px 0 1px 8px">'
            f'<span role="img" aria-label="{word}" title="{word}" style="color:{colour};'
            f'font-weight:bold">{mark}</span> <b>{html.escape(head)}</b>: {html.escape(rest)}'
            + "".join(
                f'<div style="opacity:.75;padding-left:1.2em">{html.escape(note)}</div>'
                for note in notes(ended)
            )
            + "</div>"
        )
    if len(reports) > _SHOWN:
        rows.insert(0, f"<div>{len(reports) - _SHOWN} earlier runs are not shown</div>")
    return (
        '<div class="nbseed-report" style="font-size:90%;line-height:1.5;margin:2px 0">'
        + "".join(rows)
        + "</div>"
    )


def _mark(ended: Ended) -> tuple[str, str, str]:
    """A sign, a colour that both themes and colour-blind eyes can tell, and the word for it."""
    if ended.run.status != "ok":
        return "!", "#b8860b", "not finished"
    if ended.base is None:
        return "●", "#7f7f7f", "checkpoint taken"
    if compare(ended.base, ended.run).same:
        return "=", "#2a7fbf", "same as the first run"
    return "≠", "#d55e00", "differs from the first run"


def mark_of(ended: Ended) -> tuple[str, str, tuple[str, ...]]:
    """The sign of a run, the word for it, and the generators that ended elsewhere."""
    sign, _, word = _mark(ended)
    elsewhere = () if ended.base is None else compare(ended.base, ended.run).elsewhere
    return sign, word, elsewhere


def data(reports: list[Ended]) -> dict[str, Any]:
    """The runs as JSON values, so that a saved notebook holds the fingerprints."""
    return {"version": VERSION, "runs": [_data_of(ended) for ended in reports[-_SHOWN:]]}


def _data_of(ended: Ended) -> dict[str, Any]:
    run, base = ended.run, ended.base
    found: dict[str, Any] = {
        "name": run.name,
        "number": run.number,
        "seed": run.seed,
        "status": run.status,
        "error": run.error,
        "start": run.start,
        "end": run.end,
        "starts": dict(run.starts),
        "ends": dict(run.ends),
        "steps": {name: len(values) for name, values in run.values.items()},
        "switches": dict(run.switches),
        "notes": notes(ended),
        "first": ended.is_first,
        "text": sentence(ended),
    }
    if base is not None:
        outcome = compare(base, run)
        found["compared_with"] = base.number
        found["same"] = outcome.same
        found["elsewhere"] = list(outcome.elsewhere)
        found["parted"] = {name: step for name, step, *_ in outcome.parted}
        found["values"] = list(outcome.values)
        found["why"] = [cause.said for cause in explain(base, run).causes]
    return found
