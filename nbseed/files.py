"""Files that are whole or not there: read within a bound, written in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from .errors import FileError


def read_whole(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most `most` bytes.

    Raises
    ------
    FileError
        If there is none, it cannot be read, or it is larger.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for its writer
            raise FileError(f"{path} is no file")
        if found.st_size > most:
            raise FileError(f"{path} has {found.st_size:,} bytes; at most {most:,} are read")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} cannot be read: {reason(error)}") from None
    if len(data) > most:
        raise FileError(f"{path} grows while it is read")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` in the place of a file, or leave everything as it was.

    It goes to a new file beside it, to the disk, and then to the file's name, so that a crash or a
    full disk leaves the old file or the new one, whole.

    Raises
    ------
    FileError
        If it cannot be written; what was there is untouched.
    """
    try:
        # A link stays one: the file that it names is replaced.
        target = Path(os.path.realpath(path))
        beside = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.tmp")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be written: {reason(error)}") from None


def _sync_folder(folder: Path) -> None:
    """Make the new name last; where folders cannot be opened, as on Windows, it does by itself."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(handle)


def reason(error: Exception) -> str:
    """Why the system refused, in a few words: ``No space left on device``."""
    return (getattr(error, "strerror", None) or str(error)).strip() or type(error).__name__
