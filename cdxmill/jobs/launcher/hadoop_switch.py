"""Replace a finished cluster in HDFS: the job builds the new one beside it, then both are renamed.

    C         the cluster
    .C.new    the new one while it is built, and what a job that failed has left of it
    .C.old    the old one between the two renames, and until it is deleted

A file that is open stays readable until the old cluster is deleted. If the launcher ends between the renames there is no C;
the next job repairs that. A URL of S3 or a directory that nodes share cannot be switched so: there the old cluster is deleted first.
"""

from __future__ import annotations

from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.clusters.zipnum_index import MANIFEST
from cdxmill.jobs.launcher.hadoop_folder import folder_of
from cdxmill.jobs.launcher.mrjob_types import RunnerLike
from cdxmill.jobs.launcher.zipnum_on_hadoop import check_own
from cdxmill.messages import say


def building_place(url: str, runner: RunnerLike, replace: bool) -> str:
    """The URL at which a job builds the cluster of `url`: beside a finished one that it replaces, else `url` itself.

    Repairs a switch that was interrupted. Raises UsageError, StoppedError.
    """
    if not url.startswith("hdfs:"):
        return url
    names = _repaired(url, runner)
    if not replace or MANIFEST not in names:
        return url
    check_own(url, names, replace=True)
    return _beside(url, "new")


def switch(place: str, url: str, runner: RunnerLike) -> None:
    """Put the cluster that was built at `place` to `url`, and delete the one that was there. Raises UsageError, StoppedError."""
    if place == url:
        return
    cluster, old = folder_of(url, runner), _beside(url, "old")
    try:  # again: the job has taken hours
        check_own(url, cluster.names(), replace=True)
        check_own(old, folder_of(old, runner).names(), replace=True)
    except UsageError as error:
        raise StoppedError(f"{error}; the new cluster is complete, in {place}") from None
    _delete(old, runner)
    cluster.move(old)  # where nothing is: a directory would be moved into one that exists
    try:
        folder_of(place, runner).move(url)
    except StoppedError:
        folder_of(old, runner).move(url)
        raise
    _delete(old, runner)


def _repaired(url: str, runner: RunnerLike) -> list[str]:
    """The names in the cluster's directory, after the steps that an interrupted switch has left."""
    names, old = folder_of(url, runner).names(), _beside(url, "old")
    left = folder_of(old, runner).names()
    if MANIFEST not in left:
        return names
    check_own(old, left, replace=True)
    if MANIFEST in names:
        _delete(old, runner)
    elif not names:
        _delete(url, runner)
        folder_of(old, runner).move(url)
        say(f"{url}: restored, because a launcher ended while it was replaced")
        names = left
    else:
        raise UsageError(
            f"{url}: holds other files, and {old} is the cluster that was there; move one of them away"
        )
    return names


def _delete(url: str, runner: RunnerLike) -> None:
    parent, _, name = url.rpartition("/")
    folder_of(parent, runner).remove([name])


def _beside(url: str, kind: str) -> str:
    parent, _, name = url.rpartition("/")
    return f"{parent}/.{name}.{kind}"
