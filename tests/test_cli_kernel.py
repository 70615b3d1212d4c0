"""``nbseed kernel``: a kernelspec that is nbseed's own, and nobody else's is touched."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kernel as driver
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from nbseed.cli import kernel, main

KERNELS = Path("share", "jupyter", "kernels")
ENV = "PYTHONHASHSEED=0 and CUBLAS_WORKSPACE_CONFIG=:4096:8"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert not (out and err)
    return (out or err).splitlines()


def test_install_says_where_and_what_and_how(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernel", "install", "--prefix", str(home)]) == 0
    folder = home / KERNELS / "nbseed"
    assert said(capsys) == [
        f'installed nbseed ("Python 3 (nbseed)") in {folder}',
        f"it sets {ENV}, and loads nbseed",
        'choose "Python 3 (nbseed)" as a notebook\'s kernel',
    ]
    assert list(contents(home)) == [str(KERNELS / "nbseed" / "kernel.json")]
    found = json.loads((folder / "kernel.json").read_text())
    assert found["argv"][0] == sys.executable
    assert found["env"] == {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    assert found["language"] == "python"


def test_it_goes_where_jupyter_looks(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {
        (): home / "venv" / KERNELS,
        ("--user",): home / "data" / "kernels",
    }
    monkeypatch.setattr(sys, "prefix", str(home / "venv"))
    for options, folder in places.items():
        assert main(["kernel", "install", *options]) == 0
        assert said(capsys)[0].endswith(f" in {folder / 'nbseed'}")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    shutil.rmtree(home / "data")
    assert main(["kernel", "install"]) == 0
    assert said(capsys)[0].endswith(f" in {home / 'data' / 'kernels' / 'nbseed'}")


def test_the_home_folder_is_understood(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(home))
    assert main(["kernel", "install", "--prefix", "~/env"]) == 0
    assert (home / "env" / KERNELS / "nbseed" / "kernel.json").is_file()
    assert len(said(capsys)) == 3


def test_another_name_has_another_title(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "install", "--name", "Course-1.2", "--prefix", str(home)]) == 0
    assert said(capsys)[0].startswith('installed Course-1.2 ("Python 3 (Course-1.2)") in ')
    assert "course-1.2" in KernelSpecManager().find_kernel_specs()


def test_its_own_is_written_anew(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["kernel", "install", "--prefix", str(home)])
    path = home / KERNELS / "nbseed" / "kernel.json"
    old = {**json.loads(path.read_text()), "argv": ["/gone/python"]}
    path.write_text(json.dumps(old))
    (path.parent / "logo-64x64.png").write_bytes(b"theirs")
    assert main(["kernel", "install", "--prefix", str(home)]) == 0
    assert json.loads(path.read_text())["argv"][0] == sys.executable
    assert (path.parent / "logo-64x64.png").read_bytes() == b"theirs"
    assert len(said(capsys)) == 6


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "ä", "a b", "-x\n"])
def test_names_that_jupyter_refuses_are_refused(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("install", "remove"):
        assert main(["kernel", action, f"--name={name}", "--prefix", str(home)]) == 2
        assert said(capsys) == [
            f"nbseed kernel: --name takes letters, digits, '-', '_' and, inside, '.'; got {name!r}"
        ]
    assert list(home.iterdir()) == []


def foreign(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"argv": ["python"], "display_name": "Mine"}')


def damaged(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"metadata": {"nbseed": ')


def odd(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"metadata": ["nbseed"]}')


def plain(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")


def a_file(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("mine")


def a_link(folder: Path) -> None:
    other = folder.parent / "real"
    other.mkdir(parents=True)
    (other / "kernel.json").write_text(json.dumps(kernel.spec()))
    folder.symlink_to(other, target_is_directory=True)


def a_dead_link(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder.parent / "gone")


@pytest.mark.parametrize("make", [foreign, damaged, odd, plain, a_file, a_link, a_dead_link])
def test_what_is_not_its_own_is_left_as_it_is(
    make, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / KERNELS / "nbseed"
    make(folder)
    before = contents(home)
    assert main(["kernel", "install", "--prefix", str(home)]) == 2
    assert said(capsys) == [
        f"nbseed kernel: {folder} is there and is not nbseed's; nothing was written"
    ]
    assert main(["kernel", "remove", "--prefix", str(home)]) == 2
    assert said(capsys) == [f"nbseed kernel: {folder} is not nbseed's; it is left as it is"]
    assert contents(home) == before
    assert folder.is_symlink() or folder.exists()


def test_remove_takes_it_off_jupyters_list(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["kernel", "install", "--prefix", str(home)])
    assert "nbseed" in KernelSpecManager().find_kernel_specs()
    capsys.readouterr()
    folder = home / KERNELS / "nbseed"
    assert main(["kernel", "remove", "--prefix", str(home)]) == 0
    assert said(capsys) == [f"removed nbseed from {folder}"]
    assert "nbseed" not in KernelSpecManager().find_kernel_specs()
    assert contents(home) == {}
    assert main(["kernel", "remove", "--prefix", str(home)]) == 2
    assert said(capsys) == [
        f"nbseed kernel: no kernel of nbseed in {folder}; there is none elsewhere"
    ]


def test_remove_says_where_there_are_others(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["kernel", "install", "--user"])
    capsys.readouterr()
    assert main(["kernel", "remove", "--prefix", str(home)]) == 2
    assert said(capsys) == [
        (
            f"nbseed kernel: no kernel of nbseed in {home / KERNELS / 'nbseed'}; "
            f"there are: {home / 'data' / 'kernels' / 'nbseed'}"
        )
    ]


def test_a_place_that_cannot_be_written_is_one_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "share").write_text("mine")
    assert main(["kernel", "install", "--prefix", str(home)]) == 2
    folder = home / KERNELS / "nbseed"
    assert said(capsys) == [f"nbseed kernel: cannot write to {folder}: Not a directory"]


def test_a_full_disk_leaves_nothing_behind(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = home / KERNELS / "nbseed"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(["kernel", "install", "--prefix", str(home)]) == 2
    assert said(capsys) == [
        f"nbseed kernel: {folder / 'kernel.json'} cannot be written: No space left on device"
    ]
    assert not folder.exists()
    main(["kernel", "install", "--prefix", str(home)])
    before = contents(home)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(["kernel", "install", "--prefix", str(home)]) == 2
    assert contents(home) == before


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["kernel"], "nbseed kernel: the following arguments are required: install|remove"),
        (["kernel", "instal"], "nbseed kernel: argument install|remove: invalid choice: 'instal'"),
        (
            ["kernel", "install", "--user", "--prefix", "x"],
            "nbseed kernel install: argument --prefix: not allowed with argument --user",
        ),
    ],
)
def test_wrong_words_are_one_line(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    lines = said(capsys)
    assert len(lines) == 1
    assert lines[0].startswith(words)


@contextmanager
def running() -> Iterator[driver.Kernel]:
    manager = KernelManager(kernel_name="nbseed", kernel_spec_manager=KernelSpecManager())
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield driver.Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.kernel
def test_a_kernel_that_is_started_from_it_has_nbseed_and_repeats_hashes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["kernel", "install", "--prefix", str(home)])
    profile = home / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_kernel_config.py").write_text(
        "get_config().InteractiveShellApp.extensions = ['autoreload']"
    )
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    seen = []
    for _ in range(2):
        with running() as kernel:
            assert kernel.ok("%seed 3").stdout.startswith("seed 3: python seeded")
            kernel.ok("%autoreload 0")  # the user's own extension is there too
            seen.append(
                kernel.ok(
                    "import os, sys\n"
                    "print(sys.executable, hash('a'), list({'x', 'yy', 'zzz', 'a', 'b'}),"
                    " os.environ['PYTHONHASHSEED'], os.environ['CUBLAS_WORKSPACE_CONFIG'])"
                ).stdout
            )
    assert seen[0] == seen[1]
    assert seen[0].startswith(f"{sys.executable} ")
    assert seen[0].endswith(" 0 :4096:8\n")
