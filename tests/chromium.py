"""A page in headless Chromium, driven over a pipe: real keys, other widths, print, pictures.

Install: `apt-get install chromium` (Debian, Ubuntu).
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import CHROMIUM

_VIRTUAL = {"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Enter": 13, " ": 32}


class Page:
    """One page, and what its console complained about."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self._left, self._last, self._session = b"", 0, ""
        self.complaints: list[str] = []

    def call(self, method: str, **parameters: Any) -> Any:
        """Return what the browser answers."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._message()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = self._in.read1(1 << 16)
            assert read, "the browser has left"
            self._left += read
        one, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(one)
        if found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(found["params"])[:400])
        return found

    def open(self, file: Path, *, width: int = 1280, height: int = 900) -> None:
        """Open a file in a new tab of this size."""
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        self.call("Page.navigate", url=file.as_uri())
        while self.run("document.readyState") != "complete":
            pass

    def size(self, width: int, height: int = 900) -> None:
        """Give the window another size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press one key, as somebody at a keyboard does."""
        typed = {"text": "\r"} if key == "Enter" else {"text": key} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code="Space" if key == " " else key,
                windowsVirtualKeyCode=_VIRTUAL[key],
                modifiers=8 if shift else 0,
                **(typed if kind == "keyDown" else {}),
            )

    def picture(self, *, whole: bool = True) -> bytes:
        """Return the page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        self.call("Browser.close")
        self._in.close()
        self._out.close()


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Yield a page of a fresh browser, which keeps its files in `folder`."""
    reading, its_out = os.pipe()
    its_in, writing = os.pipe()
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder / 'profile'}",
    ]

    # The browser reads from descriptor 3 and writes to descriptor 4.
    shell = f'exec "$@" 3</proc/self/fd/{its_in} 4>/proc/self/fd/{its_out}'
    process = subprocess.Popen(
        ["/bin/sh", "-c", shell, "sh", *command],
        pass_fds=(its_in, its_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_in)
    os.close(its_out)
    page = Page(reading, writing)
    try:
        yield page
    finally:
        page.close()
        process.wait(timeout=30)
