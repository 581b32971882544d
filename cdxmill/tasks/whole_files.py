"""A sample of the lines of files. A file that turns out to be corrupt is taken back whole.

This module needs nothing but Python, so that it runs on any node of Hadoop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from cdxmill.errors import InputError, OutageError, StoppedError
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.cdx_text import REBUILD
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, add_pieces

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
    """If the file is corrupt or missing, list the failure with its consequence, and have the takers forget its lines.

    If a machine is at fault, raises StoppedError: the task fails, so that the engine may try it on another one.
    """
    for taker in takers:
        taker.begin()
    try:
        yield
    except OutageError as error:
        raise StoppedError(str(error)) from None
    except (InputError, ValueError) as error:
        for taker in takers:
            taker.undo()
        reason, hint = (error.reason, error.hint) if isinstance(error, InputError) else (str(error), "")
        if consequence:
            hint = f"{consequence}: {hint or REBUILD}"
        failures.append(Failure(path, None, reason, hint))


class SampleTask(NamedTuple):
    """A group of CDX files, and how it is sampled."""

    paths: list[str]
    seed: str
    size: int
    ceiling: float = 1.0


class GroupSample(NamedTuple):
    """A sample of a group's lines, and the files that could not be read."""

    sample: Sample
    failures: list[Failure]


def sample_texts(
    texts: Iterable[tuple[str, Iterator[bytes] | Iterator[bytes | bytearray]]], task: SampleTask
) -> GroupSample:
    """A uniform sample, of `task.size` lines, of all lines of the texts: the path of each file, and its pieces."""
    reservoir = Reservoir(task.size, task.seed, task.ceiling)
    failures: list[Failure] = []
    for path, pieces in texts:
        with whole_or_nothing(path, failures, reservoir):
            add_pieces(pieces, reservoir)
    return GroupSample(reservoir.sample(), failures)
