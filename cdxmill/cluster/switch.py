"""Put a new cluster in the place of an old one. Readers, and a run that is killed, always leave and see a whole one.

    C         the cluster
    .C.new    the new one while it is built. Its file .replaces marks it
    .C.old    the old one after the switch, until its files are deleted

1  exchange C and .C.new. On Linux this is one step. Elsewhere there are two: C to .C.old, .C.new to C
2  rename .C.new to .C.old
3  move the files of .C.old that cdxmill did not write to C
4  delete the other files of .C.old
5  delete C/.replaces

A run that is killed leaves C/.replaces, or no C. `repair` does the steps that are left.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

from cdxmill.cluster.finished import FINISHED, WORK, cluster_files, folders_of, read_finished
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import MANIFEST
from cdxmill.running.lock import LOCK
from cdxmill.storage.local.files import stopping, sync_folder

MARK = ".replaces"
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def new_folder(folder: Path) -> Path:
    """The folder in which the new cluster is built."""
    return folder.with_name(f".{folder.name}.new")


def old_folder(folder: Path) -> Path:
    """The folder of the old cluster after the switch."""
    return folder.with_name(f".{folder.name}.old")


def check_switchable(folder: Path) -> None:
    """Raise UsageError if another folder cannot take the place of `folder`."""
    reason = None
    here = Path.cwd()
    if os.path.ismount(folder):
        reason = "is a mount point, so it cannot be replaced; mount the directory above it, or"
    elif folder == here or folder in here.parents:
        reason = "is the current directory, so it cannot be replaced; run it in another directory, or"
    elif not os.access(folder.parent, os.W_OK | os.X_OK):
        reason = f"cannot be replaced, because {folder.parent} is not writable; change its access rights, or"
    elif old_folder(folder).exists():
        reason = f"was replaced before, and {old_folder(folder)} has files that are left; move them away, or"
    elif _is_foreign(new_folder(folder)):
        reason = f"cannot be replaced, because {new_folder(folder)} is not of cdxmill; move it away, or"
    if reason is not None:
        raise UsageError(f"{folder}: {reason} choose another directory")


def _is_foreign(new: Path) -> bool:
    return new.is_file() or (new.is_dir() and any(new.iterdir()) and not (new / MARK).exists())


def mark(folder: Path) -> Path:
    """Create the folder of the new cluster if it is missing. Raises StoppedError."""
    new = new_folder(folder)
    with stopping(new):
        new.mkdir(exist_ok=True)
        (new / MARK).touch()
    return new


def switch(folder: Path) -> list[str]:
    """Put the new cluster in the place of the old one.

    Returns the paths of files that cdxmill did not write and that cannot be moved into the new one; they stay in the
    folder of the old one.
    """
    with stopping(folder):
        sync_folder(new_folder(folder))
        _exchange(folder)
    return repair(folder)


def needs_repair(folder: Path) -> bool:
    """Whether a run was killed while it switched."""
    return (folder / MARK).exists() or (not folder.exists() and old_folder(folder).exists())


def repair(folder: Path) -> list[str]:
    """Do what is left of a switch; see `switch`."""
    new, old = new_folder(folder), old_folder(folder)
    with stopping(folder):
        if not folder.exists() and old.exists():  # killed between the two renames
            (new if (new / MARK).exists() and (new / MANIFEST).exists() else old).rename(folder)
        sync_folder(folder.parent)
        if not (folder / MARK).exists():
            return []
        if new.exists():
            new.rename(old)
        left = _merge(old, folder) if old.exists() else []
        (folder / MARK).unlink()
        return left


def _exchange(folder: Path) -> None:
    if not _exchanged(new_folder(folder), folder):
        folder.rename(old_folder(folder))
        new_folder(folder).rename(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step. False if the system or the file system cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if not call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _merge(old: Path, folder: Path) -> list[str]:
    """Move what cdxmill did not write from `old` to `folder`, and delete the rest of `old`."""
    try:
        own = cluster_files(old)
    except InputError as error:
        if os.path.lexists(old / MANIFEST):
            raise StoppedError(f"{error}; the files of the old cluster stay in {old}") from None
        own = {FINISHED}  # its other files are deleted already
    finished = read_finished(old)
    own |= {*(finished.files if finished is not None else ()), WORK, LOCK}
    own |= {ARCHIVES} if (folder / ARCHIVES).exists() else set()  # replaced by that of the new cluster
    left = _move_foreign(old, folder, "", own, folders_of(own))
    sync_folder(folder)
    for name in sorted(own - {MANIFEST, FINISHED}):
        _delete(old / name)
    for below in sorted(folders_of(own), reverse=True):
        with suppress(OSError):
            (old / below).rmdir()
    for name in (FINISHED, MANIFEST):  # last: they say which files are cdxmill's
        _delete(old / name)
    with suppress(OSError):
        old.rmdir()
    return left


def _move_foreign(old: Path, folder: Path, below: str, own: set[str], folders: set[str]) -> list[str]:
    left: list[str] = []
    for path in sorted((old / below).iterdir()):
        name = str(Path(below) / path.name)
        target = folder / name
        if name in own:
            continue
        if not os.path.lexists(target):
            path.rename(target)
        elif name in folders and path.is_dir() and not path.is_symlink():
            left += _move_foreign(old, folder, name, own, folders)
        else:
            left.append(str(path))
    return left


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
