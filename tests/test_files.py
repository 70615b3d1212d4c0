"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from nbseed.errors import FileError
from nbseed.files import read_whole, write_whole

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, pipes and signals of POSIX")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ä ü.bin"
    write_whole(path, b"one")
    write_whole(path, b"two, longer")
    assert read_whole(path, 100) == b"two, longer"
    assert list(tmp_path.iterdir()) == [path]


@POSIX
def test_a_new_file_has_the_modes_of_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "x", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@POSIX
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("folder", "real"))
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "real").read_bytes() == b"new"


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "write":
        monkeypatch.setattr(os, "fdopen", full)
    else:
        monkeypatch.setattr(os, call, full)
    with pytest.raises(FileError) as caught:
        write_whole(path, b"new")
    monkeypatch.undo()
    assert str(caught.value) == f"{path} cannot be written: No space left on device"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@POSIX
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    code = textwrap.dedent("""
        import os, random, signal, sys, time
        from pathlib import Path
        from nbseed.files import write_whole
        path, chance = Path(sys.argv[1]), random.Random(1)
        write_whole(path, b"0" * 50_000)
        for turn in range(60):
            child = os.fork()
            if child == 0:
                while True:
                    for digit in b"123456789":
                        write_whole(path, bytes([digit]) * 50_000)
            time.sleep(chance.random() * 0.01)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            data = path.read_bytes()
            assert len(data) == 50_000 and len(set(data)) == 1, turn
        print("whole")
    """)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("whole\n", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "cannot be read: No such file or directory"),
        ("folder", "is no file"),
        ("large", "has 11 bytes; at most 10 are read"),
        ("nul\0", "cannot be read: embedded null byte"),
    ],
)
def test_what_cannot_be_read_is_one_line(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(bytes(11))
    path = tmp_path / name
    with pytest.raises(FileError) as caught:
        read_whole(path, 10)
    assert str(caught.value) == f"{path} {said}"


@POSIX
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=r"pipe is no file$"):
        read_whole(tmp_path / "pipe", 10)


def test_a_file_that_cannot_be_there_is_one_line(tmp_path: Path) -> None:
    for name, said in (("no/x", "No such file or directory"), ("nul\0", "embedded null byte")):
        with pytest.raises(FileError) as caught:
            write_whole(tmp_path / name, b"")
        assert str(caught.value) == f"{tmp_path / name} cannot be written: {said}"
    assert list(tmp_path.iterdir()) == []
