"""A headless Chromium that tests drive through its debugging pipe: nothing but the browser itself is needed."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = (  # containers have little of /dev/shm
    "headless no-sandbox disable-gpu disable-dev-shm-usage disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync hide-scrollbars"
)
FLAGS = tuple(f"--{name}" for name in _FLAGS.split())
# Windows' virtual key codes, which is what the browser asks for.
KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One tab."""

    def __init__(self, to: int, since: int) -> None:
        self._to = os.fdopen(to, "wb", buffering=0)
        self._since = os.fdopen(since, "rb")
        self._numbers = itertools.count(1)
        self._session = ""
        self.errors: list[str] = []
        self._arrived: set[str] = set()  # loads of a page that the tab has left the one before it for
        self.requests: dict[str, str] = {}  # every address that was asked for, but those that the page's policy forbade
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The browser's answer to one command of its protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        parts = []
        while (byte := self._since.read(1)) != b"\0":
            assert byte, "the browser has ended"
            parts.append(byte)
        answer = json.loads(b"".join(parts))
        if answer.get("method") == "Page.frameNavigated":
            self._arrived.add(answer["params"]["frame"]["loaderId"])
        elif answer.get("method") == "Runtime.exceptionThrown":
            self.errors.append(answer["params"]["exceptionDetails"]["exception"].get("description", "?"))
        elif answer.get("method") == "Network.requestWillBeSent":
            self.requests[answer["params"]["requestId"]] = answer["params"]["request"]["url"]
        elif answer.get("method") == "Network.loadingFailed" and answer["params"].get("blockedReason") == "csp":
            del self.requests[answer["params"]["requestId"]]
        elif answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
            self.errors.append(answer["params"]["entry"]["text"])
        return answer

    def open(self, page: Path) -> None:
        """Go to a file and wait until it is loaded."""
        self.go_to(page.as_uri())
        self.wait("document.readyState === 'complete'")

    def go_to(self, address: str) -> None:
        """Leave the page for another."""
        load = self.call("Page.navigate", url=address).get("loaderId")
        while load and load not in self._arrived:
            self._read()

    def reload(self) -> None:
        """Leave the page for itself."""
        before = set(self._arrived)
        self.call("Page.reload")
        while self._arrived == before:
            self._read()

    def size(self, width: int, height: int) -> None:
        """As if on a screen of so many pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.wait(f"Math.round(visualViewport.width * visualViewport.scale) === {width}")

    def media(self, kind: str = "", **features: str) -> None:
        """As if printed, or with the user's preferences."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=kind, features=listed)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        asked = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in asked, asked["exceptionDetails"]
        return asked["result"].get("value")

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Until the expression holds in the page, which is asked at every frame."""
        program = f"""new Promise((done, fail) => {{
          const until = performance.now() + {1000 * seconds};
          const look = () => {{
            if ({condition}) done(true);
            else if (performance.now() > until) done(false);
            else setTimeout(look, 15);
          }};
          look();
        }})"""
        assert self.ask(program), f"this did not come about: {condition}"

    def press(self, key: str, modifiers: int = 0) -> None:
        """A key, as from a keyboard."""
        code = KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        """Text, as if typed where the focus is."""
        self.call("Input.insertText", text=text)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, no proxy and no home: it has nothing to reach for."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:

        def pipes() -> None:
            # The protocol's own descriptors. Moved up first, lest one overwrite the other.
            high_read, high_write = os.dup(to_read), os.dup(from_write)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder}"],
            env={"PATH": os.environ.get("PATH", ""), "HOME": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=pipes,
            close_fds=False,
        )
        os.close(to_read)
        os.close(from_write)
        found = None
        try:
            found = Browser(to_write, from_read)
            yield found
        finally:
            if found is not None:
                found._to.close()  # which ends the browser
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
