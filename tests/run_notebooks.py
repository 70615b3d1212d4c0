"""Run the shipped notebooks and store what they give: `python tests/run_notebooks.py [NAME]`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"IPYTHONDIR": home, "CUDA_VISIBLE_DEVICES": ""}
        for path in sorted(FOLDER.glob("*.ipynb")):
            if names and path.stem not in names:
                continue
            notebook = nbformat.read(path, 4)
            NotebookClient(
                notebook, timeout=240, kernel_name="python3", coalesce_streams=True
            ).execute()
            for cell in notebook.cells:
                cell.metadata.pop("execution", None)  # when it ran says nothing to a reader
            notebook.metadata.pop("widgets", None)
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main(sys.argv[1:])
