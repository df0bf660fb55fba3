"""A headless Chromium, spoken to through two pipes: no driver, no port, no network.

Messages are JSON of the DevTools protocol, each ended by a NUL.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_DEADLINE_S = 60.0
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip

# Chromium reads commands from descriptor 3 and writes to 4; they may be taken where we start it.
_LAUNCH = """
import fcntl, os, sys
r, w = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(r, 3)
os.dup2(w, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One Chromium with an empty profile; a context manager that ends it."""

    def __init__(self) -> None:
        found = shutil.which("chromium")
        assert found, "tests that use this carry the marker needs('chromium')"
        self._profile = tempfile.mkdtemp(prefix="httpmark-browser-")
        read_there, self._write = os.pipe()
        self._read, write_there = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _LAUNCH, str(read_there), str(write_there), found, *_FLAGS,
                f"--user-data-dir={self._profile}", "about:blank",
            ],
            pass_fds=(read_there, write_there),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_there)
        os.close(write_there)
        self._held = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "Chromium is silent"
            more = os.read(self._read, 1 << 20)
            assert more, f"Chromium ended with {self._process.poll()}"
            self._held += more
        line, _, self._held = self._held.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def command(self, method: str, /, session: str | None = None, **parameters: Any) -> Any:
        """Send a command and wait for its answer; events in between are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        octets = json.dumps(message).encode() + b"\0"
        while octets:
            octets = octets[os.write(self._write, octets) :]
        end = time.monotonic() + _DEADLINE_S
        while True:
            answer = self._message(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> dict[str, Any]:
        """The first event of that kind from now on, or already kept."""
        end = time.monotonic() + _DEADLINE_S
        at = 0
        while True:
            while at < len(self.events):
                event = self.events[at]
                at += 1
                if event.get("method") == method and event.get("sessionId") == session:
                    return event
            self.events.append(self._message(end))

    def open(
        self,
        place: Path | str,
        *,
        width: int = 1280,
        height: int = 900,
        scripts: bool = True,
        scheme: str = "light",
        medium: str = "screen",
        fragment: str = "",
    ) -> Page:
        """A page of its own, loaded: a file, or what is at a URL; at a fragment of it."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.command(f"{domain}.enable")
        page.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        page.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        page.command(
            "Emulation.setEmulatedMedia",
            media=medium,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        url = place if isinstance(place, str) else place.as_uri()
        page.command("Page.navigate", url=f"{url}#{fragment}" if fragment else url)
        self.wait_for("Page.loadEventFired", session)
        return page


class Page:
    """One page. ``look`` evaluates an expression in it, which works with scripts off too."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def command(self, method: str, /, **parameters: Any) -> Any:
        return self._browser.command(method, self._session, **parameters)

    def look(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """A click of the mouse in the middle of an element, which must be on the page's top."""
        place = json.dumps(selector)
        x, y, hit = self.look(
            f"(() => {{ const e = document.querySelector({place});"
            " e.scrollIntoView({block: 'center'}); const b = e.getClientRects()[0];"
            " const x = b.x + b.width / 2, y = b.y + b.height / 2;"
            " const top = document.elementFromPoint(x, y);"
            " return [x, y, e === top || e.contains(top)]; })()"
        )
        assert hit, f"something covers {selector}"
        for kind in ("mousePressed", "mouseReleased"):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    def key(self, key: str) -> None:
        """A key pressed and released: Tab, Enter, ArrowDown, a letter."""
        codes = {
            "Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
            "ArrowDown": 40,
        }  # fmt: skip
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        more = {"text": text} if text else {}
        self.command(
            "Input.dispatchKeyEvent",
            type="keyDown", key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0), **more,
        )  # fmt: skip
        self.command(
            "Input.dispatchKeyEvent",
            type="keyUp", key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0),
        )  # fmt: skip

    def type(self, text: str) -> None:
        """Text into what has the focus."""
        self.command("Input.insertText", text=text)

    def screenshot(self, file: Path) -> None:
        """What the window shows, as PNG."""
        file.write_bytes(base64.b64decode(self.command("Page.captureScreenshot")["data"]))

    def events(self, method: str) -> list[dict[str, Any]]:
        """Every event of that kind so far."""
        self.look("0")  # what happened before this answer has arrived with it
        return [
            event["params"]
            for event in self._browser.events
            if event.get("method") == method and event.get("sessionId") == self._session
        ]
