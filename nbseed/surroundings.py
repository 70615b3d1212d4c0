"""What stands around a cell: the files, folders and environment variables that its text names."""

from __future__ import annotations

import ast
import functools
import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

_MOST = 40  # files and folders that are looked at
_SMALL = 1_000_000  # bytes of a file that is read; of a larger one size and time of change count
_LONGEST = 300  # characters of a text that may be a path


def surroundings(
    texts: Iterable[str], namespace: Mapping[str, Any], names: Iterable[str]
) -> dict[str, str]:
    """What is there under each name, as text or digest, so that two moments can be compared.

    Parameters
    ----------
    texts
        The source of a cell and its functions: their string constants are looked at.
    names
        Variables whose paths are looked at, and taken for the folder of what the constants name.
    """
    constants = list(dict.fromkeys(c for text in texts for c in _constants(text)))
    held = [p for name in names if (p := _path(namespace.get(name))) is not None]
    found = {f"environment variable {c}": os.environ[c] for c in constants if _is_set(c)}
    found["working directory"] = _digest(os.fsencode(_cwd()))
    folders = [path for path in held if os.path.isdir(path)][:3]
    paths = [*held, *constants, *(os.path.join(f, c) for f in folders for c in constants)]
    for path in list(dict.fromkeys(paths))[: 4 * _MOST]:
        if len(found) >= _MOST:
            break
        kind, content = _look(path)
        if kind:
            found[f"{kind} {path}"] = content
    return found


@functools.lru_cache(maxsize=256)
def _constants(text: str) -> tuple[str, ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and 0 < len(node.value) <= _LONGEST
        and "\n" not in node.value
        and "\0" not in node.value
    )


def _path(value: Any) -> str | None:
    kind = type(value)
    if issubclass(kind, PurePath) or kind is str:
        try:
            text = str(value)
        except Exception:  # a class of the user's that cannot say it
            return None
        return text if 0 < len(text) <= _LONGEST and "\0" not in text else None
    return None


def _is_set(name: str) -> bool:
    try:
        return name in os.environ
    except UnicodeEncodeError:  # no name of a variable
        return False


def _look(path: str) -> tuple[str, str]:
    """``("file", digest)``, ``("folder", digest)``, or nothing."""
    try:
        if os.path.isfile(path):
            about = os.stat(path)
            if about.st_size > _SMALL:
                return "file", f"{about.st_size} bytes, {about.st_mtime_ns}"
            with open(path, "rb") as file:
                return "file", _digest(file.read(_SMALL))
        if os.path.isdir(path):
            return "folder", _digest("\0".join(os.listdir(path)).encode(errors="replace"))
        if ("*" in path or "?" in path) and os.sep in path:
            return "files", _digest("\0".join(_first(glob.iglob(path))).encode(errors="replace"))
    except (OSError, ValueError):
        pass
    return "", ""


def _first(paths: Iterator[str], most: int = 10_000) -> Iterator[str]:
    for number, path in enumerate(paths):
        if number >= most:
            return
        yield path


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
