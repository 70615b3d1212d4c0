"""A variable's content as it is kept: digests, and one short text for each part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHORT = 40
"""How long a value may be to be shown itself."""
PARTS = 200
"""How many parts of one variable keep a text of their own."""


@dataclass(frozen=True)
class Content:
    """What a variable held at one moment: a digest, and digests of its parts.

    Attributes
    ----------
    kind
        The name of its type: ``Linear``, ``DataFrame``, ``int``.
    digest
        32 hex digits over everything that was looked into.
    parts
        By the path below the variable, as one types it behind its name (``""`` is the variable
        itself): the value of a number or a short string, else ``kind; shape (4, 4) #1234abcd``.
        Nearest first, at most 200; what lies further in shows in the digest of its parent.
    unordered
        Of sequences, arrays (first axis), dicts and frames: a digest that the order does not
        change. Empty for all else, and for what is too long.
    opaque
        Paths of what was not looked into, such as locks and sockets: named, not compared.
    """

    kind: str
    digest: str
    parts: Mapping[str, str]
    unordered: str = ""
    opaque: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """What variables held, and why some were left out, both by the variable's name."""

    found: Mapping[str, Content]
    left_out: Mapping[str, str]


class Node(NamedTuple):
    """One object that was looked at: `children` by the step that leads to them.

    `bag` is what `either_way` made of its items, `shown` the text of a value that is short enough
    to be shown itself.
    """

    digest: bytes
    kind: str
    fields: Sequence[str] = ()
    children: Sequence[tuple[str, Node]] = ()
    bag: str = ""
    opaque: bool = False
    shown: str = ""

    @property
    def text(self) -> str:
        """``list; 3 items #1234abcd ~5678cdef/9876fedc``: digest, items in any order, in theirs."""
        if self.shown:
            return self.shown
        words = "; ".join((self.kind, *self.fields))
        return f"{words} #{self.digest.hex()[:8]}" + (
            f" ~{self.bag[:8]}{self.bag[32:]}" if self.bag else ""
        )


class Text(NamedTuple):
    """The text of a node, taken apart."""

    kind: str
    fields: tuple[str, ...]
    digest: str
    bag: str
    order: str


def digest(*parts: object) -> bytes:
    """16 bytes over texts and bytes, which are told apart by their ``repr``."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def either_way(unordered: str, ordered: bytes) -> str:
    """Digests of some items in any order and in theirs, to tell a mere change of order."""
    return f"{unordered}/{ordered.hex()[:8]}" if unordered else ""


def counted(number: int, noun: str) -> str:
    """``1 item``, ``3 items``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def plain(text: str) -> str:
    """A text of the user's as a field: without the marks that part the pieces of a node's text."""
    return _MARKS.sub("_", text)


_MARKS = re.compile("[;#\"']")
_DESCRIBED = re.compile(
    r"([^\"';#]+)((?:; [^;#]+)*) #([0-9a-f]{8})(?: ~([0-9a-f]{8})/([0-9a-f]{8}))?"
)


def parse(text: str) -> Text | None:
    """The pieces of the text of a node; None for the text of a value."""
    found = _DESCRIBED.fullmatch(text)
    if found is None:
        return None
    kind, fields, digest, bag, order = found.groups()
    return Text(kind, tuple(fields.split("; ")[1:]), digest, bag or "", order or "")
