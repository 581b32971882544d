"""What is in the directory at the start of each sequence."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.sequences.lab import call
from bench.sequences.steps import Change

SAMPLES = Path(sys.prefix) / "sample_archive/warcs"
"""pywb installs them."""
_COPIES = {
    "in/one.warc.gz": "example.warc.gz",
    "in/two.warc.gz": "post-test.warc.gz",
    "in/old.arc.gz": "example.arc.gz",
    "more/one.warc.gz": "example-wget-1-14.warc.gz",
    "spare/a.warc.gz": "example2.warc.gz",
    "spare/b.warc.gz": "httpbin-resource.warc.gz",
    "spare/c.warc.gz": "example-wpull.warc.gz",
    "spare/cut.warc.gz": "example-url-agnostic-orig.warc.gz",
    "spare/dupes.warc.gz": "dupes.warc.gz",
    "spare/plain.warc": "example-extra.warc",
}
_STEPS: tuple[Change | str, ...] = (
    *(Change("copy", name, str(SAMPLES / source)) for name, source in _COPIES.items()),
    Change("cut", "spare/cut.warc.gz", "0.8"),
    "index -o cdx/a.cdxj in/one.warc.gz in/two.warc.gz",
    "index -o cdx/b.cdxj.gz in/old.arc.gz",
    "index -o spare/c.cdxj spare/a.warc.gz",
    "index -o spare/cut.cdxj.gz spare/a.warc.gz",
    Change("cut", "spare/cut.cdxj.gz", "0.7"),
    "build -s 1 -o cl in",
    "zipnum -s 2 --numlines 1 -o cl2 cdx/a.cdxj",
    "recompress --offsets -o moved in/one.warc.gz in/two.warc.gz",
    "train-dictionary -p 1 -o dict spare/dupes.warc.gz spare/c.warc.gz",
)
_OLD = 1_000_000_000


def make_start(work: Path) -> Path:
    """Make `work`/w, with files that are older than all that comes, and go there. Raises RuntimeError if a command fails."""
    start = work / "w"
    start.mkdir()
    os.chdir(start)
    for step in _STEPS:
        if isinstance(step, Change):
            step.do()
            continue
        status, _, stderr = call(step.split())
        if status:
            raise RuntimeError(f"{step}: {stderr}")
    for path in start.rglob("*"):
        os.utime(path, (_OLD, _OLD))
    return start


@contextmanager
def quick_commands() -> Iterator[None]:
    """Run commands in this process with one time for all, without a cache, and without what only takes time."""
    here, fsync = Path.cwd(), os.fsync
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    variables = {"SOURCE_DATE_EPOCH": "1600000000", "CDXMILL_CACHE": "off"}
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    patched: Any = os  # for the type checker
    patched.fsync = _nothing
    try:
        yield
    finally:
        os.chdir(here)
        patched.fsync = fsync
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}


def _nothing(*_: object) -> None:
    pass
