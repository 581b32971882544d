"""A path or URL, resolved once: which storage has it, what that can do, and its verbs.

    path, file://            local
    http://, https://        http       by urllib3, read only
    s3://, s3a://            s3         by boto3, the extra `s3`
    hdfs://                  hdfs       by WebHDFS over urllib3, or
                             hadoop_fs  by the hadoop command, where WebHDFS cannot be used

A path that leads into a WACZ, such as x.wacz/archive/data.warc.gz, is read there by `wacz`. This is the only module that
knows schemes. A storage is imported when it is first used, so local files need no network library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import unquote_to_bytes

from cdxmill.errors import InputError, UsageError
from cdxmill.regex import regex
from cdxmill.storage import local, wacz
from cdxmill.storage.interface import Entry, Properties, Reads, Writes
from cdxmill.storage.reach import Reach

if TYPE_CHECKING:
    from cdxmill.formats.archives.zip_directory import Member

_URL = regex(r"([a-z][a-z0-9+.-]*)://", re.I)
_OWN_S3 = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""Set if S3 is the user's own service."""
SMALL = 256 << 20
"""Bytes of the largest file that is held in memory: a list of archives, cluster.json, cluster.loc, the part of a shard."""
_FILE_PIECE = 4 << 20
_AT_A_TIME = 16
"""Small requests that are sent at a time. They mostly wait for the network."""

Answer = TypeVar("Answer")
Asked = TypeVar("Asked")


_LOCAL, _HTTP = Properties(is_remote=False, can_write=True), ("http", "https")
_S3, _HDFS = ("s3", "s3a"), "hdfs"
_PROPERTIES = {
    **dict.fromkeys(("", "file"), _LOCAL),
    **dict.fromkeys(_HTTP, Properties(has_times=False, has_look=True, opens_freely=True)),
    **dict.fromkeys(_S3, Properties(can_write=True, has_look=True, has_directories=False)),
    _HDFS: Properties(can_write=True),
}


@dataclass(frozen=True)
class Location:
    """A path or URL with its storage. Made by `locate`; `str()` gives the path or URL as it was written.

    Nothing is asked or checked before a verb is used. Verbs raise UsageError if a library or a setting for such URLs is
    missing, and those that write also if the storage cannot be written.
    """

    text: str
    scheme: str = field(init=False, repr=False, compare=False)
    """The scheme of a URL in lower case, "" for a path."""
    properties: Properties = field(init=False, repr=False, compare=False)
    """What its storage can do."""

    def __post_init__(self) -> None:
        """Find out the storage. A cached property would take ten times as long, in Python 3.11."""
        match = _URL.match(self.text) if "://" in self.text else None
        scheme = match[1].lower() if match else ""
        object.__setattr__(self, "scheme", scheme)
        object.__setattr__(self, "properties", _PROPERTIES.get(scheme) or Properties())

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Location], tuple[str]]:
        return Location, (self.text,)

    @property
    def is_remote(self) -> bool:
        """Whether it is a URL other than file://, so that its file is on another machine."""
        return self.properties.is_remote

    @property
    def is_listed(self) -> bool:
        """Whether it is a remote URL whose directories can be listed: s3, hdfs."""
        return self.properties.is_remote and self.properties.can_write

    @property
    def local(self) -> str:
        """The path of a path or file URL (RFC 8089). Raises InputError for other URLs."""
        if not self.scheme:
            return self.text
        if self.is_remote:
            hint = "use a path, or a file, http, https, s3 or hdfs URL"
            raise InputError(self.text, f"{self.scheme}:// is not supported", hint)
        host, slash, rest = self.text.partition("://")[2].partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            raise InputError(self.text, "is not a local file", "use file:///PATH")
        return os.fsdecode(b"/" + unquote_to_bytes(os.fsencode(rest)))

    @property
    def directory(self) -> Path | None:
        """The local path, None if it is remote. Raises InputError for a file URL of another machine."""
        return None if self.is_remote else Path(self.local)

    def open_ranges(self) -> AbstractContextManager[Callable[[int, int], bytes]]:
        """Open the file: `read_at(offset, size)` returns fewer bytes only at the end of the file.

        Raises AbsentError, RefusedError or another InputError, here, from `read_at` or at the end: if it cannot be read,
        the server does not answer after all tries, or a remote file changes meanwhile.
        """
        storage, name = self.reads
        return storage.open_ranges(name)

    def read_bytes(self) -> bytes:
        """The content of a small file. Raises as `open_ranges` does, and InputError if it is larger than SMALL."""
        data = bytearray()
        with self.open_ranges() as read_at:
            for piece in pieces(read_at):
                data += piece
                if len(data) > SMALL:
                    reason = f"has more than {SMALL >> 20} MiB, where a small file is expected"
                    raise InputError(self.text, reason)
        return bytes(data)

    def size(self) -> int:
        """The size of the file in bytes; 0 if it is unknown. A URL costs one request."""
        with suppress(InputError):
            return 0 if (found := self.status()) is None else found.size
        return 0

    def status(self) -> Entry | None:
        """The size and time of the file or directory. None if it does not exist. A URL costs one request.

        Raises InputError if the storage gives no answer.
        """
        storage, name = self.reads
        return storage.status(name)

    def exists(self) -> bool:
        """Whether the file or directory exists. Raises as `status` does."""
        return self.status() is not None

    def wacz_files(self) -> dict[str, Member]:
        """The files of the WACZ at this place, by name. Raises as `open_ranges` does."""
        return wacz.files_in(*self._storage)

    @property
    def stored_in(self) -> Location:
        """The file that has the bytes: the WACZ, if this leads into one."""
        place = wacz.place_of(self.text if self.is_remote else self.local)
        return self if place is None else Location(place.wacz)

    def check_writable(self) -> None:
        """Raise UsageError if cdxmill cannot write to such URLs, or below a file. The access rights are not checked."""
        if not self.properties.can_write:
            hint = "use a local path, or an s3 or hdfs URL"
            raise UsageError(f"{self.text}: {self.scheme}:// cannot be written or listed; {hint}")
        self.require()
        if self.is_remote:
            return
        try:
            local.check_above(self.local)
        except InputError as error:  # a file URL of another machine
            raise UsageError(str(error)) from None

    def check_absent(self, *, replace: bool = False) -> None:
        """Raise UsageError if it is a directory, or a file with content that may not be replaced. Raises as `status` does."""
        found = self.status()
        if found is not None and found.is_directory:
            raise UsageError(f"{self.text}: is a directory; choose another output file")
        if found is not None and found.size and not replace:
            hint = "use --replace to replace it, or choose another output file"
            raise UsageError(f"{self.text}: already exists; {hint}")

    def write_atomic(
        self, *, sync_name: bool = True, stamp: Callable[[], str] | None = None
    ) -> AbstractContextManager[IO[bytes]]:
        """Write a file that gets its name only when it is complete. Its directory is created. Raises StoppedError.

        Without `sync_name`, call `local.sync_directories` later. The `stamp` of a remote file is asked for at its end.
        """
        storage, name = self._writes
        if not self.is_remote:
            return local.write_atomic(name, sync_name=sync_name)
        return storage.write_atomic(name, stamp)

    def write_named(self) -> AbstractContextManager[IO[bytes]]:
        """Write the file that the user named as the output: as `write_atomic` does, but a device or pipe directly."""
        return self.write_atomic() if self.is_remote else local.write_named(self.local)

    def stamped(self) -> tuple[Entry | None, str]:
        """What `status` gives, and the stamp: up to 2000 printable ASCII characters, which appear with the file's content.

        "" if there is none; a local file never has one. Raises as `status`.
        """
        storage, name = self._writes
        return storage.stamped(name) if self.is_remote else (self.status(), "")

    def swap(self, known: bytes | None, data: bytes) -> bool:
        """Write a small remote file if its content is `known`, or if it does not exist (None). False if that is not so.

        One of several runs that do this succeeds (on HDFS, without `known`). If an answer was lost, it may be False. Raises as `write_atomic`.
        """
        writes: tuple[Any, str] = self._writes
        return bool(writes[0].swap(writes[1], known, data))

    def entries(self) -> dict[str, Entry]:
        """The entries of a directory by name. Empty if it does not exist. Raises InputError."""
        storage, name = self._writes
        return storage.list_directory(name)

    def remove(self) -> None:
        """Delete the file, or the empty directory, if it exists. Raises StoppedError."""
        storage, name = self._writes
        storage.remove(name)

    def remove_tree(self) -> None:
        """Delete the file, or the directory with all that is below it, if it exists. Raises StoppedError."""
        storage, name = self._writes
        storage.remove_tree(name)

    def move(self, target: Location) -> None:
        """Give the file or directory another name in the same storage. Raises StoppedError.

        A file at `target` is replaced by a file, an empty directory by a directory. A directory that is not empty is never
        replaced, and nothing is moved into it. The parent of `target` exists. A directory is moved in one step.
        S3 has no directories: it moves single objects only, copies the object itself, and then deletes the old one.
        """
        storage, name = self._writes
        storage.move(name, target._writes[1])

    def exchange(self, other: Location) -> bool:
        """Exchange two directories in one step. False if the storage cannot. Raises StoppedError."""
        return not self.is_remote and local.exchange(self.local, other.local)

    def take_mode(self, other: Location) -> None:
        """Give a directory the access rights of another one, if that exists. Not for S3. Raises StoppedError."""
        writes: tuple[Any, str] = self._writes
        writes[0].copy_mode(other._writes[1], writes[1])

    def __truediv__(self, name: str) -> Location:
        """The file `name` below this directory.

        >>> str(locate("s3://bucket/cluster/") / "cdx/a.cdx.gz"), str(locate("/cluster") / "cluster.idx")
        ('s3://bucket/cluster/cdx/a.cdx.gz', '/cluster/cluster.idx')
        >>> str(locate("hdfs:///") / "a")
        'hdfs:///a'
        """
        directory = self.text.rstrip("/")
        if directory.endswith(":") and self.is_remote:  # the root of the default file system
            directory += "//"
        return Location(f"{directory}/{name}")

    @property
    def name(self) -> str:
        """What follows the last slash."""
        return self.text.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """The directory that has it: "." for a name alone."""
        directory = self.text.rpartition("/")[0]
        return Location(directory or ("/" if self.text.startswith("/") else "."))

    def with_name(self, name: str) -> Location:
        """The file `name` beside this one."""
        directory, slash, _ = self.text.rpartition("/")
        return Location(f"{directory}{slash}{name}")

    def absolute(self) -> str:
        """An absolute path, or the URL unchanged; without a slash at the end.

        >>> locate("s3://bucket/cluster/").absolute(), locate("/data/x/../cluster").absolute()
        ('s3://bucket/cluster', '/data/cluster')
        >>> locate("file:///data/a%20b").absolute()
        '/data/a b'
        """
        return self.text.rstrip("/") if self.is_remote else os.path.abspath(self.local)  # noqa: PTH100 - takes .. out

    def is_same(self, other: Location) -> bool:
        """Whether both are the same file or directory."""
        if not self.is_remote and not other.is_remote:
            return Path(self.local).resolve() == Path(other.local).resolve()
        if self.scheme == other.scheme == _HDFS:
            from cdxmill.storage.hadoop import site

            return site.same_location(self.text, other.text)
        keys = [place.text.partition("://")[2].rstrip("/") for place in (self, other)]
        return {self.scheme, other.scheme} <= set(_S3) and keys[0] == keys[1]

    def content_reach(self) -> Reach:
        """How far the content of the file may lead: content of a public server to public addresses only."""
        if self.scheme in _HTTP:
            from cdxmill.storage.web.http_file import reach_from

            return reach_from(self.text)
        is_public = self.scheme in _S3 and not any(map(os.environ.get, _OWN_S3))
        return Reach.PUBLIC if is_public else Reach.NETWORK

    def require(self) -> None:
        """Raise UsageError if a library that its storage needs is not installed."""
        if self.scheme in _S3:
            from cdxmill.storage import s3_errors

            s3_errors.require()

    @cached_property
    def reads(self) -> tuple[Reads, str]:
        """The storage that reads it, and the name to use with it."""
        storage, name = self._storage
        place = wacz.place_of(name) if wacz.STEP in name.lower() else None
        return (storage, name) if place is None else (wacz.WaczFiles(storage, place), name)

    @property
    def _writes(self) -> tuple[Writes, str]:
        self.check_writable()
        return self._storage

    @property
    def _storage(self) -> tuple[Any, str]:
        """The module that reaches its file; that of http has no functions that write."""
        if self.scheme in _HTTP:
            from cdxmill.storage.web import http

            return http, self.text
        if self.scheme in _S3:
            from cdxmill.storage import s3

            return s3, self.text
        if self.scheme == _HDFS:
            from cdxmill.storage.hadoop.pick import storage_of

            return storage_of(self.text), self.text
        return local, self.local


PathOrUrl = str | Path | Location
"""A path, or a URL. `locate` resolves it."""


def locate(path: PathOrUrl) -> Location:
    """Resolve a path or URL."""
    return path if isinstance(path, Location) else Location(str(path))


def join(place: PathOrUrl, *names: str) -> str:
    """The path or URL of a file below the directory `place`, for those who write it down."""
    return (locate(place) / "/".join(names)).text


def pieces(read_at: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """Yield the content of a file from start to end, some megabytes at a time."""
    offset = 0
    while data := read_at(offset, _FILE_PIECE):
        yield data
        offset += len(data)
        if len(data) < _FILE_PIECE:
            return


def total_size(files: Iterable[Location]) -> int:
    """The size of all files in bytes; 0 if one of them is remote.

    A progress bar is not worth thousands of requests before the first byte is read.
    """
    places = list(files)
    return 0 if any(place.is_remote for place in places) else sum(place.size() for place in places)


def ask_all(
    ask: Callable[[Asked], Answer], asked: Iterable[Asked], is_remote: bool | None = None
) -> list[Answer]:
    """The results of `ask` for each place, in order. Requests run in parallel if one of them is remote.

    With `is_remote`, what is asked may be anything.
    """
    places = list(asked)
    if is_remote is None:
        is_remote = any(locate(cast("PathOrUrl", place)).is_remote for place in places)
    if not is_remote or not places:
        return [ask(place) for place in places]
    first = ask(places[0])  # alone, so that a client is made once
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    asking = ThreadPoolExecutor(_AT_A_TIME)
    try:
        answers = [first, *asking.map(ask, places[1:])]
    except BaseException:  # after Ctrl-C, too: nobody needs the other answers
        asking.shutdown(wait=False, cancel_futures=True)
        raise
    asking.shutdown()
    return answers
