#!/usr/bin/env python3
"""Archives -> one CDX file each: the mappers index, there is no reducer.

    python indexwarcsjob.py -r local --cdx_bucket OUT MANIFEST...

A manifest has an archive's path a line, in the last tab-separated field; - is standard input.
The same bytes as those of `cdxmill index --manifest`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrjob.step import MRStep

from cdxmill.commands.index import FAILURES, IndexOptions, IndexTask, forget_failed, index_one, output_names
from cdxmill.commands.inputs import Input, find_archives
from cdxmill.errors import UsageError
from cdxmill.jobs.bulk_job import BulkJob
from cdxmill.jobs.launch import count_failure
from cdxmill.storage.choose import is_newer
from cdxmill.storage.local import stopping


class IndexWARCJob(BulkJob):  # type: ignore[misc]
    """Input: manifests. Output: `<path> TAB <reason>` for what could not be indexed."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        add = self.add_passthru_arg
        add("--warc_bucket", default="", help="Folder where relative paths of the manifest start.")
        add("--cdx_bucket", help="Folder for the CDX files. Required.")
        add(
            "--skip-existing", action="store_true", default=True, help="Keep finished CDX files: the default."
        )
        add("--no-skip-existing", dest="skip_existing", action="store_false", help="Make all of them again.")
        add("--s3_local_temp_dir", help="Folder for scratch files.")

    def steps(self) -> list[MRStep]:
        """Mappers alone."""
        return [MRStep(mapper=self.run_mapper)]

    def list_work(self) -> Iterator[list[Any]]:
        """Archives, each with where its CDX file goes."""
        if not self.options.cdx_bucket:
            raise UsageError("say where the CDX files go: --cdx_bucket FOLDER")
        folder, root, keep = (
            Path(self.options.cdx_bucket),
            self.options.warc_bucket,
            self.options.skip_existing,
        )
        archives = [entry for name in self.options.args for entry in find_archives([], name, root, None)]
        names = output_names(archives)
        with stopping(folder):
            folder.mkdir(parents=True, exist_ok=True)
        forget_failed(folder / FAILURES, names, folder, keep)
        for archive, name in names.items():
            if not (keep and is_newer(folder / name, archive.path)):
                yield [archive, str(folder / name)]

    def run_mapper(self, step_num: int = 0) -> None:
        """Index archive after archive."""
        with self.scratch(self.options.s3_local_temp_dir) as scratch:
            record = Path(self.options.cdx_bucket) / FAILURES
            for number, (archive, output) in enumerate(self.work() or ()):
                place = scratch.folder / str(number)
                self._index(IndexTask(Input(*archive), Path(output), record, place, IndexOptions()))

    def _index(self, task: IndexTask) -> None:
        result = index_one(task)
        failures: list[tuple[int | None, str, str]] = [
            (damage.offset, damage.reason, damage.hint) for damage in result.findings.damage
        ]
        if result.error is not None:
            failures.append((None, result.error.reason, result.error.hint))
        path = task.archive.path
        for offset, reason, hint in failures:
            count_failure(self, path if offset is None else f"{path}@{offset}", reason, hint)
            where = "" if offset is None else f"at {offset}: "
            self.stdout.write(os.fsencode(f"{path}\t{where}{reason}\n"))


if __name__ == "__main__":
    IndexWARCJob.run()
