"""What runs that were killed have left on Hadoop: applications of YARN that still run, and temporary files of mrjob in HDFS.

Each application has a tag with the id of the launcher's run, which its locks have as well (running/lock.py). So YARN says
whether a run that nobody waits for still writes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.jobs.launcher.hadoop_directory import is_reached
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike, settings_of, temporary_directory
from cdxmill.messages import count, say
from cdxmill.regex import regex
from cdxmill.running.lock import hold, killed_run, run_id
from cdxmill.storage.location import locate

_TAGS = "mapreduce.job.tags"
_APPLICATION = regex(r"^(application_\d+_\d+)\b", re.M)
_UNFINISHED = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_TIMEOUT = 120.0


def tag_of(run: str) -> str:
    """The tag of the application of a run."""
    return f"cdxmill-{run}"


def tag_application(runner: RunnerLike) -> None:
    """Give the job's application the tag of this run, besides the user's own tags."""
    settings = settings_of(runner)
    settings[_TAGS] = ",".join(filter(None, (settings.get(_TAGS), tag_of(run_id()))))


def yarn_command(runner: RunnerLike) -> str:
    """The command `yarn` that belongs to the runner's `hadoop`."""
    hadoop = Path(shutil.which(runner.get_hadoop_bin()[0]) or runner.get_hadoop_bin()[0])
    beside = hadoop.with_name("yarn")
    return str(beside) if beside.exists() else "yarn"


def applications_of(runs: Sequence[str], runner: RunnerLike) -> list[str] | None:
    """The applications of these runs that have not ended; None if YARN cannot be asked."""
    if runner.alias != "hadoop":
        return None
    tags = ",".join(map(tag_of, runs))
    command = [yarn_command(runner), "application", "-list", "-appStates", _UNFINISHED, "-appTags", tags]
    try:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else _APPLICATION.findall(done.stdout.decode(errors="replace"))


def check_ended(runs: Sequence[str], url: str, runner: RunnerLike) -> None:
    """Raise UsageError if an application of these runs, which were killed, still runs for the output `url`."""
    found = applications_of(runs, runner)
    if found is None:
        say(
            f"{url}: note: YARN cannot be asked whether a job of an earlier run still runs for this directory"
        )
    elif found:
        raise UsageError(
            f"{url}: {found[0]} of an earlier run, whose launcher was killed, still runs for this directory;"
            f" wait until it ends, or end it with `yarn application -kill {found[0]}`"
        )


def own_temporary_directory(runner: RunnerLike, holding: ExitStack) -> None:
    """Hold mrjob's temporary directory of this run in HDFS, and delete those of runs that were killed.

    Directories without a lock are not deleted: they may be of other jobs of mrjob.
    """
    place = temporary_directory(runner)
    if not place.startswith("hdfs:") or not is_reached(place):
        return
    try:
        _remove_left(place.rpartition("/")[0], runner)
    except (InputError, StoppedError) as error:
        say(f"note: temporary files of earlier runs are not deleted: {error}")
    holding.enter_context(hold(place))


def _remove_left(parent: str, runner: RunnerLike) -> None:
    places = [locate(parent) / name for name, entry in locate(parent).entries().items() if entry.is_directory]
    killed = [(place, run) for place in places if (run := killed_run(place)) is not None]
    if not killed or applications_of([run for _, run in killed], runner) != []:
        return  # what still runs may need its files
    for place, _ in killed:
        place.remove_tree()
    say(f"{parent}: deleted the temporary files of {count(len(killed), 'run')} that {_were(killed)} killed")


def _were(found: Sequence[object]) -> str:
    return "was" if len(found) == 1 else "were"
