"""Exchange two directories in one step, so that nobody sees a moment without one of them."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from cdxmill.storage.local.files import stopping

_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def exchange(one: str, other: str) -> bool:
    """Exchange two directories. False if the system (macOS) or the file system (NFS) cannot. Raises StoppedError."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if not call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    with stopping(Path(other)):
        raise OSError(number, os.strerror(number), other)
