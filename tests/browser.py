"""A real front end: JupyterLab or Notebook 7 on loopback, and Chromium that types into it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
_WAIT = 60_000  # milliseconds; a page that hangs is a failed test
_FORGET = """index => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    cells.filter(cell => cell.model.type === "code")[index].model.executionCount = null;
}"""


class Notebook:
    """A notebook that is open in a browser."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(index)

    def run(self, index: int) -> Locator:
        """Run a cell by its keys; returns its output area once the kernel has answered."""
        cell = self.cell(index)
        prompt = cell.locator(".jp-InputPrompt")
        self.page.evaluate(_FORGET, index)  # so that the prompt is another one afterwards
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        for _ in range(_WAIT // 50):
            if re.fullmatch(r"\[\d+\]:", prompt.inner_text()):
                break
            self.page.wait_for_timeout(50)
        else:
            raise AssertionError(f"cell {index} did not end: {prompt.inner_text()}")
        return cell.locator(".jp-OutputArea").first

    def run_all(self, *indices: int) -> None:
        for index in indices:
            self.run(index)


@contextmanager
def served(folder: Path, application: str = "jupyterlab") -> Iterator[str]:
    """The address of a server on loopback with `folder`; it ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(8)
    home = folder / ".home"
    for name in ("notification", "themes"):
        settings = home / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True, exist_ok=True)
        plain = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
        (settings / f"{name}.jupyterlab-settings").write_text(
            json.dumps(plain if name == "notification" else {"theme": "JupyterLab Light"})
        )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        **{f"JUPYTER_{k}_DIR": str(home / k) for k in ("CONFIG", "DATA", "RUNTIME")},
        "IPYTHONDIR": str(home / "ipython"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", application, "--no-browser", "--allow-root", f"--port={port}",
         f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}",
         "--expose-app-in-browser"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/api?token={token}").close()
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        where = "lab/tree" if application == "jupyterlab" else "notebooks"
        yield f"{address}/{where}/{{name}}?token={token}" + (
            "&reset" if application == "jupyterlab" else ""
        )
    finally:
        server.terminate()
        server.wait()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium without a screen and without a network."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Browser, address: str, width: int = 1100, height: int = 1600) -> Notebook:
    """A notebook in a new page, when it is there to be typed into."""
    page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=2)
    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=_WAIT)
    page.wait_for_selector(
        ".jp-Notebook-ExecutionIndicator[data-status=idle], .jp-NotebookKernelStatus-idle, "
        ".jp-NotebookKernelLogo",
        timeout=_WAIT, state="attached",
    )  # fmt: skip
    page.wait_for_timeout(1500)
    return Notebook(page)


def write(path: Path, texts: Sequence[str]) -> None:
    """A notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(t) for t in texts])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, path)
