"""Running a job from the command line: failures, and exit statuses as those of `cdxmill`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, unquote

from mrjob.step import StepFailedException

from cdxmill.errors import CdxmillError, InputError, UsageError
from cdxmill.jobs.step_failure import Complaints, explain

if TYPE_CHECKING:
    from cdxmill.jobs.bulk_job import BulkJob

OK, FAILED, USAGE, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130

_COMMAND = re.compile(r"Command '?\[.*\]'?", re.S)
"""What mrjob tells of a command that failed; keys may be among its arguments."""
_GROUP = "failures"
_SAFE = "".join(character for character in map(chr, range(32, 127)) if character not in "%,")
"""What a counter's name may hold besides: mrjob takes no comma and no line end."""


def count_failure(job: BulkJob, path: str, reason: str, hint: str = "") -> None:
    """Tell the launcher of an input that is no good; a counter is all that a task can send it."""
    text = f"{path}: {reason}" + (f"; {hint}" if hint else "")
    job.increment_counter(_GROUP, quote(text, _SAFE, errors="surrogateescape"))


def run(job: BulkJob) -> None:
    """Run the job as a command; exits unless all went well."""
    signal.signal(signal.SIGTERM, _terminate)
    status = launch(job)
    if status:
        sys.exit(status)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Unwind, so that mrjob ends its tasks and removes its files."""
    sys.exit(128 + number)


def launch(job: BulkJob) -> int:
    """Run the job, show its output and its failures; the exit status."""
    runner, complaints = None, Complaints()
    try:
        runner = job.make_runner()
        with runner:
            runner.run()
            failed = job.finish_hadoop(runner) if job.is_on_hadoop else _finish(job, runner)
    except UsageError as error:
        return _fail(error, USAGE)
    except InputError as error:
        return _fail(error, FAILED)
    except CdxmillError as error:
        return _fail(error, STOPPED)
    except (StepFailedException, OSError, subprocess.CalledProcessError) as error:
        return _fail(explain(error, runner, complaints) if job.is_on_hadoop else error, STOPPED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:  # mrjob's and its libraries', of many kinds: none means that inputs failed
        return _fail(f"{type(error).__name__}: {error}", STOPPED)
    return FAILED if failed else OK


def _finish(job: BulkJob, runner: Any) -> int:
    failed = _tell_failures(runner.counters()[0])
    output = b"".join(runner.cat_output())
    job.show(job.finish(output))
    return failed


def _tell_failures(counters: dict[str, dict[str, int]]) -> int:
    failures = sorted(counters.get(_GROUP, {}))
    for failure in failures:
        print(unquote(failure, errors="surrogateescape"), file=sys.stderr)
    return len(failures)


def _fail(reason: object, status: int) -> int:
    print(_COMMAND.sub("the command", str(reason)).replace("\n", " "), file=sys.stderr)
    return status
