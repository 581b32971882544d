"""Directories on a disk, as a walk sees them: an entry costs no system call, unless it is a link."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Hashable, Iterator
from stat import S_ISDIR, S_ISREG

from cdxmill.errors import InputError
from cdxmill.storage.listing import DIRECTORY, FILE, SPECIAL, Item

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
        """What is at a path. None if nothing exists there."""
        if not os.path.lexists(path) and os.access(os.path.dirname(path) or ".", os.X_OK):  # noqa: PTH120
            return None
        return Item("", self._kind_of(path), os.path.islink(path))  # noqa: PTH114

    def identity(self, directory: str) -> Hashable:
        """What tells whether a directory was searched already, by another path. None if unknown."""
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
