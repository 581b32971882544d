"""Archives -> one CDX file each: the mappers index, there is no reducer.

    python indexwarcsjob.py -r local --cdx_bucket OUT MANIFEST...

A manifest has an archive's path a line, in the last tab-separated field; - is standard input.
The same bytes as those of `cdxmill index --manifest`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrjob.step import MRStep

from cdxmill.commands.index import FAILURES, IndexOptions, IndexTask, forget_failed, index_one, is_finished
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.named import Input
from cdxmill.jobs import index_launcher as launcher
from cdxmill.jobs.bulk_job import BulkJob
from cdxmill.jobs.index_task import format_failure
from cdxmill.jobs.launch import count_failure
from cdxmill.jobs.on_hadoop import HadoopStep
from cdxmill.storage.choose import ask_all, check_writable, is_newer, is_remote, join
from cdxmill.storage.local import make_folder


class IndexWARCJob(BulkJob):
    """Input: manifests. Output: `<path> TAB <reason>` for what could not be indexed."""

    def configure_args(self) -> None:
        """Add the options."""
        super().configure_args()
        launcher.add_options(self.add_passthru_arg)

    def steps(self) -> list[MRStep]:
        """Mappers alone."""
        return [MRStep(mapper=self.run_mapper)]

    def list_work(self) -> Iterator[dict[str, Any]]:
        """Archives, each with where its CDX file goes."""
        folder, keep = launcher.cdx_folder(self.options), self.options.skip_existing
        names = launcher.names_of(self.options, self._archives())
        if is_remote(folder):
            yield from self._list_remote(folder, names)
            return
        make_folder(Path(folder))
        forget_failed(Path(folder) / FAILURES, names, Path(folder), keep)
        for archive, name in names.items():
            output = join(folder, name)
            if not (keep and is_newer(output, archive.path)):
                yield {"archive": archive._asdict(), "output": output}

    def _list_remote(self, folder: str, names: dict[Input, str]) -> Iterator[dict[str, Any]]:
        check_writable(folder)
        outputs = {join(folder, name): archive for archive, name in names.items()}
        done = [False] * len(outputs)
        if self.options.skip_existing:
            done = ask_all(lambda output: is_finished(output, outputs[output].path), outputs)
        for output, is_done in zip(outputs, done, strict=True):
            if not is_done:
                yield {"archive": outputs[output]._asdict(), "output": output}

    def _archives(self) -> list[Input]:
        root = self.options.warc_bucket
        return [entry for name in self.options.args for entry in find_archives([], name, root, None)]

    def hadoop_step(self, runner: Any, folder: Path) -> HadoopStep:
        """Each mapper gets some lines of the list of work."""
        self.options.cdx_bucket = launcher.as_url(launcher.cdx_folder(self.options), runner)
        if self.options.warc_bucket and runner.alias == "emr":  # else it may be a path that all nodes have
            self.options.warc_bucket = launcher.as_url(self.options.warc_bucket, runner)
        work = list(self.list_work())
        self._total = len(work)
        listed = folder / "archives.jsonl"
        listed.write_text("".join(json.dumps(item) + "\n" for item in work))
        return launcher.make_step(self.options, listed)

    def finish_hadoop(self, runner: Any) -> int:
        """Tell what failed; 0 where that is no more than --max-failures allows."""
        output = b"".join(runner.cat_output())
        self.show(output)
        return self._judge({line.split(b"\t")[0] for line in output.splitlines()})

    def _judge(self, failed: set[bytes]) -> int:
        done = f"{self._total - len(failed)} of {self._total} archives indexed"
        if not self.options.quiet:
            print(f"{done}, {len(failed)} with failures", file=sys.stderr)
        return 0 if len(failed) <= launcher.allowed(self.options.max_failures, self._total) else len(failed)

    def run_mapper(self, step_num: int = 0) -> None:
        """Index archive after archive."""
        with self.scratch(self.options.s3_local_temp_dir) as scratch:
            folder = launcher.cdx_folder(self.options)
            record = None if is_remote(folder) else Path(folder) / FAILURES
            for number, item in enumerate(self.work()):
                place = scratch.folder / str(number)
                archive, output = Input(**item["archive"]), item["output"]
                self._index(IndexTask(archive, output, record, place, IndexOptions()))

    def _index(self, task: IndexTask) -> None:
        path = task.archive.path
        for failure in index_one(task).failures(path):
            where = path if failure.offset is None else f"{path}@{failure.offset}"
            count_failure(self, where, failure.reason, failure.hint)
            self.stdout.write(format_failure(failure))


if __name__ == "__main__":  # mrjob starts each task by this file
    IndexWARCJob.run()
