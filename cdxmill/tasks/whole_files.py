"""A file is taken whole or not at all: if it turns out to be corrupt, what was taken of it is undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cdxmill.errors import InputError
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.check_lines import REBUILD

NONE_IN_CLUSTER = "none of its lines are in the cluster"


class Taker(Protocol):
    """Takes the lines of files, and can forget those of the last one."""

    def begin(self) -> None:
        """Mark the start of a file."""

    def undo(self) -> None:
        """Forget all lines since `begin`."""


@contextmanager
def whole_or_nothing(
    path: str, failures: list[Failure], *takers: Taker, consequence: str = ""
) -> Iterator[None]:
    """If reading the file fails, list the failure with its consequence, and have the takers forget the file's lines."""
    for taker in takers:
        taker.begin()
    try:
        yield
    except (InputError, ValueError) as error:
        for taker in takers:
            taker.undo()
        reason, hint = (error.reason, error.hint) if isinstance(error, InputError) else (str(error), "")
        if consequence:
            hint = f"{consequence}: {hint or REBUILD}"
        failures.append(Failure(path, None, reason, hint))
