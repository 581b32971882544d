"""The part of the tutorial about ReplayWeb.page: its commands, and the archived page in a browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bench.browser import OPTIONS, find_chromium

from ..storage.range_server import Served, serving
from .pages import DOCS, environment, fences, page_examples, run_examples

PAGE = DOCS / "tutorials/archivist.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdxmill/npm"
TYPES = {".html": "text/html", ".js": "text/javascript"}
SECONDS = 80
EXPORT = "cdxmill export cluster '*.iana.org' --to wacz -o warcs/site.wacz"
"""What is replayed, too: one file, with a page like that of the tutorial."""


class WithoutQuery(dict[str, Served]):
    """Files of a server by path. ReplayWeb.page puts options for its scripts behind their names."""

    def get(self, path: str, default: Any = None) -> Any:
        return super().get(path.partition("?")[0], default)


class Browser:
    """Chromium without a window, and one page of it. Messages are JSON, each followed by a NUL."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers
        self._number = 0
        self._session: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """The result of a method of the DevTools protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while (answer := json.loads(self._message())).get("id") != self._number:
            pass
        return dict(answer["result"])

    def _message(self) -> bytes:
        data = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            data += byte
        return bytes(data)

    def value(self, script: str) -> object:
        """The value of an expression in the page."""
        return self.call("Runtime.evaluate", expression=script)["result"].get("value")

    def wait_for(self, script: str) -> object:
        """The value of an expression as soon as it is true. A page that hangs is loaded again, as a reader would do."""
        end, again = time.monotonic() + SECONDS, time.monotonic() + SECONDS / 4
        while not (found := self.value(script)):
            assert time.monotonic() < end, self.value("document.documentElement.outerHTML")
            if time.monotonic() > again:
                again += SECONDS / 4
                self.call("Page.reload")
            time.sleep(0.2)
        return found


@contextmanager
def browsing(directory: Path) -> Iterator[Browser]:
    reads, commands = os.pipe()
    answers, writes = os.pipe()
    options = [option for option in OPTIONS if not option.startswith("--virtual-time")]
    command = [find_chromium(), *options, "--remote-debugging-pipe", f"--user-data-dir={directory}"]
    with subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *command],
        pass_fds=(reads, writes),
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(reads)
        os.close(writes)
        try:
            with os.fdopen(commands, "wb") as to, os.fdopen(answers, "rb") as back:
                yield Browser(to, back)
        finally:
            process.kill()


def fetch_package(directory: Path) -> None:
    """Run the commands of the page that fetch the two scripts; npm keeps what it has downloaded."""
    block = next(text for text in fences(PAGE, "sh") if text.startswith("npm pack"))
    commands = "".join(line for line in block.splitlines(True) if not line.startswith("npx"))
    env = {**environment(), "npm_config_cache": str(CACHE), "npm_config_prefer_offline": "true"}
    done = subprocess.run(
        ["bash", "-ec", commands], cwd=directory, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_replayweb_page_shows_the_archive_of_the_tutorial(tmp_path: Path) -> None:
    assert shutil.which("npm"), "npm is missing; install it (Debian: apt-get install npm)"
    run_examples([*(example.command for example in page_examples(PAGE)), EXPORT], tmp_path)
    fetch_package(tmp_path)
    page = (tmp_path / "warcs/index.html").read_text()
    (tmp_path / "warcs/wacz.html").write_text(page.replace("index.cdxj", "site.wacz"))
    with serving() as server, browsing(tmp_path / "profile") as browser:
        server.files = WithoutQuery()
        for path in (tmp_path / "warcs").rglob("*.*"):
            served = server.add(f"/{path.relative_to(tmp_path / 'warcs')}", path.read_bytes())
            served.headers["Content-Type"] = TYPES.get(path.suffix, "application/octet-stream")
        browser.call("Page.navigate", url=f"{server.url}/index.html")
        shown = browser.wait_for(FIND_TEXT)
        assert "responsible for the global coordination of the DNS Root" in str(shown)
        assert any(path.endswith("iana.warc.gz") and ranges for _, path, ranges in server.seen)
        before = len(server.seen)
        browser.call("Page.navigate", url=f"{server.url}/wacz.html")
        shown = browser.wait_for(FIND_TEXT)
        assert "responsible for the global coordination of the DNS Root" in str(shown)
        assert any(path.endswith("site.wacz") and ranges for _, path, ranges in server.seen[before:])


FIND_TEXT = """
(() => {
    const frames = node => [...node.querySelectorAll('*')].flatMap(e =>
        [...(e.shadowRoot ? frames(e.shadowRoot) : []), ...(e.contentDocument ? [e, ...frames(e.contentDocument)] : [])]);
    const page = frames(document).find(e => e.src && e.src.includes('mp_/'));
    return page && page.contentDocument.body && page.contentDocument.body.innerText.includes('DNS Root')
        ? page.contentDocument.body.innerText : '';
})()
"""
"""The text of the archived page, which is in a frame in a shadow in a frame in a shadow."""
