"""The cases of `copy` in docs/reliability.md: three records on a web server, and what goes wrong when they are copied."""

from __future__ import annotations

import fcntl
import gzip
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from ..material.crawls import capture

URLS = [f"http://example.com/{number}" for number in range(3)]
RECORDS = [capture(url, "2024-05-17")[1] for url in URLS]
BAD = 1
"""The index of the record that is corrupt."""
_WRONG = b"A" * 32


class CopyCase(NamedTuple):
    """The archive that was indexed, and the one on the server; how requests fail; what surrounds the run."""

    indexed: bytes = b"".join(RECORDS)
    served: bytes | None = None
    fault: str = ""
    is_once: bool = False
    around: Callable[[Path], AbstractContextManager[None]] = lambda out: nullcontext()


def _swapped(new: bytes) -> bytes:
    return b"".join([*RECORDS[:BAD], new, *RECORDS[BAD + 1 :]])


def _flipped() -> bytes:
    middle = len(RECORDS[BAD]) // 2
    return _swapped(RECORDS[BAD][:middle] + bytes([RECORDS[BAD][middle] ^ 255]) + RECORDS[BAD][middle + 1 :])


def _with_wrong_digest() -> bytes:
    content = gzip.decompress(RECORDS[BAD])
    return _swapped(
        gzip.compress(
            content.replace(b"\r\nWARC-Date", b"\r\nWARC-Payload-Digest: sha1:" + _WRONG + b"\r\nWARC-Date")
        )
    )


@contextmanager
def _full_disk(out: Path) -> Iterator[None]:
    """No file can get larger than 1000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _killed_run(out: Path) -> Iterator[None]:
    """What a killed run leaves: its lock, an unfinished file, and the work of a unit."""
    (out / ".work").mkdir(parents=True)
    (out / ".lock").write_bytes(b"process 1 on host since 2024-01-01 00:00:00 UTC: cdxmill copy\n")
    (out / ".work/job.json").write_text("0")
    (out / ".out-00000.warc.gz.1-0123abcd.tmp").write_bytes(RECORDS[0])
    (out / ".work/unit-000000.warc").write_bytes(RECORDS[0][:100])
    yield


@contextmanager
def _second_run(out: Path) -> Iterator[None]:
    out.mkdir()
    (out / ".lock").touch(0o766)
    with (out / ".lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


CASES = {
    "copy-429": CopyCase(fault="429", is_once=True),
    "copy-503": CopyCase(fault="503", is_once=True),
    "copy-always-busy": CopyCase(fault="429"),
    "copy-short-answer": CopyCase(fault="short-body", is_once=True),
    "copy-closed": CopyCase(fault="reset-body", is_once=True),
    "copy-no-ranges": CopyCase(fault="whole"),
    "copy-wrong-range": CopyCase(fault="range-start"),
    "copy-absent": CopyCase(fault="404"),
    "copy-corrupt": CopyCase(served=_flipped()),
    "copy-truncated": CopyCase(served=b"".join(RECORDS)[:-5]),
    "copy-other": CopyCase(served=b"".join([*RECORDS[1:], RECORDS[0]])),
    "copy-digest": CopyCase(_with_wrong_digest()),
    "copy-full-disk": CopyCase(around=_full_disk),
    "copy-killed": CopyCase(around=_killed_run),
    "copy-second": CopyCase(around=_second_run),
}
