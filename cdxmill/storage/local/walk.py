"""List the files below a local folder, or that match a local glob.

Symbolic links to folders are followed. What they lead to comes last, and a folder that was searched before is not
searched again. So links in a circle end, and a file has its name without links if it has one.
"""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from stat import S_ISDIR, S_ISREG

from cdxmill.errors import InputError
from cdxmill.storage.listing import Listing

FOLDER, SEARCHED, SPECIAL = (
    "directory",
    "link to a directory that was searched already",
    "socket, pipe or device",
)
"""What an entry is, if it is no file."""

_ANY_DEPTH = "**"
_MAGIC = re.compile(r"[*?\[]")
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def list_below(folder: str) -> Listing:
    """All files below a local folder."""
    return _Walk().below(folder)


def list_like(pattern: str) -> Listing:
    """The files that match a local glob. `*` does not match a slash; `**` matches any number of folders.

    As in a shell, neither matches a name that starts with a dot.
    """
    start = "/" if pattern.startswith("/") else ""
    return _Walk().like(start, [step for step in pattern.split("/") if step])


class _Walk:
    """One search. The folder of a pattern is "" or ends in a slash."""

    def __init__(self) -> None:
        self._found = Listing()
        self._searched: set[tuple[int, int, int]] = set()
        self._reported: set[str] = set()
        self._linked: deque[tuple[str, list[str]]] = deque()

    def below(self, folder: str) -> Listing:
        self._search(folder, is_linked=False)
        while self._linked:
            self._search(self._linked.popleft()[0], is_linked=True)
        return self._found

    def like(self, folder: str, steps: list[str]) -> Listing:
        self._match(folder, steps)
        while self._linked:
            self._match_below(*self._linked.popleft())
        return self._found

    def _search(self, top: str, is_linked: bool) -> None:
        folders = [top]
        while folders:
            folder = folders.pop()
            if not self._is_new(folder) and is_linked:
                self._found.others.append((folder, SEARCHED))
                continue
            for item in self._entries(folder):
                kind = self._kind_of_entry(item)
                if kind != FOLDER:
                    self._add(item.path, kind)
                elif item.is_symlink():
                    self._linked.append((item.path, []))
                else:
                    folders.append(item.path)

    def _match(self, folder: str, steps: list[str]) -> None:
        step, rest = steps[0], steps[1:]
        if step == _ANY_DEPTH:
            self._match_below(folder, rest or ["*"])
        elif _MAGIC.search(step):
            for item in self._entries(folder or "."):
                if _matches(item.name, step):
                    self._match_one(folder + item.name, rest)
        elif os.path.lexists(folder + step) or not os.access(folder or ".", os.X_OK):
            self._match_one(folder + step, rest)

    def _match_one(self, path: str, rest: list[str]) -> None:
        kind = self._kind_of(path)
        if not rest:
            self._add(path, kind)
        elif kind == FOLDER:
            self._match(f"{path}/", rest)

    def _match_below(self, folder: str, rest: list[str]) -> None:
        folders = [folder]
        while folders:
            folder = folders.pop()
            if not self._is_new(folder or ".", len(rest)):
                continue
            self._match(folder, rest)
            for item in self._entries(folder or "."):
                if _matches(item.name, "*") and self._kind_of_entry(item) == FOLDER:
                    path = f"{folder}{item.name}/"
                    if item.is_symlink():
                        self._linked.append((path, rest))
                    else:
                        folders.append(path)

    def _is_new(self, folder: str, steps: int = 0) -> bool:
        """Whether a folder was not searched before, for as many steps of a pattern, under any of its names."""
        try:
            status = os.stat(folder)  # noqa: PTH116 - no object per file
        except OSError:
            return True  # `_entries` reports it
        key = status.st_dev, status.st_ino, steps
        is_new = key not in self._searched
        self._searched.add(key)
        return is_new

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                items = sorted(found, key=lambda item: item.name)
        except OSError as error:
            self._report(folder, error, "the directory cannot be listed")
            return
        yield from items

    def _kind_of_entry(self, item: os.DirEntry[str]) -> str | None:
        """The same as `_kind_of`, mostly without a system call."""
        try:
            if item.is_file(follow_symlinks=False):
                return ""
            if item.is_dir(follow_symlinks=False):
                return FOLDER
        except OSError:
            pass
        return self._kind_of(item.path)

    def _kind_of(self, path: str) -> str | None:
        """What is at a path: "" for a file. None if that is unknown, and reported."""
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116
        except OSError as error:
            self._report(path, error, "cannot be read")
            return None
        return "" if S_ISREG(mode) else FOLDER if S_ISDIR(mode) else SPECIAL

    def _add(self, path: str, kind: str | None) -> None:
        if kind == "":
            (self._found.links if os.path.islink(path) else self._found.files).append(path)  # noqa: PTH114
        elif kind is not None:
            self._found.others.append((path, kind))

    def _report(self, path: str, error: OSError, reason: str) -> None:
        if path in self._reported:
            return
        self._reported.add(path)
        what, hint = os.strerror(error.errno or 0), "check the path"
        if error.errno in _ABSENT and os.path.islink(path):  # noqa: PTH114
            reason, what, hint = "is a broken symbolic link", "", "check what it points to"
        elif error.errno in (errno.EACCES, errno.EPERM):
            hint = "check the access rights"
        self._found.errors.append(InputError(path, f"{reason} ({what})" if what else reason, hint))


def _matches(name: str, step: str) -> bool:
    return fnmatchcase(name, step) and (step.startswith(".") or not name.startswith("."))
