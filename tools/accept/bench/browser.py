"""Debian's chromium without a window, over the pipe of its debugging protocol: what a page asks for, and how it looks."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time

ANSWER_LIMIT_S = 60


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def high_pipe():
    """A pipe whose ends are no 3 and no 4, which the browser gets."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """One browser with one page. Use it with `with`."""

    def __init__(self):
        self.number, self.events, self.buffer = 0, [], b""
        self.profile = tempfile.TemporaryDirectory(prefix="accept-chromium-", ignore_cleanup_errors=True)
        from_us, self.to_browser = high_pipe()
        self.from_browser, to_us = high_pipe()
        words = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
                 f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "chromium", *words],
                                        pass_fds=(from_us, to_us), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        os.set_blocking(self.from_browser, False)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.profile.cleanup()

    def call(self, method, **parameters):
        """The answer to one command; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        answer = self.wait_for(lambda one: one.get("id") == self.number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, is_wanted):
        """The first message that is wanted; the others are kept as events."""
        end = time.monotonic() + ANSWER_LIMIT_S
        while time.monotonic() < end:
            while b"\0" in self.buffer:
                text, _, self.buffer = self.buffer.partition(b"\0")
                message = json.loads(text)
                if is_wanted(message):
                    return message
                self.events.append(message)
            try:
                self.buffer += os.read(self.from_browser, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
        raise RuntimeError("the browser did not answer")

    def open(self, path, width, height, theme="light", media=""):
        """Opens a file as a screen of this size and theme shows it."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        if not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            self.wait_for(lambda one: one.get("method") == "Page.loadEventFired")

    def requests(self):
        """Every address that was asked for since `open`."""
        return [one["params"]["request"]["url"] for one in self.events if one.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the browser wrote into its log since `open`."""
        return [one["params"]["entry"]["text"] for one in self.events if one.get("method") == "Log.entryAdded"]

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=f"JSON.stringify({expression})", returnByValue=True)
        return json.loads(answer["result"]["value"])

    def screenshot(self, path):
        """The whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print_pdf(self, path):
        printed = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(printed["data"]))
