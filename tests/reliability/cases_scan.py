"""The cases of `scan` in docs/reliability.md: three pages, and what is wrong with one of them or with what reads and writes them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import brotli  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .cases_copy import _full_disk

URLS = [f"http://example.com/{number}" for number in range(3)]
BAD = 1
"""The index of the page that is wrong."""
PAGE = b"<title>x</title><p>A needle</p>"
_HTML = "text/html"


class ScanCase(NamedTuple):
    """The body of the bad page (a function makes a large one), its HTTP fields, more options, and the code of a function for --call.

    With a `fault` the archive is on a web server, and a request is sent `tries` times. `around` surrounds the run.
    """

    body: bytes | Callable[[], bytes] = PAGE
    fields: str = f"Content-Type: {_HTML}\r\n"
    options: tuple[str, ...] = ("--where", "text:needle")
    code: str = ""
    fault: str = ""
    is_once: bool = False
    tries: int = 8
    around: Callable[[Path], AbstractContextManager[None]] = lambda out: nullcontext()

    def archive(self) -> bytes:
        """The archive with the three pages."""
        plain = f"Content-Type: {_HTML}\r\n"
        body = self.body if isinstance(self.body, bytes) else self.body()
        bodies = [(body, self.fields) if number == BAD else (PAGE, plain) for number in range(len(URLS))]
        return b"".join(_member(url, *body) for url, body in zip(URLS, bodies, strict=True))


def _member(url: str, body: bytes, fields: str) -> bytes:
    block = f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode() + body
    header = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(header.encode() + block + b"\r\n\r\n", 1)


def _bomb() -> bytes:
    return gzip.compress(PAGE + bytes(300 << 20), 1)


def _encoded(names: str, body: bytes | Callable[[], bytes]) -> ScanCase:
    return ScanCase(body, f"Content-Type: {_HTML}\r\nContent-Encoding: {names}\r\n")


def _calls(code: str, *options: str) -> ScanCase:
    """A function that does `code` with the bad record."""
    return ScanCase(options=options, code=f'    if record.url.endswith("/{BAD}"): {code}\n')


_TEXT = ("--where", "text:needle", "--extract", "url,main_text")
_JSON = ("--where", "body:needle")
_LARGE = b"<title>x</title><p>A needle</p>" + b"<p>" + b"word " * (8 << 20)

CASES = {
    "scan-broken-html": ScanCase(b"<<p <b></i>A needle<table></p><frameset><!-- <title"),
    "scan-charset": ScanCase(
        "\u017dlu\u0165ou\u010dk\u00fd needle".encode("cp1250"), f"Content-Type: {_HTML}; charset=utf-8\r\n"
    ),
    "scan-unknown-charset": ScanCase(PAGE, f"Content-Type: {_HTML}; charset=klingon\r\n"),
    "scan-binary": ScanCase(b"\x89PNG\r\n\x1a\n\0\0needle", options=("--extract", "url,title,text,links")),
    "scan-brotli": _encoded("br", brotli.compress(PAGE)),
    "scan-gzip-in-deflate": _encoded("gzip, deflate", zlib.compress(gzip.compress(PAGE))),
    "scan-brotli-in-gzip": _encoded("br, gzip", gzip.compress(brotli.compress(PAGE))),
    "scan-unknown-encoding": _encoded("sdch", PAGE),
    "scan-truncated": _encoded("gzip", gzip.compress(PAGE * 1000)[:-20]),
    "scan-bomb": _encoded("gzip", _bomb)._replace(options=_JSON),
    "scan-large": ScanCase(_LARGE),
    "scan-nested-tags": ScanCase(b"<div>" * 2_000_000 + PAGE, options=(*_TEXT, "--timeout", "30")),
    "scan-many-attributes": ScanCase(
        b"<p " + b" ".join(b"x%d" % number for number in range(100_000)) + b">" + PAGE,
        options=(*_TEXT, "--timeout", "30"),
    ),
    "scan-wat": ScanCase(b'{"Envelope": {"needle": [', "Content-Type: application/json\r\n", _JSON),
    "scan-raises": _calls("raise KeyError(7)"),
    "scan-hangs": _calls("time.sleep(999)", "--timeout", "1"),
    "scan-crashes": _calls("faulthandler.disable(); os.kill(os.getpid(), 11)"),  # pytest has enabled it
    "scan-leaks": _calls(
        "kept = [bytearray(b'x') * (60 << 20) for _ in iter(int, 1) if not time.sleep(0.1)]",
        "--memory",
        "400",
    ),
    "scan-503": ScanCase(fault="503", is_once=True),
    "scan-closed": ScanCase(fault="reset-body", is_once=True),
    "scan-stalled": ScanCase(fault="stall", is_once=True),
    "scan-stalled-for-good": ScanCase(fault="stall-before", tries=2),
    "scan-busy-for-long": ScanCase(fault="503", is_once=True, tries=1),
    "scan-always-busy": ScanCase(fault="503", tries=2),
    "scan-absent": ScanCase(fault="404"),
    "scan-full-disk": ScanCase(
        options=("--to", "jsonl", "--find", "x=html~."), around=_full_disk, body=PAGE + b"word " * 500
    ),
}
