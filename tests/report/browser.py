"""Debian's Chromium, headless, spoken to in the DevTools protocol over a pair of pipes.

No driver and no package in between: `--remote-debugging-pipe` reads commands from file descriptor 3
and writes answers and events to 4, JSON texts that end in a zero byte.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb"),
)
TIMEOUT_S = 60.0


class Browser:
    """One page of one browser.

    Args:
        profile: an empty directory for its settings and cache.
    """

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()
        arguments = [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        # The shell puts the pipes where Chromium looks for them; both ends may have any number.
        shell = f'exec "$@" 3<&{read_commands} 4>&{write_answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", *arguments],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._commands)  # Chromium leaves when its pipe is closed
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result; events are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a file from disk, in a window of this size, in the light or dark theme."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=theme)
        self.events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression, awaited when it is a promise."""
        result = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """One stroke of a key, such as `ArrowRight`, 39."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def complaints(self) -> list[str]:
        """Everything the page has written to the console, thrown, or failed to load."""
        self.evaluate("1")  # what was under way has arrived by the time this is answered
        texts = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                texts.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                texts.append(str(parameters["args"]))
            elif event["method"] == "Log.entryAdded":
                texts.append(parameters["entry"]["text"])
        return texts

    def requested(self) -> list[str]:
        """Addresses the page has asked for, itself included."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.send(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self, path: Path) -> None:
        """The page as a PDF of A4 sheets."""
        options = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        path.write_bytes(base64.b64decode(self.send("Page.printToPDF", **options)["data"]))

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._unread += part
        text, self._unread = self._unread.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message
