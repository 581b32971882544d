"""Add clusters to a cluster: `cdxmill add --cdx` with a mapper for each shard that gets lines. There is no reducer.

    python addclusterjob.py -r hadoop --zipnum-dir CLUSTER NEW...

Add a whole crawl so: build its cluster with the other jobs, and add that. The shards have the bytes of `cdxmill add --cdx`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cdxmill.commands.collections.add import add
from cdxmill.commands.collections.summary import advice
from cdxmill.jobs.archive_job import directory_url
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import MRStep, RunnerLike
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.nodes.sent_call import do_calls, item_of, parse_results
from cdxmill.options.collections import AGAIN, KEEP_OLD, Adding
from cdxmill.options.option import Options, option
from cdxmill.running.failures import Failures


class AddJobOptions(Options):
    """The options of the job: those of `add`, with another name for the cluster."""

    zipnum_dir: str = option("--zipnum-dir", "Directory or URL of the cluster that gets the lines.")
    again: bool = AGAIN
    keep_old: int = KEEP_OLD


class AddClusterJob(StreamJob[AddJobOptions]):
    """Input: clusters. Nothing is printed but failures and what was done."""

    kind = AddJobOptions
    arguments = "--zipnum-dir CLUSTER NEW..."
    description = "Add the lines of other clusters to a cluster. Only shards that get lines are written."
    _work: WorkList

    def steps(self) -> list[MRStep]:
        """One step with mappers only."""
        return [MRStep(mapper=self.run_mapper)]

    def run_all(self) -> int:
        """Add the clusters. The job runs twice: it checks the new shards, then it writes those that change."""
        self.check()
        options, failures = self.own_options, Failures()
        cluster, *new = map(self._place, (options.zipnum_dir, *self.options.args))
        asked = Adding(cluster, new, cdx=True, again=options.again, keep_old=options.keep_old)
        asked.quiet = self.options.quiet
        summary = add(asked, failures, engine=self._run_tasks)
        if text := advice(summary, cluster):
            failures.note(text)
        self.tell(f"{cluster}: {summary}")
        return failures.status

    def _place(self, directory: str) -> str:
        if not self.is_on_hadoop:
            return directory
        return directory_url(directory, self.first_runner()).rstrip("/")

    def _run_tasks(
        self, work: Callable[[Any], Any], tasks: Sequence[Any], processes: int, tick: Callable[[], None], /
    ) -> Iterator[tuple[int, Any]]:
        """Run tasks on the engine: see `running.processes.RunTasks`."""
        self._work = [item_of(number, work, task) for number, task in enumerate(tasks)]
        if not self._work:
            return
        with self.ran() as runner:
            for found in parse_results(b"".join(runner.cat_output())):
                yield found
                tick()

    def list_work(self) -> WorkList:
        """The calls that are due."""
        return self._work

    def hadoop_step(self, runner: RunnerLike, directory: Path) -> HadoopStep:
        """Each mapper does one call."""
        return HadoopStep(
            inputs=self._work,
            mapper=["call"],
            reducer=None,
            settings={"mapreduce.job.reduces": "0"},
            defaults={},
        )

    def run_mapper(self, step_num: int = 0) -> None:
        """Do one call after the other."""
        do_calls(self.mapper_run())


if __name__ == "__main__":  # mrjob starts each task with this file
    AddClusterJob.run()
