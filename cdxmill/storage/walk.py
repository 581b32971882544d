"""List the files below a directory, or that match a glob, on a disk or at an s3 or hdfs URL.

Symbolic links to directories are followed. What they lead to comes last, and a directory that was searched before is not
searched again. So links in a circle end, and a file has its name without links if it has one.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from stat import S_ISDIR, S_ISREG
from typing import Any, NamedTuple

from cdxmill.errors import InputError
from cdxmill.regex import regex
from cdxmill.storage.location import join, locate

_UNFINISHED = regex(r"_temporary|\.work|\.scratch-[a-z0-9_]{8}")
"""Directories of unfinished work: Hadoop's, and cdxmill's."""
_FILE, _DIRECTORY = "", "directory"
SPECIAL = "socket, pipe or device"
_SEARCHED = "link to a directory that was searched already"
"""What an entry of a directory is."""
_ANY_DEPTH = "**"
_MAGIC = regex(r"[*?\[]")
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_ROOT = 3
"""Slashes in the URL of the root of a file system."""
_TWICE = (_ANY_DEPTH, _ANY_DEPTH)


def is_glob(path: str) -> bool:
    """Whether a path, a URL or a step of one has one of the characters `*?[`."""
    return _MAGIC.search(path) is not None


@dataclass
class Listing:
    """The paths or URLs of the files that were found; `links` are symbolic links to files.

    `others` are no files, each with what it is. `errors` report what could not be listed.
    """

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


class _Item(NamedTuple):
    """An entry of a directory. Of a symbolic link, `kind` is what it leads to; None if that cannot be read."""

    name: str
    kind: str | None
    is_link: bool = False


class _LocalDirectories:
    """The directories of this machine. Their paths are "" or end in a slash. `errors` reports what cannot be read."""

    hides_dots = True

    def __init__(self) -> None:
        self.errors: list[InputError] = []
        self._reported: set[str] = set()

    def items(self, directory: str, is_wanted: Callable[[str], bool]) -> Iterator[_Item]:
        """The entries of a directory whose names are wanted, in the order of their names."""
        path = directory[:-1] or directory or "."
        try:
            with os.scandir(path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._report(path, error, "the directory cannot be listed")
            return
        for entry in entries:
            if is_wanted(entry.name):
                yield _Item(entry.name, self._kind(directory, entry), entry.is_symlink())

    def item(self, path: str) -> _Item | None:
        """What is at a path; None if nothing is."""
        if not os.path.lexists(path) and os.access(os.path.dirname(path) or ".", os.X_OK):  # noqa: PTH120
            return None
        return _Item("", self._kind_of(path), os.path.islink(path))  # noqa: PTH114

    def identity(self, directory: str) -> Hashable:
        """What tells whether a directory was searched already, by another path; None if unknown."""
        try:
            found = os.stat(directory or ".")  # noqa: PTH116 - no object per file
        except OSError:
            return None  # `items` reports it
        return found.st_dev, found.st_ino

    def _kind(self, directory: str, entry: os.DirEntry[str]) -> str | None:
        """The same as `_kind_of`, mostly without a system call."""
        try:
            if entry.is_file(follow_symlinks=False):
                return _FILE
            if entry.is_dir(follow_symlinks=False):
                return _DIRECTORY
        except OSError:
            pass
        return self._kind_of(directory + entry.name)

    def _kind_of(self, path: str) -> str | None:
        """What is at a path. None if that is unknown, and reported."""
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116
        except OSError as error:
            self._report(path, error, "cannot be read")
            return None
        return _FILE if S_ISREG(mode) else _DIRECTORY if S_ISDIR(mode) else SPECIAL

    def _report(self, path: str, error: OSError, reason: str) -> None:
        if path in self._reported:
            return
        self._reported.add(path)
        what, hint = os.strerror(error.errno or 0), "check the path"
        if error.errno in _ABSENT and os.path.islink(path):  # noqa: PTH114
            reason, what, hint = "is a broken symbolic link", "", "check what it points to"
        elif error.errno in (errno.EACCES, errno.EPERM):
            hint = "check the access rights"
        self.errors.append(InputError(path, f"{reason} ({what})" if what else reason, hint))


def files_below(directory: str) -> Listing:
    """All files below `directory` and its subdirectories. Raises InputError if a URL cannot be listed.

    A subdirectory that cannot be listed is in the errors.
    """
    if not locate(directory).properties.has_directories:
        return Listing(list(_objects_below(directory)))
    return _Walk(_directories(directory), is_glob=False).run(join(directory, ""), [_ANY_DEPTH])


def files_like(pattern: str) -> Listing:
    """The files that match `pattern`. Raises InputError if a URL cannot be listed.

    `*` does not match a slash, `**` matches any number of directories.
    """
    if not locate(pattern).properties.has_directories:
        return Listing(list(_objects_like(pattern)))
    steps, fixed = pattern.split("/"), 0
    if locate(pattern).scheme:
        fixed = next(number for number, step in enumerate([*steps[:-1], "*"]) if is_glob(step))
    elif pattern.startswith("/"):
        fixed = 1
    top = "/".join([*steps[:fixed], ""]) if fixed else ""
    rest = [step for step in steps[fixed:] if step]
    steps = [step for step, after in zip(rest, [*rest[1:], ""], strict=True) if (step, after) != _TWICE]
    return _Walk(_directories(pattern), is_glob=True).run(top, steps)


def _directories(path: str) -> _LocalDirectories | _RemoteDirectories:
    return _RemoteDirectories() if locate(path).scheme else _LocalDirectories()


class _RemoteDirectories:
    """The directories of a storage that has no links."""

    hides_dots = False

    def __init__(self) -> None:
        self.errors: list[InputError] = []
        self._has_listed = False

    def items(self, directory: str, is_wanted: Callable[[str], bool]) -> Iterator[_Item]:
        """The entries of a directory whose names are wanted. Raises InputError if the first one cannot be listed."""
        try:
            found = locate(directory[:-1] if directory.count("/") > _ROOT else directory).entries()
        except InputError as error:
            if not self._has_listed:
                raise
            self.errors.append(error)
            return
        self._has_listed = True
        for name, entry in sorted(found.items()):
            if is_wanted(name):
                yield _Item(name, _DIRECTORY if entry.is_directory else _FILE)

    def item(self, path: str) -> _Item | None:
        """What is at a path. None if nothing exists there. Raises InputError."""
        entry = locate(path).status()
        return None if entry is None else _Item("", _DIRECTORY if entry.is_directory else _FILE)

    def identity(self, directory: str) -> Hashable:
        """What tells whether a directory was searched already: it has one path only."""
        return directory


class _Walk:
    """One search for the steps of a glob, or with `**` for all files."""

    def __init__(self, directories: _LocalDirectories | _RemoteDirectories, is_glob: bool) -> None:
        self._directories, self._is_glob = directories, is_glob
        self._found = Listing(errors=directories.errors)
        self._searched: set[tuple[Hashable, int]] = set()
        self._linked: deque[tuple[str, list[str]]] = deque()

    def run(self, directory: str, steps: list[str]) -> Listing:
        self._match(directory, steps)
        while self._linked:
            self._match_below(*self._linked.popleft(), is_linked=True)
        return self._found

    def _match(self, directory: str, steps: list[str]) -> None:
        step, rest = steps[0], steps[1:]
        if step == _ANY_DEPTH:
            self._match_below(directory, rest or ["*"])
        elif is_glob(step):
            for item in self._directories.items(directory, lambda name: self._fits(name, step)):
                self._take(directory + item.name, item, rest)
        elif (found := self._directories.item(directory + step)) is not None:
            self._take(directory + step, found, rest)

    def _take(self, path: str, item: _Item, rest: list[str]) -> None:
        if rest:
            if item.kind == _DIRECTORY:
                self._match(f"{path}/", rest)
        elif item.kind == _FILE:
            (self._found.links if item.is_link else self._found.files).append(path)
        elif item.kind is not None and (self._is_glob or item.kind != _DIRECTORY):
            self._found.others.append((path, item.kind))

    def _match_below(self, top: str, steps: list[str], is_linked: bool = False) -> None:
        directories = [top]
        while directories:
            directory = directories.pop()
            if not self._is_new(directory, steps) and (is_linked or self._is_glob):
                if not self._is_glob:
                    self._found.others.append((directory[:-1], _SEARCHED))
                continue
            for item in self._directories.items(directory, lambda name: self._fits(name, "*", steps[0])):
                path = directory + item.name
                if self._fits(item.name, steps[0]):
                    self._take(path, item, steps[1:])
                if item.kind != _DIRECTORY or not self._fits(item.name, "*"):
                    continue
                if item.is_link:
                    self._linked.append((f"{path}/", steps))
                else:
                    directories.append(f"{path}/")

    def _is_new(self, directory: str, steps: list[str]) -> bool:
        """Whether a directory was not searched before, for as many steps of a pattern, under any of its names."""
        identity = self._directories.identity(directory)
        if identity is None:
            return True
        key = identity, len(steps)
        is_new = key not in self._searched
        self._searched.add(key)
        return is_new

    def _fits(self, name: str, *steps: str) -> bool:
        """Whether a name matches one of the steps. Without a glob, all do."""
        if not self._is_glob:
            return True
        is_hidden = self._directories.hides_dots and name.startswith(".")
        return any(fnmatchcase(name, step) and (not is_hidden or step.startswith(".")) for step in steps)


def _objects_below(url: str) -> Iterator[str]:
    """The URLs of the objects below a directory of S3, which has keys in place of directories.

    A key may have empty steps (`crawl//a.warc.gz`), and an object may have the name of a directory.
    """
    from cdxmill.storage import s3

    for page in s3.list_pages(url, s3.prefix_of(url)):
        yield from (_object_url(url, key) for key in _keys(page))


def _objects_like(url: str) -> Iterator[str]:
    """The URLs of the objects of S3 that match a glob, with as few requests as possible."""
    steps = url.partition("://")[2].split("/")[1:]
    yield from (_object_url(url, key) for key in _matching_keys(url, "", steps))


def _matching_keys(url: str, prefix: str, steps: list[str]) -> Iterator[str]:
    """The keys that start with `prefix` and continue with a match of `steps`."""
    from cdxmill.storage import s3

    step, rest = steps[0], steps[1:]
    if step == _ANY_DEPTH:
        keys = (key for page in s3.list_pages(url, prefix) for key in _keys(page))
        yield from (key for key in keys if _fits(key[len(prefix) :].split("/"), steps))
        return
    fixed = _MAGIC.split(step, maxsplit=1)[0]
    if rest and fixed == step:
        yield from _matching_keys(url, f"{prefix}{step}/", rest)
        return
    for page in s3.list_pages(url, prefix + fixed, "/"):
        if rest:
            for directory in [found["Prefix"] for found in page.get("CommonPrefixes", ())]:
                if fnmatchcase(directory[len(prefix) : -1], step):
                    yield from _matching_keys(url, directory, rest)
        else:
            yield from (key for key in _keys(page) if fnmatchcase(key[len(prefix) :], step))


def _keys(page: dict[str, Any]) -> Iterator[str]:
    """The keys of a page, without the empty objects that some tools create for directories."""
    for item in page.get("Contents", ()):
        if item["Size"] or not item["Key"].endswith("/"):
            yield item["Key"]


def _object_url(url: str, key: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{key}"


def _fits(names: Sequence[str], steps: Sequence[str]) -> bool:
    if not steps or not names:
        return not steps and not names
    if steps[0] == _ANY_DEPTH:
        rest = steps[1:] or ["*"]
        return any(_fits(names[number:], rest) for number in range(len(names)))
    return fnmatchcase(names[0], steps[0]) and _fits(names[1:], steps[1:])


def unfinished_in(path: str) -> str:
    """The directory of unfinished work that a file is in, "" if it is in none.

    >>> unfinished_in("out/.work/unit-000000.warc"), unfinished_in("out/a.warc.gz")
    ('.work', '')
    """
    return next(filter(_UNFINISHED.fullmatch, path.split("/")[:-1]), "")
