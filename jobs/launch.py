"""Running a job from the command line: failures, and exit statuses as those of `cdxmill`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from mrjob.step import StepFailedException

from cdxmill.errors import CdxmillError, InputError, UsageError

if TYPE_CHECKING:
    from cdxmill.jobs.bulk_job import BulkJob

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 3

_GROUP = "failures"
_SAFE = "".join(character for character in map(chr, range(32, 127)) if character not in "%,")
"""What a counter's name may hold besides: mrjob takes no comma and no line end."""


def count_failure(job: BulkJob, path: str, reason: str, hint: str = "") -> None:
    """Tell the launcher of an input that is no good; a counter is all that a task can send it."""
    text = f"{path}: {reason}" + (f"; {hint}" if hint else "")
    job.increment_counter(_GROUP, quote(text, _SAFE, errors="surrogateescape"))


def launch(job: BulkJob) -> int:
    """Run the job, show its output and its failures; the exit status."""
    try:
        with job.make_runner() as runner:
            runner.run()
            failed = _tell_failures(runner.counters()[0])
            output = b"".join(runner.cat_output())
            job.finish(output)
            if job._should_cat_output():
                job.stdout.write(output)
                job.stdout.flush()
    except UsageError as error:
        return _fail(error, USAGE)
    except InputError as error:
        return _fail(error, FAILED)
    except (CdxmillError, StepFailedException) as error:
        return _fail(error, STOPPED)
    return FAILED if failed else OK


def _tell_failures(counters: dict[str, dict[str, int]]) -> int:
    failures = sorted(counters.get(_GROUP, {}))
    for failure in failures:
        print(unquote(failure, errors="surrogateescape"), file=sys.stderr)
    return len(failures)


def _fail(error: Exception, status: int) -> int:
    print(str(error).replace("\n", " "), file=sys.stderr)
    return status
