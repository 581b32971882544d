"""List the files below a directory, or that match a glob, on a disk or at an s3 or hdfs URL.

Symbolic links to directories are followed. What they lead to comes last, and a directory that was searched before is not
searched again. So links in a circle end, and a file has its name without links if it has one.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from fnmatch import fnmatchcase
from stat import S_ISDIR, S_ISREG

from cdxmill.errors import InputError
from cdxmill.storage.interface import ANY_DEPTH, DIRECTORY, FILE, SEARCHED, SPECIAL, Item, Listing, is_glob
from cdxmill.storage.location import join, locate

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


class LocalDirectories:
    """The directories of this machine. Their paths are "" or end in a slash. `errors` reports what cannot be read."""

    hides_dots = True

    def __init__(self) -> None:
        self.errors: list[InputError] = []
        self._reported: set[str] = set()

    def items(self, directory: str, is_wanted: Callable[[str], bool]) -> Iterator[Item]:
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
                yield Item(entry.name, self._kind(directory, entry), entry.is_symlink())

    def item(self, path: str) -> Item | None:
        """What is at a path; None if nothing is."""
        if not os.path.lexists(path) and os.access(os.path.dirname(path) or ".", os.X_OK):  # noqa: PTH120
            return None
        return Item("", self._kind_of(path), os.path.islink(path))  # noqa: PTH114

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
                return FILE
            if entry.is_dir(follow_symlinks=False):
                return DIRECTORY
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
        return FILE if S_ISREG(mode) else DIRECTORY if S_ISDIR(mode) else SPECIAL

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


_ROOT = 3
"""Slashes in the URL of the root of a file system."""
_TWICE = (ANY_DEPTH, ANY_DEPTH)


def files_below(directory: str) -> Listing:
    """All files below `directory` and its subdirectories. Raises InputError if a URL cannot be listed.

    A subdirectory that cannot be listed is in the errors.
    """
    if not locate(directory).properties.has_directories:
        from cdxmill.storage.s3.walk import keys_below

        return Listing(list(keys_below(directory)))
    return _Walk(_directories(directory), is_glob=False).run(join(directory, ""), [ANY_DEPTH])


def files_like(pattern: str) -> Listing:
    """The files that match `pattern`. Raises InputError if a URL cannot be listed.

    `*` does not match a slash, `**` matches any number of directories.
    """
    if not locate(pattern).properties.has_directories:
        from cdxmill.storage.s3.walk import keys_like

        return Listing(list(keys_like(pattern)))
    steps, fixed = pattern.split("/"), 0
    if locate(pattern).scheme:
        fixed = next(number for number, step in enumerate([*steps[:-1], "*"]) if is_glob(step))
    elif pattern.startswith("/"):
        fixed = 1
    top = "/".join([*steps[:fixed], ""]) if fixed else ""
    rest = [step for step in steps[fixed:] if step]
    steps = [step for step, after in zip(rest, [*rest[1:], ""], strict=True) if (step, after) != _TWICE]
    return _Walk(_directories(pattern), is_glob=True).run(top, steps)


def _directories(path: str) -> LocalDirectories | RemoteDirectories:
    return RemoteDirectories() if locate(path).scheme else LocalDirectories()


class RemoteDirectories:
    """The directories of a storage that has no links."""

    hides_dots = False

    def __init__(self) -> None:
        self.errors: list[InputError] = []
        self._has_listed = False

    def items(self, directory: str, is_wanted: Callable[[str], bool]) -> Iterator[Item]:
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
                yield Item(name, DIRECTORY if entry.is_directory else FILE)

    def item(self, path: str) -> Item | None:
        """What is at a path. None if nothing exists there. Raises InputError."""
        entry = locate(path).status()
        return None if entry is None else Item("", DIRECTORY if entry.is_directory else FILE)

    def identity(self, directory: str) -> Hashable:
        """What tells whether a directory was searched already: it has one path only."""
        return directory


class _Walk:
    """One search for the steps of a glob, or with `**` for all files."""

    def __init__(self, directories: LocalDirectories | RemoteDirectories, is_glob: bool) -> None:
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
        if step == ANY_DEPTH:
            self._match_below(directory, rest or ["*"])
        elif is_glob(step):
            for item in self._directories.items(directory, lambda name: self._fits(name, step)):
                self._take(directory + item.name, item, rest)
        elif (found := self._directories.item(directory + step)) is not None:
            self._take(directory + step, found, rest)

    def _take(self, path: str, item: Item, rest: list[str]) -> None:
        if rest:
            if item.kind == DIRECTORY:
                self._match(f"{path}/", rest)
        elif item.kind == FILE:
            (self._found.links if item.is_link else self._found.files).append(path)
        elif item.kind is not None and (self._is_glob or item.kind != DIRECTORY):
            self._found.others.append((path, item.kind))

    def _match_below(self, top: str, steps: list[str], is_linked: bool = False) -> None:
        directories = [top]
        while directories:
            directory = directories.pop()
            if not self._is_new(directory, steps) and (is_linked or self._is_glob):
                if not self._is_glob:
                    self._found.others.append((directory[:-1], SEARCHED))
                continue
            for item in self._directories.items(directory, lambda name: self._fits(name, "*", steps[0])):
                path = directory + item.name
                if self._fits(item.name, steps[0]):
                    self._take(path, item, steps[1:])
                if item.kind != DIRECTORY or not self._fits(item.name, "*"):
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
