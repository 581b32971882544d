"""Make the shards of a cluster under a local runner of mrjob: the engine of zipnumclusterjob.py there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cdxmill.commands.clusters.zipnum import Made, ZipnumOptions
from cdxmill.inputs.cdx_files import Inventory
from cdxmill.jobs.launcher.reports import read_reports
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.running.failures import Failures
from cdxmill.storage.local.files import stopping
from cdxmill.storage.location import PathOrUrl, locate
from cdxmill.tasks.sampling import group_sources

_RUN = ".run-"


class ShardsUnderMrjob:
    """Makes shards with the tasks of a job, as `commands.zipnum.Make` says."""

    def __init__(self, job: StreamJob) -> None:
        self._job = job

    def __call__(
        self, inventory: Inventory, directory: PathOrUrl, options: ZipnumOptions, failures: Failures
    ) -> Made:
        """Run the job. Its tasks write to a directory of their own: reducers of a killed run may still be alive."""
        place = Path(locate(directory).local).absolute() / f"{_RUN}{os.getpid()}"
        with stopping(place):
            for left in place.parent.glob(f"{_RUN}*"):
                shutil.rmtree(left)
            place.mkdir()
        work = [{"paths": [source.path for source in group]} for group in group_sources(inventory.sources)]
        # mrjob's own output must not go to the cluster: it has files named part-* as well
        to = ("--zipnum-dir", place.as_uri())
        with self._job.local_runner(work, *to, output_dir=None, sort_values=True) as runner:
            runner.run()
        reports = read_reports(place, options, str(directory))
        with stopping(place):
            for path in place.glob("[cp]*"):
                path.replace(place.parent / path.name)
            shutil.rmtree(place)
        failed = [failure for report in reports for failure in report.failures]
        for failure in failed:
            failures.report(failure)
        shards = [report.shard for report in reports]
        taken = sum(report.shard.lines + report.duplicate_lines for report in reports)
        return Made(shards, list(options.points or ()), taken, failed)
