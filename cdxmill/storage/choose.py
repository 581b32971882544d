"""The functions of `location` for callers that have a path or URL as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING

from cdxmill.storage import location
from cdxmill.storage.entry import Entry
from cdxmill.storage.location import SMALL, PathOrUrl, ask_all, locate, pieces
from cdxmill.storage.places import Reach

if TYPE_CHECKING:
    from cdxmill.formats.archives.zip_directory import Member

__all__ = ["SMALL", "PathOrUrl", "ask_all", "pieces"]
HTTP = ("http", "https")
S3 = ("s3", "s3a")
"""Schemes of web servers, and of S3."""


def open_ranges(path: PathOrUrl) -> AbstractContextManager[Callable[[int, int], bytes]]:
    """Open a file."""
    return locate(path).open_ranges()


def read_bytes(path: PathOrUrl) -> bytes:
    """The content of a small file."""
    return locate(path).read_bytes()


def files_in_wacz(path: PathOrUrl) -> dict[str, Member]:
    """The files of a WACZ, by name."""
    return locate(path).wacz_files()


def stored_in(path: PathOrUrl) -> str:
    """The path or URL of the file that has the bytes."""
    return locate(path).stored_in.text


def file_size(path: PathOrUrl) -> int:
    """The size of a file in bytes; 0 if it is unknown."""
    return locate(path).size()


def total_size(paths: Iterable[PathOrUrl]) -> int:
    """The size of all files in bytes; 0 if one of them is remote."""
    return location.total_size(map(locate, paths))


def status(path: PathOrUrl) -> Entry | None:
    """The size and time of a file or directory; None if it does not exist."""
    return locate(path).status()


def exists(path: PathOrUrl) -> bool:
    """Whether a file or directory exists."""
    return locate(path).exists()


def check_absent(path: PathOrUrl) -> None:
    """Raise UsageError if `path` is a file with content, or a directory."""
    locate(path).check_absent()


def is_newer(output: PathOrUrl, source: PathOrUrl) -> bool:
    """Whether `output` has content and is not older than `source`."""
    return locate(output).is_newer(locate(source))


def write_atomic(path: PathOrUrl, *, sync_name: bool = True) -> AbstractContextManager[IO[bytes]]:
    """Write a file that gets its name only when it is complete."""
    return locate(path).write_atomic(sync_name=sync_name)


def list_folder(path: PathOrUrl) -> dict[str, Entry]:
    """The entries of a directory by name."""
    return locate(path).entries()


def remove(path: PathOrUrl) -> None:
    """Delete a file, or an empty directory, if it exists."""
    locate(path).remove()


def remove_tree(path: PathOrUrl) -> None:
    """Delete a file, or a directory with all that is below it, if it exists."""
    locate(path).remove_tree()


def move(path: PathOrUrl, target: PathOrUrl) -> None:
    """Give a file another name."""
    locate(path).move(locate(target))


def has_directories(path: PathOrUrl) -> bool:
    """Whether directories are moved in one step."""
    return locate(path).properties.has_directories


def exchange(one: PathOrUrl, other: PathOrUrl) -> bool:
    """Exchange two directories in one step. False if the storage cannot. Raises StoppedError."""
    from cdxmill.storage.local.exchange import exchange  # imports ctypes, which few runs need

    return not locate(one).is_remote and exchange(locate(one).local, locate(other).local)


def join(path: PathOrUrl, *names: str) -> str:
    """The path or URL of a file below the directory `path`."""
    return (locate(path) / "/".join(names)).text


def absolute(path: PathOrUrl) -> str:
    """An absolute path, or the URL unchanged."""
    return locate(path).absolute()


def same_location(one: PathOrUrl, other: PathOrUrl) -> bool:
    """Whether two paths or URLs are the same file or directory."""
    return locate(one).is_same(locate(other))


def is_remote(path: PathOrUrl) -> bool:
    """Whether it is a URL other than file://."""
    return locate(path).is_remote


def content_reach(path: PathOrUrl) -> Reach:
    """How far the content of a path or URL may lead."""
    return locate(path).content_reach()


def is_listed(path: PathOrUrl) -> bool:
    """Whether it is a remote URL whose directories can be listed."""
    return locate(path).is_listed


def check_libraries(paths: Iterable[PathOrUrl]) -> None:
    """Raise UsageError if a library that is needed to read one of `paths` is not installed."""
    for path in paths:
        locate(path).require()


def check_writable(path: PathOrUrl) -> None:
    """Raise UsageError if cdxmill cannot write to such URLs."""
    locate(path).check_writable()


def local_path(path: PathOrUrl) -> str:
    """The path of a path or file URL."""
    return locate(path).local


def scheme_of(path: PathOrUrl) -> str:
    """The scheme of a URL in lower case, "" for a path."""
    return locate(path).scheme
