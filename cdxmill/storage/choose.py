"""A path or URL -> the storage that reads or writes it.

    path, file://            local
    http://, https://        http       by urllib3, reading only
    s3://, s3a://            s3         by boto3, the extra `s3`
    hdfs://                  hdfs       by WebHDFS over urllib3

A storage is imported when it is first used, so that plain files cost nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from cdxmill.errors import InputError, UsageError
from cdxmill.storage import local
from cdxmill.storage.entry import Entry

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.I)
_HTTP = ("http", "https")
_S3 = ("s3", "s3a")
_HDFS = "hdfs"
_THIS_MACHINE = ("", "localhost")

_AT_A_TIME = 16
"""Questions that wait for the network and cost the server little."""

Answer = TypeVar("Answer")
PathOrUrl = str | Path
"""A path, or a URL."""


class _Reads(Protocol):
    """What a module has whose files can be read."""

    def open_ranges(self, path: str, /) -> AbstractContextManager[Callable[[int, int], bytes]]: ...
    def file_size(self, path: str, /) -> int: ...
    def status(self, path: str, /) -> Entry | None: ...


class _Writes(_Reads, Protocol):
    """What a module has whose files can be written, too."""

    def write_atomic(self, path: str, /) -> AbstractContextManager[IO[bytes]]: ...
    def list_folder(self, path: str, /) -> dict[str, Entry]: ...
    def remove(self, path: str, /) -> None: ...


def open_ranges(path: str) -> AbstractContextManager[Callable[[int, int], bytes]]:
    """`read_at(offset, size)` over the file at a path or URL; it gives fewer bytes only at its end.

    Raises InputError where the file is absent or cannot be read, UsageError where reading such
    URLs needs a library or a setting that is not there.
    """
    storage, name = _reads(path)
    return storage.open_ranges(name)


def read_bytes(place: PathOrUrl) -> bytes:
    """The whole file at a path or URL, a small one. Raises as open_ranges does."""
    with open_ranges(str(place)) as read_at:
        return b"".join(pieces(read_at))


def pieces(read_at: Callable[[int, int], bytes], size: int = 4 << 20) -> Iterator[bytes]:
    """A file's bytes from start to end, `size` of them at a time."""
    offset = 0
    while data := read_at(offset, size):
        yield data
        offset += len(data)
        if len(data) < size:
            return


def file_size(path: str) -> int:
    """Bytes of the file at a path or URL; 0 where it cannot be told. A URL costs a request."""
    try:
        storage, name = _reads(path)
    except InputError:
        return 0
    return storage.file_size(name)


def total_size(paths: Iterable[str]) -> int:
    """Bytes of all files; 0, for it cannot be told soon, where one is behind a network.

    Thousands of requests before the first byte is read are more than a progress bar is worth.
    """
    total = 0
    for path in paths:
        if is_remote(path):
            return 0
        total += file_size(path)
    return total


def status(place: PathOrUrl) -> Entry | None:
    """Size and time of what is at a path or URL; None where nothing is. A URL costs a request.

    Raises InputError where that cannot be told, UsageError as open_ranges does.
    """
    storage, name = _reads(str(place))
    return storage.status(name)


def exists(place: PathOrUrl) -> bool:
    """Whether a file or folder is at a path or URL. Raises as `status` does."""
    return status(place) is not None


def is_newer(output: PathOrUrl, source: str) -> bool:
    """Whether `output` stands and was written after `source`; each is a path or URL.

    A source behind http is taken as it is, as is one that is read for an output on this machine:
    archives are not rewritten there, and asking for each would make a rerun slow.
    """
    if is_remote(source) and not is_remote(str(output)):
        return exists(output)
    try:
        made = status(output)
        if made is None or _scheme(source) in _HTTP:
            return made is not None
        since = status(source)
    except InputError:
        return False
    return since is not None and made.modified >= since.modified


def write_atomic(place: PathOrUrl) -> AbstractContextManager[IO[bytes]]:
    """A file that stands at a path or URL only once it is whole; its folder is made.

    Raises StoppedError where it cannot be written, UsageError where such URLs are never written.
    """
    storage, name = _writes(str(place))
    return storage.write_atomic(name)


def list_folder(place: PathOrUrl) -> dict[str, Entry]:
    """What is right below a folder, by name; nothing where there is none. Raises InputError, UsageError."""
    storage, name = _writes(str(place))
    return storage.list_folder(name)


def remove(place: PathOrUrl) -> None:
    """Delete the file at a path or URL where there is one. Raises StoppedError, UsageError."""
    storage, name = _writes(str(place))
    storage.remove(name)


def join(place: PathOrUrl, *names: str) -> str:
    """The path or URL of a file below a folder.

    >>> join("s3://bucket/cluster/", "cdx", "a.cdx.gz"), join("/cluster", "cluster.idx")
    ('s3://bucket/cluster/cdx/a.cdx.gz', '/cluster/cluster.idx')
    """
    return "/".join((str(place).rstrip("/"), *names))


def absolute(place: PathOrUrl) -> str:
    """A URL as it is, and a path from the root; without a slash at the end.

    >>> absolute("s3://bucket/cluster/"), absolute("/data/x/../cluster"), absolute("file:///data/a%20b")
    ('s3://bucket/cluster', '/data/cluster', '/data/a b')
    """
    place = str(place)
    return place.rstrip("/") if is_remote(place) else os.path.abspath(local_path(place))  # noqa: PTH100 - takes .. out


def ask_all(ask: Callable[[str], Answer], paths: Iterable[str]) -> list[Answer]:
    """`ask` of each path or URL, in order; where some are behind a network, many are asked at a time."""
    paths = list(paths)
    if not any(map(is_remote, paths)):
        return [ask(path) for path in paths]
    first = ask(paths[0])  # alone, so that a client is made once
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(_AT_A_TIME) as asking:
        return [first, *asking.map(ask, paths[1:])]


def same_place(one: PathOrUrl, other: PathOrUrl) -> bool:
    """Whether two paths or URLs name one folder."""
    schemes = {_scheme(str(place)) for place in (one, other)}
    if schemes <= {"", "file"}:
        return Path(local_path(str(one))).resolve() == Path(local_path(str(other))).resolve()
    if schemes == {_HDFS}:
        from cdxmill.storage import hdfs

        return hdfs.same_place(str(one), str(other))
    keys = [str(place).partition("://")[2].rstrip("/") for place in (one, other)]
    return schemes <= set(_S3) and keys[0] == keys[1]


def is_remote(path: str) -> bool:
    """Whether a path or URL is behind a network."""
    return _scheme(path) not in ("", "file")


def is_listed(path: str) -> bool:
    """Whether it is a URL behind a network whose folders can be listed."""
    return _scheme(path) in (_HDFS, *_S3)


def check_libraries(paths: Iterable[str]) -> None:
    """Raise UsageError where reading one of `paths` needs a library that is not installed."""
    if any(_scheme(path) in _S3 for path in paths):
        from cdxmill.storage import s3

        s3.require()


def check_writable(place: PathOrUrl) -> None:
    """Raise UsageError where nothing can be written at a path or URL, whatever its rights."""
    scheme = _scheme(str(place))
    if scheme not in ("", "file", _HDFS, *_S3):
        raise UsageError(
            f"{place}: {scheme}:// has no folders to write to or to list; name a folder, or an s3 or hdfs URL"
        )
    check_libraries([str(place)])
    if scheme == "file":
        local_path(str(place))


def local_path(path: str) -> str:
    """The path that a path or file URL names. Raises InputError for other URLs (RFC 8089)."""
    scheme = _scheme(path)
    if not scheme:
        return path
    if scheme != "file":
        raise InputError(
            path, f"{scheme}:// cannot be read", "name a path, or a file, http(s), s3 or hdfs URL"
        )
    host, slash, rest = path.partition("://")[2].partition("/")
    if host.lower() not in _THIS_MACHINE or not slash:
        raise InputError(path, "is not a file of this machine", "write file:///PATH")
    return os.fsdecode(b"/" + unquote_to_bytes(os.fsencode(rest)))


def _reads(path: str) -> tuple[_Reads, str]:
    """The storage that reads a path or URL, and the name that it has there."""
    if _scheme(path) in _HTTP:
        from cdxmill.storage import http

        return http, path
    return _storage(path)


def _writes(path: str) -> tuple[_Writes, str]:
    check_writable(path)
    return _storage(path)


def _storage(path: str) -> tuple[_Writes, str]:
    scheme = _scheme(path)
    if scheme in _S3:
        from cdxmill.storage import s3

        return s3, path
    if scheme == _HDFS:
        from cdxmill.storage import hdfs

        return hdfs, path
    return local, local_path(path)


def _scheme(path: str) -> str:
    match = _URL.match(path)
    return match[1].lower() if match else ""
