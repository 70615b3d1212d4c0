"""A small driver of a real Jupyter kernel: cells in, what a front end would show out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TIMEOUT = 60.0  # seconds for one cell; a kernel that hangs is a failed test


@dataclass
class Ran:
    """What became of one cell.

    Attributes
    ----------
    status
        "ok", "error" or "aborted", as the kernel replied.
    stdout, stderr
        What the cell printed.
    bundles
        The data of each display and result, in order.
    traceback
        The error's traceback without colours; empty if there was none.
    pages
        The text of each page of help.
    """

    status: str = ""
    stdout: str = ""
    stderr: str = ""
    bundles: list[dict[str, Any]] = field(default_factory=list)
    traceback: str = ""
    pages: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The plain text of each display and result."""
        return [bundle["text/plain"] for bundle in self.bundles]


@dataclass(frozen=True)
class Kernel:
    """A kernel that runs, and the front end's side of it."""

    manager: KernelManager
    client: BlockingKernelClient

    def run(self, text: str, cell_id: str | None = None, **content: Any) -> Ran:
        """Run a cell; with `cell_id` as JupyterLab does, without as nbclient does."""
        return self._collect(self._send(text, cell_id, content))

    def ok(self, text: str, cell_id: str | None = None) -> Ran:
        """Run a cell that must come to its end."""
        ran = self.run(text, cell_id)
        assert ran.status == "ok", ran.traceback
        assert ran.stderr == ""
        return ran

    def run_all(self, texts: Sequence[str]) -> list[Ran]:
        """Send all cells at once, as "run all" does."""
        return [self._collect(m) for m in [self._send(text, None, {}) for text in texts]]

    def interrupt(self, text: str, cell_id: str | None = None) -> Ran:
        """Run a cell, and interrupt it as soon as it has printed something."""
        return self._collect(self._send(text, cell_id, {}), self.manager.interrupt_kernel)

    def _send(self, text: str, cell_id: str | None, content: dict[str, Any]) -> str:
        content = {
            "code": text,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
            **content,
        }
        message = self.client.session.msg("execute_request", content)
        if cell_id is not None:
            message["metadata"] = {"cellId": cell_id}
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def _collect(self, sent: str, printed: Callable[[], None] | None = None) -> Ran:
        ran = Ran()
        while True:
            message = self.client.get_iopub_msg(timeout=_TIMEOUT)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind == "stream":
                name = content["name"]
                setattr(ran, name, getattr(ran, name) + content["text"])
                if printed is not None:
                    time.sleep(0.2)  # the cell is past its print by then
                    printed()
                    printed = None
            elif kind in ("display_data", "execute_result"):
                ran.bundles.append(content["data"])
            elif kind == "error":
                ran.traceback += _COLOUR.sub("", "\n".join(content["traceback"]))
        while not ran.status:
            reply = self.client.get_shell_msg(timeout=_TIMEOUT)
            if reply["parent_header"].get("msg_id") == sent:
                ran.status = reply["content"]["status"]
                for page in reply["content"].get("payload", ()):
                    ran.pages.append(_COLOUR.sub("", page["data"]["text/plain"]))
        return ran


@contextmanager
def started() -> Iterator[Kernel]:
    """A fresh kernel of this Python; afterwards it is gone."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_TIMEOUT)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
