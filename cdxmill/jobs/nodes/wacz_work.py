"""What a task does with a WACZ on the work list: it opens it, so the launcher need not open all of them.

One that cannot be opened costs its archives only. The outputs are those that the launcher would have planned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from cdxmill.commands.per_archive.index import IndexOptions, IndexTask
from cdxmill.commands.per_archive.task import OutputDirectory
from cdxmill.errors import UsageError
from cdxmill.inputs.archives import contents_of, names_in
from cdxmill.inputs.named import Input, skipped_among
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.names import cdx_names
from cdxmill.running.failures import Failure
from cdxmill.storage.location import Location

COUNTER = "archives in wacz files"
"""The counter of the archives in WACZ files that a job has read; a WACZ that cannot be opened is one."""


class OpenedWacz(NamedTuple):
    """The archives in a WACZ, why it or a part of it cannot be read, and what should be noted, with offset None."""

    archives: list[Input]
    failures: list[Failure]
    notes: list[Failure]

    def counters(self, read: int) -> dict[str, int]:
        """What is added to the counters of a job of which `read` of these archives are read. The failures are of no archive."""
        failed = len(self.failures)
        return {COUNTER.replace(" ", "_"): read + bool(failed), "failures": failed}


def open_wacz(wacz: Input) -> OpenedWacz:
    """Open a WACZ."""
    found = contents_of(wacz, names_in(wacz.location))
    errors = [*found.errors, *([found.unopened] if found.unopened else [])]
    skipped = skipped_among(found.skipped)
    notes = [Failure(wacz.path, None, skipped)] if skipped else []
    return OpenedWacz(found.archives, [Failure.from_error(error) for error in errors], notes)


class WaczWork(NamedTuple):
    """A WACZ on the index job's work list, the path or URL of the directory of all CDX files, and how they are named.

    `directory` is the local directory in which outputs are recorded, if there is one. `rule` is the name of a Rule.
    """

    wacz: Input
    place: str
    directory: str | None
    rule: str
    cc_index_paths: bool

    def item(self) -> dict[str, Any]:
        """The item as JSON can hold it."""
        return {**self._asdict(), "wacz": self.wacz.to_fields()}

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> WaczWork:
        """What `item` has returned."""
        return cls(**{**item, "wacz": Input.of_fields(item["wacz"])})

    def tasks(self, opened: OpenedWacz, scratch: Path) -> list[IndexTask]:
        """The archives to index; what is found is added to `opened`. Raises StoppedError."""

        def note(text: str) -> None:
            path, _, reason = text.partition(": note: ")
            opened.notes.append(Failure(path, None, reason))

        settings = IndexOptions().settings()
        record = None if self.directory is None else Path(self.directory)
        directory = OutputDirectory(Location(self.place), record, scratch, note)
        try:
            names = cdx_names(opened.archives, self.cc_index_paths)
            outputs = directory.plan(names, settings, Rule[self.rule]).to_write
        except UsageError as error:
            opened.failures.append(Failure(self.wacz.path, None, str(error)))
            return []
        return [IndexTask(*fields) for fields in directory.each(outputs, settings)]
