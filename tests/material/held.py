"""A directory that another run holds: here, another thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdxmill.errors import UsageError
from cdxmill.running.lock import hold
from cdxmill.storage.location import PathOrUrl


def check_refused(held: PathOrUrl, call: Callable[..., object], *args: object) -> None:
    """The call is wrong usage while the directory is held."""
    with (
        hold(held),
        ThreadPoolExecutor(1) as other,
        pytest.raises(UsageError, match="another run writes to this directory"),
    ):
        other.submit(call, *args).result()
