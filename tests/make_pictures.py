"""Make the README's pictures anew: ``python tests/make_pictures.py``.

Needs ``pip install jupyterlab playwright`` and Debian's ``chromium``. Runs JupyterLab on
loopback in a temporary folder, types into it as a user would, and keeps what is seen in
``notebooks/images``.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "notebooks" / "images"
CELLS = [
    "%load_ext nbseed\n%seed 3",
    """%%rngcheckpoint train
import torch
model = torch.nn.Linear(4, 1)
for step in range(200):
    x = torch.randn(32, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
loss.item()""",
]


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab that runs in `folder` and ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(8)
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        **{f"JUPYTER_{k}_DIR": str(folder / k) for k in ("CONFIG", "DATA", "RUNTIME")},
        "IPYTHONDIR": str(folder / "ipython"),
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
         f"--IdentityProvider.token={token}", f"--notebook-dir={folder}"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                urllib.request.urlopen(f"{address}/api?token={token}")
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        yield f"{address}/lab/tree/picture.ipynb?token={token}&reset"
    finally:
        server.terminate()
        server.wait()


def run(page: Page, index: int) -> None:
    """Run a cell by its keys and wait until the kernel has answered."""
    page.locator(".jp-CodeCell .cm-content").nth(index).click()
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(500)
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=60_000)
    page.wait_for_timeout(500)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
        notebook = nbformat.v4.new_notebook(cells=cells)
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, Path(temporary, "picture.ipynb"))
        with jupyterlab(Path(temporary)) as address:
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium",
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            )
            page = browser.new_page(viewport={"width": 1100, "height": 900}, device_scale_factor=2)
            page.goto(address)
            page.wait_for_selector(".jp-CodeCell", timeout=60_000)
            page.wait_for_timeout(3000)
            run(page, 0)
            run(page, 1)
            run(page, 1)
            page.mouse.click(700, 850)
            box = page.locator(".jp-CodeCell").nth(1).bounding_box()
            assert box is not None
            page.screenshot(
                path=IMAGES / "rerun.png",
                clip={"x": box["x"], "y": box["y"], "width": 740, "height": box["height"]},
            )
            browser.close()


if __name__ == "__main__":
    main()
