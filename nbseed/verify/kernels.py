"""What a kernel of the project's own is started with, and its last word if it does not start."""

from __future__ import annotations

import os
from pathlib import Path

import nbseed


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
