"""The states of a snapshot to and from a file: safetensors, exact, and never code.

One uint8 tensor for each generator, under its name, and in the header's metadata one entry,
``nbseed``: JSON with the format's version, fingerprints, library versions, device models and seed.
Whatever is read is checked before anybody gets it; no generator is looked at here.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import FileError
from .files import read_whole, write_whole
from .fingerprint import of_state, of_states

FORMAT = 1
_KEY = "nbseed"
_MOST = 256 * 2**20  # bytes of a file; a CPU state has 5056, a large object of the user's a million
_HEAD = 2**24  # bytes of the header, of which a generator takes about 200


@dataclass(frozen=True)
class Stored:
    """What a snapshot file holds.

    Attributes
    ----------
    states
        Bytes by generator name, in their order.
    seed
        The seed that was in force, or None.
    versions
        ``python`` and the imported libraries, by name.
    models
        What devices were called, by generator name.
    notes
        What the snapshot did not cover, a sentence each.
    """

    states: Mapping[str, bytes] = field(repr=False)
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def write(path: Path, stored: Stored) -> None:
    """Write a snapshot file in the place of one that is there, or leave everything as it was.

    Raises
    ------
    FileError
        If it cannot be written, or there is a file that is no snapshot.
    """
    data = dump(stored)
    if path.exists() and not _is_ours(path):
        raise FileError(f"{path} is there and is no snapshot; nothing was written")
    write_whole(path, data)


def read(path: Path) -> Stored:
    """What a snapshot file holds, checked.

    Raises
    ------
    FileError
        If it cannot be read, is damaged, or is none; the text says which.
    """
    data = read_whole(path, _MOST)
    try:
        return load(data)
    except FileError as error:
        raise FileError(f"{path} {error}") from None


def _is_ours(path: Path) -> bool:
    """Whether a snapshot, or nothing yet, may be replaced."""
    try:
        data = read_whole(path, _MOST)
        return not data or _KEY in _header(data).get("__metadata__", {})
    except FileError:
        return False


# -- bytes -----------------------------------------------------------------------------------------


def dump(stored: Stored) -> bytes:
    """The bytes of a snapshot file; equal for equal contents."""
    from safetensors import TensorSpec, serialize

    metadata = {
        "format": FORMAT,
        "fingerprint": _fingerprint(stored.states),
        "fingerprints": {name: of_state(state) for name, state in stored.states.items()},
        "seed": stored.seed,
        "versions": dict(stored.versions),
        "models": dict(stored.models),
        "notes": list(stored.notes),
    }
    for name in stored.states:
        if not _can_be_written(name):
            raise FileError(f"a generator called {name!r} cannot be written to a file")
    # The package's own door for NumPy's arrays would import NumPy, perhaps before the user does.
    buffers = {n: ctypes.create_string_buffer(s, len(s)) for n, s in stored.states.items() if s}
    specs = {
        name: TensorSpec(
            dtype="uint8",
            shape=[len(state)],
            data_ptr=ctypes.addressof(buffers[name]) if state else 0,
            data_len=len(state),
        )
        for name, state in stored.states.items()
    }
    return bytes(serialize(specs, {_KEY: json.dumps(metadata, ensure_ascii=True)}))


def _fingerprint(states: Mapping[str, bytes]) -> str:
    try:
        return of_states(states)
    except UnicodeEncodeError:  # the name itself is refused below
        return ""


def _can_be_written(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name != "__metadata__"  # safetensors has that name for its own use


def load(data: bytes) -> Stored:
    """What `dump` made these bytes of.

    Raises
    ------
    FileError
        If anything in them does not fit the rest; its text goes on behind the name of the file.
    """
    from safetensors import SafetensorError, deserialize

    metadata = _metadata(_header(data))
    try:
        tensors = dict(deserialize(data))
    except (SafetensorError, ValueError, MemoryError, OverflowError) as error:
        raise FileError(f"is damaged: {_short(error)}") from None
    marks = metadata["fingerprints"]
    if tensors.keys() != marks.keys():
        other = ", ".join(sorted(tensors.keys() ^ marks.keys()))
        raise FileError(f"is damaged: its header and its states name others ({_short(other)})")
    states = {}
    for name, mark in marks.items():
        tensor = tensors[name]
        if tensor["dtype"] != "U8" or len(tensor["shape"]) != 1:
            kind = f"{tensor['dtype']} of shape {tuple(tensor['shape'])}"
            raise FileError(f"is damaged: {name} is {kind}, not a row of bytes")
        states[name] = bytes(tensor["data"])
        if of_state(states[name]) != mark:
            raise FileError(f"is damaged: {name} has not the fingerprint that stands in the header")
    if of_states(states) != metadata["fingerprint"]:
        raise FileError("is damaged: its states have not the fingerprint of the whole")
    return Stored(
        states,
        metadata["seed"],
        metadata["versions"],
        metadata["models"],
        tuple(metadata["notes"]),
    )


def _header(data: bytes) -> dict[str, Any]:
    """The header's JSON. Where a name stands twice, readers disagree: that is refused."""
    if not isinstance(data, bytes):
        raise FileError(f"is damaged: no bytes, but {type(data).__name__}")
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or data[8:9] != b"{" or size > len(data) - 8:
        raise FileError("is no snapshot of nbseed")
    if size > _HEAD:
        raise FileError(f"is no snapshot of nbseed: a header of {size:,} bytes")
    header = _json(data[8 : 8 + size])
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise FileError("is no snapshot of nbseed")
    return header


def _json(text: bytes | str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name stands twice")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise FileError(f"is damaged: its header is no JSON ({_short(error)})") from None


_WHOLE: dict[str, Any] = {
    "fingerprint": str, "fingerprints": dict, "seed": (int, type(None)), "versions": dict,
    "models": dict, "notes": list,
}  # fmt: skip


def _metadata(header: dict[str, Any]) -> dict[str, Any]:
    text = header.get("__metadata__", {}).get(_KEY)
    if not isinstance(text, str):
        raise FileError("is no snapshot of nbseed: another program's safetensors file")
    found = _json(text)
    version = found.get("format") if isinstance(found, dict) else None
    if type(version) is not int or version < 1:
        raise FileError("is damaged: its header does not say which format it has")
    if version > FORMAT:
        raise FileError(f"has format {version}; this nbseed reads {FORMAT}: a newer one is needed")
    for name, kind in _WHOLE.items():
        if not isinstance(found.get(name, ...), kind) or isinstance(found[name], bool):
            raise FileError(f"is damaged: the header's {name} is missing or of another kind")
    texts = (*_texts(found["fingerprints"]), *_texts(found["versions"]), *_texts(found["models"]))
    if not all(isinstance(text, str) for text in (*texts, *found["notes"])):
        raise FileError("is damaged: the header holds something else than text")
    return dict(found)


def _texts(mapping: Mapping[str, Any]) -> list[Any]:
    return list(mapping.values())


def _short(said: object) -> str:
    text = " ".join(str(said).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
