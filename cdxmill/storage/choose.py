"""Choose the storage for a path or URL.

    path, file://            local
    http://, https://        http       by urllib3, read only
    s3://, s3a://            s3         by boto3, the extra `s3`
    hdfs://                  hdfs       by WebHDFS over urllib3, or
                             hadoop_fs  by the hadoop command, where WebHDFS is secured

A path that leads into a WACZ, such as x.wacz/archive/data.warc.gz, is read there by `wacz`. A storage is imported when it is first used, so local files need no network library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from cdxmill.errors import InputError, UsageError
from cdxmill.storage import wacz
from cdxmill.storage.entry import Entry
from cdxmill.storage.local import files as local
from cdxmill.storage.places import Reach

if TYPE_CHECKING:
    from cdxmill.formats.archives.zip_directory import Member

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.I)
HTTP = ("http", "https")
S3 = ("s3", "s3a")
"""Schemes of web servers, and of S3."""
_HDFS = "hdfs"
_OWN_S3 = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""Set if S3 is the user's own service."""
_NO_LOCATION = re.compile("[\t\r\n]")
"""No path in cluster.loc may have one of these characters."""
_THIS_MACHINE = ("", "localhost")

SMALL = 256 << 20
"""Bytes of the largest file that is held in memory: a list of archives, cluster.json, cluster.loc, the part of a shard."""
_AT_A_TIME = 16
"""Small requests that are sent at a time. They mostly wait for the network."""

Answer = TypeVar("Answer")
PathOrUrl = str | Path
"""A path, or a URL."""


class _Writes(wacz.Reads, Protocol):
    """The functions of a storage that can also write."""

    def write_atomic(self, path: str, /) -> AbstractContextManager[IO[bytes]]: ...
    def list_folder(self, path: str, /) -> dict[str, Entry]: ...
    def remove(self, path: str, /) -> None: ...
    def remove_tree(self, path: str, /) -> None: ...
    def move(self, path: str, target: str, /) -> None: ...


def open_ranges(path: str) -> AbstractContextManager[Callable[[int, int], bytes]]:
    """Open the file at a path or URL: `read_at(offset, size)` returns fewer bytes only at the end of the file.

    Raises AbsentError, RefusedError or another InputError if the file cannot be read. Raises UsageError if a
    library or a setting for such URLs is missing.
    """
    storage, name = _reads(path)
    return storage.open_ranges(name)


def read_bytes(path: PathOrUrl) -> bytes:
    """The content of a small file. Raises as `open_ranges` does, and InputError if it is larger than SMALL."""
    data = bytearray()
    with open_ranges(str(path)) as read_at:
        for piece in pieces(read_at):
            data += piece
            if len(data) > SMALL:
                raise InputError(
                    str(path), f"has more than {SMALL >> 20} MiB, where a small file is expected"
                )
    return bytes(data)


def files_in_wacz(path: str) -> dict[str, Member]:
    """The files of the WACZ at a path or URL, by name. Raises as `open_ranges` does."""
    return wacz.files_in(*_reads_file(path))


def stored_in(path: str) -> str:
    """The path or URL of the file that has the bytes: the WACZ, if `path` leads into one."""
    place = wacz.place_of(path if is_remote(path) else local_path(path))
    return path if place is None else place.wacz


def pieces(read_at: Callable[[int, int], bytes], size: int = 4 << 20) -> Iterator[bytes]:
    """Yield the content of a file from start to end, `size` bytes at a time."""
    offset = 0
    while data := read_at(offset, size):
        yield data
        offset += len(data)
        if len(data) < size:
            return


def file_size(path: str) -> int:
    """The size of a file in bytes; 0 if it is unknown. A URL costs one request."""
    try:
        storage, name = _reads(path)
    except InputError:
        return 0
    return storage.file_size(name)


def total_size(paths: Iterable[str]) -> int:
    """The size of all files in bytes; 0 if one of them is remote.

    A progress bar is not worth thousands of requests before the first byte is read.
    """
    total = 0
    for path in paths:
        if is_remote(path):
            return 0
        total += file_size(path)
    return total


def status(path: PathOrUrl) -> Entry | None:
    """The size and time of a file or folder; None if it does not exist. A URL costs one request.

    Raises InputError if the storage gives no answer, UsageError as `open_ranges` does.
    """
    storage, name = _reads(str(path))
    return storage.status(name)


def exists(path: PathOrUrl) -> bool:
    """Whether a file or folder exists. Raises as `status` does."""
    return status(path) is not None


def check_absent(path: PathOrUrl) -> None:
    """Raise UsageError if `path` is a file with content, which would be overwritten, or a folder. Raises as `status` does."""
    found = status(path)
    if found is not None and found.is_folder:
        raise UsageError(f"{path}: is a directory; choose another output file")
    if found is not None and found.size:
        raise UsageError(
            f"{path}: already exists; use --replace to replace it, or choose another output file"
        )


def is_newer(output: PathOrUrl, source: str) -> bool:
    """Whether `output` has content and is not older than `source`; each is a path or URL.

    An empty file was left by a power cut: a finished output is never empty.
    The time of the source is not compared if the source is an HTTP file, or if it is remote and the output is
    local. Remote archives are not rewritten, and one request for each would make a rerun slow. False if the source
    cannot be read. Raises InputError if the storage of the output gives no answer.
    """
    made = status(output)
    if made is None or not made.size:
        return False
    if scheme_of(source) in HTTP or (is_remote(source) and not is_remote(str(output))):
        return True
    try:
        since = status(source)
    except InputError:
        return False
    return since is not None and made.modified >= since.modified


def write_atomic(path: PathOrUrl, *, sync_name: bool = True) -> AbstractContextManager[IO[bytes]]:
    """Write a file that gets its name only when it is complete. Its folder is created.

    Without `sync_name`, call `local.sync_folders` later if the file is local.
    Raises StoppedError if it cannot be written, UsageError if such URLs cannot be written at all.
    """
    storage, name = _writes(str(path))
    if storage is local:
        return local.write_atomic(name, sync_name=sync_name)
    return storage.write_atomic(name)


def list_folder(path: PathOrUrl) -> dict[str, Entry]:
    """The entries of a folder by name; none if it does not exist. Raises InputError, UsageError."""
    storage, name = _writes(str(path))
    return storage.list_folder(name)


def remove(path: PathOrUrl) -> None:
    """Delete a file if it exists. Raises StoppedError, UsageError."""
    storage, name = _writes(str(path))
    storage.remove(name)


def remove_tree(path: PathOrUrl) -> None:
    """Delete a file, or a directory with all that is below it, if it exists. Raises StoppedError, UsageError."""
    storage, name = _writes(str(path))
    storage.remove_tree(name)


def move(path: str, target: str) -> None:
    """Give a file or directory another name in the same storage. Raises StoppedError, UsageError.

    A file at `target` is replaced by a file, an empty directory by a directory. A directory that is not empty is never
    replaced, and nothing is moved into it. The parent of `target` exists. A directory is moved in one step.
    S3 has no directories: it moves single objects only, copies the object itself, and then deletes the old one.
    """
    storage, name = _writes(path)
    storage.move(name, _writes(target)[1])


def join(path: PathOrUrl, *names: str) -> str:
    """The path or URL of a file below the folder `path`.

    >>> join("s3://bucket/cluster/", "cdx", "a.cdx.gz"), join("/cluster", "cluster.idx"), join("hdfs:///", "a")
    ('s3://bucket/cluster/cdx/a.cdx.gz', '/cluster/cluster.idx', 'hdfs:///a')
    """
    folder = str(path).rstrip("/")
    if folder.endswith(":") and is_remote(str(path)):  # the root of the default file system
        folder += "//"
    return "/".join((folder, *names))


def absolute(path: PathOrUrl) -> str:
    """An absolute path, or the URL unchanged; without a slash at the end.

    >>> absolute("s3://bucket/cluster/"), absolute("/data/x/../cluster"), absolute("file:///data/a%20b")
    ('s3://bucket/cluster', '/data/cluster', '/data/a b')
    """
    path = str(path)
    return path.rstrip("/") if is_remote(path) else os.path.abspath(local_path(path))  # noqa: PTH100 - takes .. out


def ask_all(ask: Callable[[str], Answer], paths: Iterable[str]) -> list[Answer]:
    """The results of `ask` for each path or URL, in order. Requests run in parallel if one of them is remote."""
    paths = list(paths)
    if not any(map(is_remote, paths)):
        return [ask(path) for path in paths]
    first = ask(paths[0])  # alone, so that a client is made once
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    asking = ThreadPoolExecutor(_AT_A_TIME)
    try:
        answers = [first, *asking.map(ask, paths[1:])]
    except BaseException:  # after Ctrl-C, too: nobody needs the other answers
        asking.shutdown(wait=False, cancel_futures=True)
        raise
    asking.shutdown()
    return answers


def same_location(one: PathOrUrl, other: PathOrUrl) -> bool:
    """Whether two paths or URLs are the same file or folder."""
    schemes = {scheme_of(str(path)) for path in (one, other)}
    if schemes <= {"", "file"}:
        return Path(local_path(str(one))).resolve() == Path(local_path(str(other))).resolve()
    if schemes == {_HDFS}:
        from cdxmill.storage.hadoop import hadoop_fs, hdfs

        if hadoop_fs.is_needed():
            return hadoop_fs.same_location(str(one), str(other))
        return hdfs.same_location(str(one), str(other))
    keys = [str(path).partition("://")[2].rstrip("/") for path in (one, other)]
    return schemes <= set(S3) and keys[0] == keys[1]


def is_remote(path: str) -> bool:
    """Whether it is a URL other than file://, so that its file is on another machine."""
    return scheme_of(path) not in ("", "file")


def content_reach(path: str) -> Reach:
    """How far the content of a path or URL may lead: content of a public server to public addresses only."""
    if scheme_of(path) in HTTP:
        from cdxmill.storage.web.http_file import reach_from

        return reach_from(path)
    is_public = scheme_of(path) in S3 and not any(map(os.environ.get, _OWN_S3))
    return Reach.PUBLIC if is_public else Reach.NETWORK


def is_listed(path: str) -> bool:
    """Whether it is a remote URL whose folders can be listed: s3, hdfs."""
    return scheme_of(path) in (_HDFS, *S3)


def check_libraries(paths: Iterable[str]) -> None:
    """Raise UsageError if a library that is needed to read one of `paths` is not installed."""
    if any(scheme_of(path) in S3 for path in paths):
        from cdxmill.storage.s3 import objects as s3

        s3.require()


def check_writable(path: PathOrUrl) -> None:
    """Raise UsageError if cdxmill cannot write to such URLs. The access rights are not checked."""
    scheme = scheme_of(str(path))
    if scheme not in ("", "file", _HDFS, *S3):
        raise UsageError(
            f"{path}: {scheme}:// cannot be written or listed; use a local path, or an s3 or hdfs URL"
        )
    check_libraries([str(path)])
    if scheme == "file":
        local_path(str(path))


def local_directory(path: str) -> Path:
    """The local directory that a path or file URL names, for a cluster. Raises UsageError if it cannot have one."""
    if is_remote(path):
        raise UsageError(
            f"{path}: not a local directory; build the cluster locally, then copy it with cdxmill publish"
        )
    folder = local_path(path)
    if _NO_LOCATION.search(absolute(folder)):
        raise UsageError(
            f"{path}: cluster.loc cannot have a path with a tab or a line end; choose another directory"
        )
    return Path(folder)


def local_path(path: str) -> str:
    """The path of a path or file URL (RFC 8089). Raises InputError for other URLs."""
    scheme = scheme_of(path)
    if not scheme:
        return path
    if scheme != "file":
        raise InputError(
            path, f"{scheme}:// is not supported", "use a path, or a file, http, https, s3 or hdfs URL"
        )
    host, slash, rest = path.partition("://")[2].partition("/")
    if host.lower() not in _THIS_MACHINE or not slash:
        raise InputError(path, "is not a local file", "use file:///PATH")
    return os.fsdecode(b"/" + unquote_to_bytes(os.fsencode(rest)))


def _reads(path: str) -> tuple[wacz.Reads, str]:
    """The storage that reads a path or URL, and the name to use with it."""
    storage, name = _reads_file(path)
    place = wacz.place_of(name)
    return (storage, name) if place is None else (wacz.WaczFiles(storage, place), name)


def _reads_file(path: str) -> tuple[wacz.Reads, str]:
    if scheme_of(path) in HTTP:
        from cdxmill.storage.web import http

        return http, path
    return _storage(path)


def _writes(path: str) -> tuple[_Writes, str]:
    check_writable(path)
    return _storage(path)


def _storage(path: str) -> tuple[_Writes, str]:
    scheme = scheme_of(path)
    if scheme in S3:
        from cdxmill.storage.s3 import objects as s3

        return s3, path
    if scheme == _HDFS:
        from cdxmill.storage.hadoop import hadoop_fs, hdfs

        return hadoop_fs if hadoop_fs.is_needed() else hdfs, path
    return local, local_path(path)


def scheme_of(path: str) -> str:
    """The scheme of a URL in lower case, "" for a path."""
    match = _URL.match(path)
    return match[1].lower() if match else ""
