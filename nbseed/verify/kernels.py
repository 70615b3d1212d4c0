"""Kernels that nbseed starts itself: what they write goes to a temporary folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nbseed

from ..errors import CannotTellError

_START = 120.0  # seconds


@asynccontextmanager
async def started(
    name: str, specs: Any, notebook: Any, temporary: Path, folder: Path, timeout: float
) -> AsyncIterator[Any]:
    """A notebook's client with a kernel that works in `folder`; shut down afterwards.

    Parameters
    ----------
    name, specs
        The kernel and the KernelSpecManager that knows it.
    temporary
        Where its settings, history and connection file go.
    timeout
        Seconds for one cell.

    Raises
    ------
    CannotTellError
        If it does not start.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    manager = AsyncKernelManager(
        kernel_name=name,
        kernel_spec_manager=specs,
        connection_file=str(Path(tempfile.mkdtemp(dir=temporary)) / "kernel.json"),
    )
    errors = temporary / "kernel-errors.txt"
    client = NotebookClient(notebook, km=manager, timeout=timeout, coalesce_streams=True)
    try:
        try:
            with errors.open("wb") as stream:
                await manager.start_kernel(
                    env=environment(temporary),
                    cwd=str(folder),
                    stdout=subprocess.DEVNULL,
                    stderr=stream,
                )
            client.kc = manager.client()
            client.kc.start_channels(stdin=False)  # a cell that asks gets an error
            await client.kc.wait_for_ready(timeout=_START)
        except (OSError, RuntimeError) as error:
            said = last_line(errors, error)
            raise CannotTellError(f"the kernel {name} did not start: {said}") from None
        yield client
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        if manager.has_kernel:
            await manager.shutdown_kernel(now=True)


def environment(temporary: Path) -> dict[str, str]:
    """The user's environment, with all that a kernel writes led to the temporary folder."""
    moved = {
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "jupyter-config",
        "JUPYTER_DATA_DIR": "jupyter-data",
        "JUPYTER_RUNTIME_DIR": "jupyter-runtime",
        "MPLCONFIGDIR": "matplotlib",
    }
    environment = os.environ | {name: str(temporary / folder) for name, folder in moved.items()}
    environment["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    root = Path(nbseed.__file__).parent.parent
    if (root / "pyproject.toml").is_file():  # a checkout, perhaps not installed
        paths = [str(root), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def last_line(path: Path, error: Exception) -> str:
    """The kernel's last word, else the error's."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    said = [line.strip() for line in lines if line.strip() and "WARNING" not in line]
    return said[-1] if said else str(error)
