"""The CDX files of a task, read by name, as on one machine: a file that is corrupt is reported, and the others are used.

hdfs://             with WebHDFS, or `hadoop fs` where that cannot be used
s3://, others       `hadoop fs` copies all such files of the task to the scratch disk, because each start takes seconds
file://             read where they are
"""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any
from urllib.parse import unquote

from cdxmill.errors import InputError
from cdxmill.jobs.nodes.hdfs import NodeHdfs, hdfs_path, web_hdfs
from cdxmill.jobs.nodes.output import hadoop
from cdxmill.stages.lines.check_lines import LineError, checked

REBUILD = "rebuild this index"
_READ_SIZE = 1 << 18
_PIECE = 1 << 17
_MAGIC = b"\x1f\x8b\x08"
_GZIP = 31
"""zlib's code for a gzip member."""

try:
    from isal import isal_zlib

    _new_inflater: Any = isal_zlib.decompressobj
    _ERRORS: tuple[Any, ...] = (zlib.error, isal_zlib.error)
except ImportError:  # a bare Python
    _new_inflater, _ERRORS = zlib.decompressobj, (zlib.error,)


def urls_of(stream: IO[bytes]) -> Iterator[list[str]]:
    """The work of a mapper: each line of its input is a list of URLs."""
    for line in stream:
        yield json.loads(line)


def read_inputs(urls: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Each file and its text, in pieces. Reading these raises InputError if the file is missing or corrupt."""
    with TemporaryDirectory(prefix=".inputs-", dir=".") as folder:
        fetched = _Fetched(urls, Path(folder))
        for url in urls:
            sys.stderr.write(f"reporter:status:{url}\n")  # Hadoop kills a silent task
            yield url, _pieces(url, fetched)


def _pieces(url: str, fetched: _Fetched) -> Iterator[bytes]:
    try:
        with closing(fetched.open(url)) as file:
            yield from checked(_content(iter(partial(file.read, _READ_SIZE), b"")))
    except InputError as error:
        raise InputError(url, error.reason, error.hint) from None
    except LineError as error:
        raise InputError(url, str(error), REBUILD) from None
    except OSError as error:
        raise InputError(url, f"cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise InputError(url, str(error), REBUILD) from None


def _content(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The text of a file, which may be gzip. Raises ValueError if it is empty, corrupt or truncated."""
    first = next(pieces, b"")
    while first and len(first) < len(_MAGIC) and (more := next(pieces, b"")):
        first += more
    if not first:
        raise ValueError("the file is empty")
    if first[: len(_MAGIC)] != _MAGIC[: len(first)]:
        yield first
        yield from pieces
        return
    inflater: Any = None
    data = first
    while data:
        if inflater is None:
            if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
                raise ValueError("corrupt gzip data (no gzip member where one should begin)")
            inflater = _new_inflater(_GZIP)
        try:
            piece = inflater.decompress(data, _PIECE)
        except _ERRORS as error:
            raise ValueError(f"corrupt gzip data ({error})") from None
        if piece:
            yield piece
        data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        inflater = None if inflater.eof else inflater
        data = data or next(pieces, b"")
    if inflater is not None:
        raise ValueError("the file is truncated inside a gzip member")


class _Fetched:
    """Opens files. Those that only `hadoop fs` can read are copied to `folder`, all at once when the first is opened."""

    def __init__(self, urls: Sequence[str], folder: Path) -> None:
        self._urls, self._folder = urls, folder
        self._hdfs: dict[str, NodeHdfs | None] = {}
        self._copies: dict[str, Path] | None = None
        self._messages = ""

    def open(self, url: str) -> Any:
        """The file at `url`, with `read` and `close`. Raises InputError, OSError."""
        if url.startswith("file:"):
            return Path(unquote(url.partition("://")[2])).open("rb")
        if (hdfs := self._web(url)) is not None:
            return hdfs.open(hdfs_path(url)[1])
        if self._copies is None:
            self._copies = self._copy([one for one in self._urls if self._needs_command(one)])
        path = self._copies[url]
        if not path.exists():
            name = url.rpartition("/")[2]
            told = [line for line in self._messages.split("\n") if name in line or "xception" in line]
            raise InputError(url, f"hadoop fs -get failed ({(told or ['no reason given'])[-1]})")
        return path.open("rb")

    def _needs_command(self, url: str) -> bool:
        return not url.startswith("file:") and self._web(url) is None

    def _web(self, url: str) -> NodeHdfs | None:
        if not url.startswith("hdfs:"):
            return None
        authority = hdfs_path(url)[0]
        if authority not in self._hdfs:
            self._hdfs[authority] = web_hdfs(authority)
        return self._hdfs[authority]

    def _copy(self, urls: Sequence[str]) -> dict[str, Path]:
        """Copy files with as few commands as possible: files of the same name go to different folders."""
        copies: dict[str, Path] = {}
        left = list(dict.fromkeys(urls))
        while left:
            folder = self._folder / str(len(copies))
            folder.mkdir()
            batch = {url.rpartition("/")[2]: url for url in reversed(left)}
            command = [hadoop(), "fs", "-get", *batch.values(), str(folder)]
            done = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            self._messages += done.stderr.decode("utf-8", "replace")
            copies.update((url, folder / name) for name, url in batch.items())
            left = [url for url in left if url not in copies]
        return copies
