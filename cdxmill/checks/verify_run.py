"""One run of `verify`: its processes, its progress bar, where findings are reported, and how many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from cdxmill.running.failures import Failure, Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.zipnum.check_index import MOST_FAULTS


def limited(findings: Iterable[Failure]) -> Iterator[Failure]:
    """The first findings of each file, and the number of its other ones.

    >>> [finding.reason for finding in limited([Failure("a", None, "x")] * 22)][19:]
    ['x', '2 more errors']
    """
    seen = Counter[str]()
    for finding in findings:
        seen[finding.path] += 1
        if seen[finding.path] <= MOST_FAULTS:
            yield finding
    for path, number in seen.items():
        if number > MOST_FAULTS:
            yield Failure(path, None, f"{number - MOST_FAULTS} more errors")


class HasFindings(Protocol):
    """The result of a task."""

    @property
    def findings(self) -> Sequence[Failure]:
        """What is wrong, found by the task."""


Task = TypeVar("Task")
Result = TypeVar("Result", bound=HasFindings)


class VerifyRun(NamedTuple):
    """How tasks are run: number of processes, where failures are reported, whether to hide the progress bar."""

    processes: int
    failures: Failures
    quiet: bool

    def report(self, findings: Iterable[Failure]) -> None:
        """Report findings to the user."""
        for finding in findings:
            self.failures.report(finding)

    def results(
        self, title: str, work: Callable[[Task], Result], tasks: Sequence[Task], size: int
    ) -> list[Result]:
        """The result of `work` for each task, in order. Findings are reported as soon as a task ends.

        `title` and `size`, the number of bytes to read, are for the progress bar.
        """
        results: dict[int, Result] = {}
        with Progress(title, len(tasks), size, self.quiet) as progress:
            self.failures.show_on(progress)
            for number, result in run_tasks(work, tasks, self.processes, progress.tick):
                self.report(result.findings)
                results[number] = result
                progress.advance()
        return [results[number] for number in sorted(results)]
