"""What ``%rng why`` says: an explanation as text and as HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from .why import Cause, Explanation

_SHOWN = 6  # sentences of evidence for one cause
_CODE = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class Answer:
    """An explanation, shown by any front end.

    Attributes
    ----------
    head
        The report's sentence on the run.
    explanation
        Why it differs from the run it is compared with.
    """

    head: str
    explanation: Explanation

    def __repr__(self) -> str:
        lines = [self.head, self._verdict()]
        for number, cause in enumerate(self.explanation.causes, 1):
            lines.append(f" {number}. {_sentence(cause)}")
            lines += [f"      {line}" for line in _evidence(cause)]
            lines.append(f"    try: {cause.remedy}")
        lines += [f"{head}: {text}" for head, text in self._below()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<div>{escape(self.head)}</div><div><b>{escape(self._verdict())}</b></div>"]
        if self.explanation.causes:
            items = "".join(map(_item, self.explanation.causes))
            parts.append(f'<ol style="margin:4px 0 4px 1.6em;padding:0">{items}</ol>')
        parts += [
            f'<div style="opacity:.8"><i>{escape(head)}</i>: {escape(text)}</div>'
            for head, text in self._below()
        ]
        inner = "".join(parts)
        return f'<div class="nbseed-why" style="line-height:1.5;margin:2px 0">{inner}</div>'

    def _verdict(self) -> str:
        found = self.explanation
        beside = f"run {found.run.number} beside run {found.base.number}"
        if found.same:
            return f"{beside}: nothing differs, nothing to explain"
        if not found.causes:
            return f"{beside}: no cause was found"
        return f"{beside}: why it differs, the likeliest first"

    def _below(self) -> list[tuple[str, str]]:
        found = self.explanation
        said = []
        if found.draws:
            said.append(("draws", "; ".join(found.draws)))
        if found.ruled_out:
            said.append(("looked at and found no cause in", "; ".join(found.ruled_out)))
        if found.not_compared:
            said.append(("not compared", "; ".join(found.not_compared)))
        said += [("worth knowing", text) for text in found.known]
        said += [("after a restart of the kernel", text) for text in found.restart]
        return said


def _sentence(cause: Cause) -> str:
    return cause.said if cause.is_likely else f"perhaps: {cause.said}"


def _evidence(cause: Cause) -> list[str]:
    more = len(cause.evidence) - _SHOWN
    return [*cause.evidence[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _item(cause: Cause) -> str:
    remedy = _CODE.sub(r"<code>\1</code>", escape(cause.remedy))
    evidence = "".join(f"<div>{escape(line)}</div>" for line in _evidence(cause))
    return (
        f"<li><b>{escape(_sentence(cause))}</b>"
        f'<div style="opacity:.8">{evidence}</div>'
        f"<div>try: {remedy}</div></li>"
    )
