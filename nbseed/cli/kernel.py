"""``nbseed kernel``: a Jupyter kernel with what must be set before Python starts."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import CannotTellError
from ..files import read_whole, reason, write_whole

NAME = "nbseed"
ENVIRONMENT = {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
_FILE = "kernel.json"
# What Jupyter takes for a kernel's name, and no ".." among them.
_LEGAL = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_MOST = 2**20  # bytes of a kernel.json; ours has 500


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand with its two actions."""
    parser = commands.add_parser(
        "kernel",
        help="install a Jupyter kernel in which hashing and cuBLAS repeat, or remove it",
        description="A Jupyter kernel of this Python with PYTHONHASHSEED=0 and "
        "CUBLAS_WORKSPACE_CONFIG=:4096:8, which only count before Python starts, and with nbseed "
        "loaded. It goes where the Jupyter of a virtual environment looks if this Python is of "
        "one, else to the user's own kernels.",
    )
    actions = parser.add_subparsers(
        dest="action", metavar="install|remove", required=True, parser_class=type(parser)
    )
    for name, run, said in (
        ("install", install, "write the kernel, or write it anew"),
        ("remove", remove, "take it away again"),
    ):
        action = actions.add_parser(name, help=said, description=f"{said[0].upper()}{said[1:]}.")
        action.add_argument(
            "--name", default=NAME, help=f"what the kernel is called (default: {NAME})"
        )
        where = action.add_mutually_exclusive_group()
        where.add_argument(
            "--user", action="store_true", help="among the user's kernels, for every environment"
        )
        where.add_argument(
            "--prefix", type=Path, metavar="DIR", help="below DIR/share/jupyter/kernels"
        )
        action.set_defaults(run=run)


def install(args: argparse.Namespace) -> int:
    """Write the kernel's folder; returns the exit code."""
    folder = _folder(args)
    _check_free(folder)
    is_new = not folder.exists()
    text = json.dumps(spec(args.name), indent=1) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _FILE, text.encode())
    except BaseException as error:
        if is_new and folder.is_dir():
            folder.rmdir()
        if isinstance(error, OSError):
            raise CannotTellError(f"cannot write to {folder}: {reason(error)}") from None
        raise
    print(f'installed {args.name} ("{_title(args.name)}") in {folder}')
    print(f"it sets {' and '.join(f'{n}={v}' for n, v in ENVIRONMENT.items())}, and loads nbseed")
    print(f'choose "{_title(args.name)}" as a notebook\'s kernel')
    return 0


def remove(args: argparse.Namespace) -> int:
    """Take the kernel's folder away; returns the exit code."""
    folder = _folder(args)
    if not _is_there(folder):
        found = own()
        there = f"there are: {', '.join(map(str, found))}" if found else "there is none elsewhere"
        raise CannotTellError(f"no kernel of nbseed in {folder}; {there}")
    if not _is_ours(folder):
        raise CannotTellError(f"{folder} is not nbseed's; it is left as it is")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise CannotTellError(f"cannot remove {folder}: {reason(error)}") from None
    print(f"removed {args.name} from {folder}")
    return 0


def spec(name: str = NAME) -> dict[str, Any]:
    """The contents of the kernel's ``kernel.json``, for the Python that runs now."""
    return {
        # `--ext` adds to the extensions of the user's own settings.
        "argv": [
            sys.executable, "-m", "ipykernel_launcher", "--ext=nbseed", "-f", "{connection_file}",
        ],
        "display_name": _title(name),
        "language": "python",
        "env": ENVIRONMENT,
        "metadata": {"debugger": True, "nbseed": {"version": __version__}},
    }  # fmt: skip


def own() -> list[Path]:
    """The folders of all kernels that are nbseed's, where Jupyter looks."""
    from jupyter_client.kernelspec import KernelSpecManager

    found = KernelSpecManager().find_kernel_specs().values()
    return [Path(folder) for folder in found if _is_ours(Path(folder))]


def _title(name: str) -> str:
    return f"Python 3 ({name})"


def _folder(args: argparse.Namespace) -> Path:
    from jupyter_core.paths import jupyter_data_dir

    if not _LEGAL.fullmatch(args.name):
        raise CannotTellError(
            f"--name takes letters, digits, '-', '_' and, inside, '.'; got {args.name!r}"
        )
    if args.prefix is not None:
        base = args.prefix.expanduser() / "share" / "jupyter"
    elif args.user or sys.prefix == sys.base_prefix:
        base = Path(jupyter_data_dir())
    else:
        base = Path(sys.prefix) / "share" / "jupyter"
    return Path(base / "kernels" / args.name.lower())  # as Jupyter finds it


def _check_free(folder: Path) -> None:
    if _is_there(folder) and not _is_ours(folder):
        raise CannotTellError(f"{folder} is there and is not nbseed's; nothing was written")


def _is_there(folder: Path) -> bool:
    """Whether anything stands in the way; an empty folder does not."""
    if folder.is_dir() and not folder.is_symlink():
        return any(folder.iterdir())
    return folder.is_symlink() or folder.exists()


def _is_ours(folder: Path) -> bool:
    if folder.is_symlink():
        return False
    try:
        found = json.loads(read_whole(folder / _FILE, _MOST))
    except (ValueError, RecursionError):  # no file, or no JSON
        return False
    metadata = found.get("metadata") if isinstance(found, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("nbseed"), dict)
