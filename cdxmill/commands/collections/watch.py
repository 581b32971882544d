"""watch: archives that appear in a directory -> their lines in a cluster, while it is served.

A file is finished when its size and time have been the same for some seconds. Each state of a file is tried once, so a
failure is reported once. A file that is written again is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cdxmill.cluster.archive_index import has_archive_index
from cdxmill.cluster.find import local_directory
from cdxmill.commands.collections.add import add
from cdxmill.commands.per_archive.index import index_options
from cdxmill.errors import CdxmillError, HeldError, InputError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, CDX_DIRECTORY, parse_path_index
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.named import Input
from cdxmill.messages import say
from cdxmill.options.collections import Adding
from cdxmill.outputs.existing import Rule, up_to_date
from cdxmill.outputs.names import identity, unique_names
from cdxmill.outputs.record import OutputRecord, state_of
from cdxmill.running.failures import Failure, Failures
from cdxmill.search.lookup import open_searched
from cdxmill.stages.lines.cdx_text import fields_of
from cdxmill.storage.location import Location, locate

_LEAST_PAUSE = 0.2
"""Seconds between two looks at a directory, at least."""
_SHARE = 10
"""At most a tenth of the time is for looks: a directory with many files is looked at less often."""
_RETRY = 60.0
"""Seconds until the next try if the machine was at fault, or the cluster corrupt."""
_FORMATS = {0: "cdxj", 9: "cdx9", 11: "cdx11"}
"""The format of new lines, by the number of fields of the lines of the cluster."""


class _Seen(NamedTuple):
    """A state of a file, as `state_of` gives it, and the moment when it was first seen."""

    state: str
    since: float


class WatchedDirectory:
    """Adds the archives of a directory to a cluster as they are finished: each `look` adds those that are.

    Raises UsageError if the directory is none of this machine.
    """

    def __init__(self, cluster: str, directory: str, settle: float, processes: int) -> None:
        if locate(directory).is_remote or not Path(locate(directory).local).is_dir():
            raise UsageError(
                f"{directory}: is no directory of this machine; run cdxmill add from time to time"
            )
        self.pause = max(settle / 2, _LEAST_PAUSE)
        self._settle, self._directory = settle, directory
        self._place = locate(local_directory(cluster))
        self._asked = Adding(cluster, [directory], processes=processes)
        self._asked.line_format = _format_of(self._place)
        self._seen: dict[Location, _Seen] = {}
        self._tried: dict[Location, str] = {}
        self._said: set[str] = set()
        self._is_first, self._next_try = True, 0.0

    def look(self) -> None:
        """Add the archives that are finished. What cannot be added is reported once, and nothing is raised for it."""
        start = time.monotonic()
        archives, unopened = self._found()
        if self._is_first and archives:
            self._skip_known(archives)
            self._is_first = False
        for failure in unopened:
            if self._is_due(Location(failure.path)):
                self._try([Location(failure.path)])
                say(str(failure))
        due = [archive for archive in archives if self._is_due(archive.location.stored_in)]
        if due and start >= self._next_try:
            self._add(due)
        self.pause = max(self.pause, _SHARE * (time.monotonic() - start) if not due else 0)

    def _found(self) -> tuple[list[Input], list[Failure]]:
        """The archives in the directory, and the WACZ files that cannot be opened."""
        unopened = Failures(printed=False)
        try:
            archives = find_archives(self._asked, Failures(printed=False), unopened=unopened)
        except UsageError:  # there is none yet
            archives = []
        except InputError as error:
            self._say(str(error))
            archives = []
        states = {place: _state_of(place) for place in {one.location.stored_in for one in archives}}
        states |= {(place := Location(one.path)): _state_of(place) for one in unopened.items}
        now = time.monotonic()
        before, self._seen = self._seen, {}
        for place, state in states.items():
            if state:
                known = before.get(place)
                self._seen[place] = known if known and known.state == state else _Seen(state, now)
        return archives, unopened.items

    def _is_due(self, place: Location) -> bool:
        """Whether a file is finished, and was not tried as it is."""
        seen = self._seen.get(place)
        return (
            seen is not None
            and time.monotonic() - seen.since >= self._settle
            and self._tried.get(place) != seen.state
        )

    def _skip_known(self, archives: Sequence[Input]) -> None:
        """Do not try archives that the cluster has as they are, or had: lines that were removed do not come back."""
        directory = Path((self._place / CDX_DIRECTORY).local)
        names = unique_names(archives)
        rows = {row.output: row for row in OutputRecord(directory).last_rows()}
        settings = index_options(self._asked, Rule.RENEW).settings()
        current = set(up_to_date(names, directory, settings)) if rows else set()
        has_list = has_archive_index(self._place)
        listed = dict(parse_path_index((self._place / ARCHIVES).read_bytes())) if has_list else {}

        def is_known(archive: Input, name: str) -> bool:
            if name not in rows or rows[name].state != _state_of(archive.location):
                return False
            is_listed = identity(archive.location) in listed.get(archive.filename, ())
            return (is_listed and archive in current) or not (directory / name).exists()

        new = {one.location.stored_in for one, name in names.items() if not is_known(one, name)}
        self._try({one.location.stored_in for one in archives} - new)

    def _try(self, places: Iterable[Location]) -> None:
        self._tried |= {place: self._seen[place].state for place in places if place in self._seen}

    def _add(self, archives: Sequence[Input]) -> None:
        """Add archives in one change. Where that is refused, each is tried alone."""
        try:
            summary = add(self._asked, Failures(write=self._say), archives)
        except (HeldError, StoppedError, InputError) as error:
            self._say(f"{error}; trying again")
            if not isinstance(error, HeldError):
                self._next_try = time.monotonic() + _RETRY
            return
        except UsageError as error:
            if len(archives) == 1:
                self._say(str(error))
                self._try([archives[0].location.stored_in])
            for archive in archives if len(archives) > 1 else ():
                self._add([archive])
            return
        self._said.clear()
        self._try(archive.location.stored_in for archive in archives)
        if summary.is_changed:
            say(f"{self._asked.cluster}: {summary}")

    def _say(self, text: str) -> None:
        """Print a line, if it was not printed since the last addition."""
        if text not in self._said:
            self._said.add(text)
            say(text)


def _state_of(place: Location) -> str:
    """The state of a file; "" if it is gone."""
    with suppress(CdxmillError):
        return state_of(place.status())
    return ""


def _format_of(place: Location) -> str:
    """The format of the lines of a cluster. Raises UsageError if `index` does not write it."""
    with open_searched(place) as cluster:
        block = next(cluster.reader.index.blocks(b""), None)
        if block is None:
            return "cdxj"
        line = cluster.blocks.text_of(block, b"").between(b"", block.key + b"!")[0][0]
    fields = fields_of(line)
    if fields not in _FORMATS:
        raise UsageError(f"{place}: index does not write lines of its format, so no archives can be added")
    return _FORMATS[fields]
