#!/usr/bin/python3
"""Opens reports in headless Chromium: nothing runs, nothing is fetched, and a phone shows them without cutting.

usage: chromium_test.py WRITE_EXAMPLE MOELAB CHROMIUM [FOLDER FOR PICTURES]
"""
import base64
import json
import os
import subprocess
import sys
import tempfile


class Browser:
    """Chromium's DevTools protocol over a pair of pipes: JSON messages that end with a zero byte."""

    def __init__(self, chromium, profile):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def as_3_and_4():
            low, high = os.dup(to_browser), os.dup(from_browser)  # neither may be 3 or 4 before the other is moved
            os.dup2(low, 3)
            os.dup2(high, 4)

        self._process = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "--disable-background-networking", "--disable-component-update", "--no-first-run"],
            preexec_fn=as_3_and_4, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._last_id, self.events, self._session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _message(self):
        while b"\0" not in self._buffer:
            data = os.read(self._read, 1 << 20)
            assert data, "Chromium ended"
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + path)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            message = self._message()
            if "method" in message:
                self.events.append(message)
        return self.evaluate("document.title")

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def close(self):
        os.close(self._write)
        self._process.wait(timeout=60)


def check_quiet(browser, path):
    for event in browser.events:
        method, details = event["method"], event["params"]
        assert method not in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"), event
        assert method != "Log.entryAdded" or details["entry"]["level"] not in ("error", "warning"), event
        if method == "Network.requestWillBeSent":
            url = details["request"]["url"]
            assert url == "file://" + path or url.startswith("data:"), url


OVERFLOWING = """(() => {
  // What is inside of a part that scrolls by itself may be wide; a figure cuts what does not fit.
  const scrolls = e => e && (e.ownerSVGElement || /auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e))
      .map(e => e.outerHTML.slice(0, 200));
})()"""

# The width of a text is measured by the browser here, where the figures went by a table.
CUT_TEXT = """(() => [...document.querySelectorAll("svg text")].filter(e => {
  const text = e.getBoundingClientRect(), svg = e.ownerSVGElement.getBoundingClientRect();
  return text.left < svg.left - 1 || text.right > svg.right + 1 || text.top < svg.top - 1 || text.bottom > svg.bottom + 1;
}).map(e => e.textContent))()"""

SMALLEST_TEXT = """(() => {
  const sizes = [...document.querySelectorAll("svg text")].map(e => {
    const svg = e.ownerSVGElement;
    return parseFloat(getComputedStyle(e).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  });
  for (const e of document.querySelectorAll("p, td, th, li, figcaption, pre, summary"))
    sizes.push(parseFloat(getComputedStyle(e).fontSize));
  return Math.min(...sizes);
})()"""


def main():
    write_example, moelab, chromium = sys.argv[1:4]
    pictures = sys.argv[4] if len(sys.argv) > 4 else None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_example, folder], check=True)
        subprocess.run([write_example, folder, "study"], check=True)
        subprocess.run([write_example, folder, "sweep"], check=True)
        subprocess.run([write_example, folder, "hostile"], check=True)
        browser = Browser(chromium, os.path.join(folder, "profile"))
        for name in ("results", "study", "sweep", "hostile"):
            page = os.path.join(folder, name + ".html")
            subprocess.run([moelab, "report", os.path.join(folder, name + ".h5"), "-o", page, "--quiet"], check=True)
            for width, height in ((360, 740), (1280, 900)):
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                             mobile=width < 500)
                title = browser.open(page)
                assert title != "run", "a name was run as a script"
                browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                assert browser.evaluate(OVERFLOWING) == [], (name, width)
                assert browser.evaluate("document.querySelectorAll('figure svg').length") >= 3
                assert browser.evaluate("document.querySelectorAll('script, img, iframe, object').length") == 0
                assert browser.evaluate(SMALLEST_TEXT) >= 7, (name, width)
                if name != "hostile":  # whose sample text has single tokens that are wider than a figure
                    assert browser.evaluate(CUT_TEXT) == [], (name, width)
                check_quiet(browser, page)
                if pictures:
                    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
                    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
                    with open(os.path.join(pictures, f"{name}-{width}.png"), "wb") as file:
                        file.write(base64.b64decode(shot["data"]))
        # The check itself: a page that does what a report must not is found.
        page = os.path.join(folder, "bad.html")
        with open(page, "w") as file:
            file.write("<!DOCTYPE html><title>x</title><script>console.log('hello')</script><img src='http://127.0.0.1:9/x'>")
        browser.open(page)
        try:
            check_quiet(browser, page)
        except AssertionError:
            pass
        else:
            raise AssertionError("a page with a script and an image passed")
        browser.close()


main()
