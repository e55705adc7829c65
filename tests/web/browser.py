"""A browser driven over its debugging pipe: nothing to install but the browser itself."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

DEADLINE_S = 600  # of one command; a loaded machine is slow, a hanging browser is forever


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def is_ubuntu():
    told = pathlib.Path("/etc/os-release")
    return told.exists() and "ID=ubuntu" in told.read_text().splitlines()


def unusable():
    """Why there is no browser to test with; nothing: there is one. What Ubuntu calls chromium is a stub, or a package
    that only runs in a session; elsewhere a browser that does not start is an error."""
    if not find() and not is_ubuntu():
        return "no chromium here (apt-get install chromium)"
    try:
        if find():
            with Browser():
                return None
    except RuntimeError:
        if not is_ubuntu():
            raise
    return "this distribution has no browser as a package"


class Browser:
    """One headless browser with one page. Use as a context manager."""

    def __init__(self, dark=False, width=1280, height=800):
        self.folder = tempfile.mkdtemp(prefix="whyslow-browser.")
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()

        def wire():  # the browser reads commands from 3 and answers on 4
            os.dup2(to_read, 13)
            os.dup2(back_write, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder}", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--hide-scrollbars", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=wire)
        os.close(to_read)
        os.close(back_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []
        try:
            self.attach(width, height, dark)
        except Exception:
            self.__exit__()
            raise

    def attach(self, width, height, dark):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, deadline - time.time()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.back, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self.to, data):]
        except BrokenPipeError:
            raise RuntimeError("the browser ended") from None
        deadline = time.time() + DEADLINE_S
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        # The page hears of it with the next frame.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def navigate(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.time() + DEADLINE_S
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message(deadline))

    def open(self, path, fragment=""):
        self.navigate("about:blank")  # so that another fragment is a new page too
        url = pathlib.Path(path).resolve().as_uri()
        self.navigate(f"{url}#{fragment}" if fragment else url)

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description")
                               or result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def key(self, key, **params):
        codes = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37,
                 "ArrowRight": 39, "Tab": 9, "Home": 36}
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0])), **params}
        if len(key) == 1 and not params.get("modifiers"):
            common["text"] = key
        if key == "Enter":
            common["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def problems(self):
        """Errors of scripts and of the page's policy since it was opened."""
        found = []
        self.run("0")  # what was under way has been reported when this is answered
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"] + " " +
                             params["exceptionDetails"].get("exception", {}).get("description", ""))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            elif event.get("method") == "Page.javascriptDialogOpening":
                found.append("a dialog opened: " + params["message"])
        return found

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
