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
from playwright.sync_api import Browser, Page, sync_playwright

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
DIFFERING = [
    """%load_ext nbseed
%seed 3
import numpy as np
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)""",
    """%%rngcheckpoint train
rng = np.random.default_rng()
for step in range(200):
    x = torch.randn(32, 4) + rng.normal()
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()""",
    "%rng why",
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


def picture(address: str, browser: Browser, order: list[int], shown: list[int], name: str) -> None:
    """Run cells in an order, and keep a picture of some that stand below each other."""
    page = browser.new_page(viewport={"width": 1100, "height": 1100}, device_scale_factor=2)
    page.goto(address)
    page.wait_for_selector(".jp-CodeCell", timeout=60_000)
    page.wait_for_timeout(3000)
    for index in order:
        run(page, index)
    page.mouse.click(700, 1050)
    boxes = [page.locator(".jp-CodeCell").nth(index).bounding_box() for index in shown]
    first, last = boxes[0], boxes[-1]
    assert first is not None
    assert last is not None
    height = last["y"] + last["height"] - first["y"]
    clip = {"x": first["x"], "y": first["y"], "width": 740, "height": height}
    page.screenshot(path=IMAGES / name, clip=clip)  # type: ignore[arg-type]
    page.close()


def write(folder: str, name: str, texts: list[str]) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(t) for t in texts])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, Path(folder, name))


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        write(temporary, "picture.ipynb", CELLS)
        write(temporary, "why.ipynb", DIFFERING)
        with jupyterlab(Path(temporary)) as address:
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium",
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            )
            picture(address, browser, [0, 1, 1], [1], "rerun.png")
            other = address.replace("picture.ipynb", "why.ipynb")
            picture(other, browser, [0, 1, 1, 2], [1, 2], "why.png")
            browser.close()


if __name__ == "__main__":
    main()
