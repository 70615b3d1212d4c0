"""Fingerprints of states: equal for equal states on every machine, process and session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def of_state(state: bytes) -> str:
    """32 hex digits: BLAKE2b of a state with a 128-bit digest (RFC 7693)."""
    return hashlib.blake2b(state, digest_size=16).hexdigest()


def of_states(states: Mapping[str, bytes]) -> str:
    """32 hex digits over the sorted (name, state) pairs.

    BLAKE2b, 128 bits, of name and state in UTF-8 and raw bytes, each behind its length as 8
    little-endian bytes, so that no two lists of pairs give the same text.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(states):
        for part in (name.encode(), states[name]):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()
