"""A directory that gets its name only when it is complete, and replaces one that an earlier export wrote.

It is written beside its place, under a temporary name. The list of its files is apart from them, as `scan` keeps its records:
in the directory `_cdxmill`, which programs that read a directory of Parquet files skip.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cdxmill.commands.exporting.listed_files import Staged, check_replaceable, files_listed
from cdxmill.commands.exporting.staging_at_url import staged_at_url
from cdxmill.errors import UsageError
from cdxmill.storage.local import new_directory, stopping, sync_directory, temporary_name
from cdxmill.storage.location import Location, locate


@contextmanager
def staged_directory(output: str, replace: bool, note: Callable[[str], None]) -> Iterator[Staged]:
    """A new directory, which gets its name, a path or URL, at the end of the `with`.

    Raises UsageError if there is something that may not be replaced, StoppedError if it cannot be written.
    """
    place = locate(output)
    place.check_writable()
    if place.is_remote:
        with staged_at_url(place, replace, note) as run:
            yield Staged(run)
        return
    path = Path(place.absolute())
    check_free(path, replace)
    with new_directory(path.parent):
        yield from _staged(path, replace)


def _staged(path: Path, replace: bool) -> Iterator[Staged]:
    with stopping(path):
        _remove_left(path)
        own = path.with_name(temporary_name(path.name))
        own.mkdir()
        handle = os.open(own, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Staged(Location(str(own)))
        check_free(path, replace)
        _switch(own, path)
    finally:
        os.close(handle)
        if own.exists():
            Location(str(own)).remove_tree()


def check_free(path: Path, replace: bool) -> None:
    """Raise UsageError unless a directory can be written there: nothing exists, or an export that may be replaced."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        raise UsageError(f"{path}: is not a directory; choose another output directory")
    if any(path.iterdir()):
        check_replaceable(str(path), _files_in(path), files_listed(locate(path)), replace)


def _files_in(path: Path) -> list[str]:
    """All below a directory that is not a directory: files, links, also to directories, and pipes."""
    return [
        str(found.relative_to(path)) for found in path.rglob("*") if found.is_symlink() or not found.is_dir()
    ]


def _switch(own: Path, path: Path) -> None:
    """Give the directory its name. What it replaces is deleted after that."""
    new, old = Location(str(own)), Location(str(path))
    if path.exists() and any(path.iterdir()):
        if not new.exchange(old):
            beside = Location(str(path.with_name(temporary_name(path.name))))
            old.move(beside)
            new.move(old)
            beside.remove_tree()
    else:
        new.move(old)
    with stopping(path):
        sync_directory(path.parent)


def _remove_left(path: Path) -> None:
    """Delete what killed runs have left: such a directory that no run holds."""
    left = re.compile(rf"\.{re.escape(path.name)}\.\d+-[0-9a-f]{{8}}\.tmp")
    for found in [found for found in path.parent.iterdir() if left.fullmatch(found.name)]:
        if found.is_symlink() or not found.is_dir():
            continue
        handle = os.open(found, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Location(str(found)).remove_tree()
        except OSError:  # another run writes it, or there are no locks
            continue
        finally:
            os.close(handle)
