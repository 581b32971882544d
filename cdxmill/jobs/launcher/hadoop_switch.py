"""Where a job builds a cluster that replaces another, and the switch at its end. cluster/switch has the steps.

Under Hadoop's own file systems and keys, which cdxmill.storage does not have, nothing can be switched. There, the old
cluster is deleted before the job.
"""

from __future__ import annotations

from pathlib import Path

from cdxmill.cluster.output import check_replaceable, held, mend, put_in_place
from cdxmill.cluster.switch import entries, mark, new_place
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum_index import MANIFEST
from cdxmill.messages import say
from cdxmill.storage.location import locate


def building_place(url: str, replace: bool) -> str:
    """The URL at which a job builds the cluster of `url`: beside a finished one that it replaces, else `url` itself.

    Completes a switch that was interrupted. Raises UsageError, StoppedError.
    """
    if not _can_switch(url):
        return url
    place = _place_of(url)
    mend(place, say)
    if not replace or MANIFEST not in entries(place):
        return url
    check_replaceable(place)
    new = new_place(place)
    return new if locate(new).is_remote else Path(new).as_uri()


def mark_place(place: str, url: str) -> None:
    """Mark the place where the job builds as cdxmill's, if it is not `url` itself."""
    if place != url:
        mark(_place_of(url))


def finish_switch(place: str, url: str) -> None:
    """Put the cluster that was built at `place` to `url`. Raises StoppedError."""
    if place == url:
        return
    cluster = _place_of(url)
    with held(cluster, say):
        try:  # again: the job has taken hours
            check_replaceable(cluster)
        except UsageError as error:
            raise StoppedError(f"{error}; the new cluster is complete, in {place}") from None
        put_in_place(cluster, say)


def _can_switch(url: str) -> bool:
    try:
        locate(url).check_writable()
        locate(url).entries()
    except (UsageError, InputError):
        return False
    return True


def _place_of(url: str) -> str:
    """The URL, or the path of a directory that all machines share; only if it is a link, where that leads."""
    place = locate(url).absolute()
    return place if locate(place).is_remote or not Path(place).is_symlink() else str(Path(place).resolve())
