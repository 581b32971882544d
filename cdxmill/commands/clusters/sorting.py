"""CDX files -> sorted runs on scratch space, in processes of this machine: the first step of `zipnum`, `build` and `add`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.inputs.cdx_files import Inventory
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress
from cdxmill.running.resume import WorkDirectory
from cdxmill.stages.lines.sample_lines import Sample, merge_samples
from cdxmill.stages.lines.sort_lines import Run
from cdxmill.tasks.sampling import group_sources, guess_ceiling
from cdxmill.tasks.sorting import SortResult, SortTask, share_of_runs, sort_group


def sort_files(
    inventory: Inventory, work: WorkDirectory, options: ZipnumOptions, failures: Failures
) -> SortResult:
    """The runs of all files, and a sample of all lines; failures are reported."""
    tasks = _sort_tasks(inventory, work.scratch.directory, options)
    runs: list[Run] = []
    sample: Sample = []
    failed, excluded = [], 0
    with Progress("sorting", len(tasks), inventory.total, options.quiet) as progress:
        failures.show_on(progress)

        def is_whole(content: Any) -> bool:
            return SortResult.from_json(content).is_whole(work.scratch)

        for content in work.run("sort", _sort_group, tasks, options.processes, progress, is_whole):
            result = SortResult.from_json(content)
            runs += result.runs
            sample = merge_samples((sample, result.sample), options.sample_size)
            failed += result.failures
            excluded += result.excluded
            for failure in result.failures:
                failures.report(failure)
    return SortResult(sorted(runs), sample, failed, excluded)


def _sort_tasks(inventory: Inventory, scratch: Path, options: ZipnumOptions) -> list[SortTask]:
    groups = group_sources(inventory.sources)
    size = options.sample_size
    ceiling = guess_ceiling(inventory, size) if size else 1.0
    return [
        SortTask(
            number=number,
            sources=group,
            scratch=scratch,
            seed=str(options.seed),
            sample_size=size,
            ceiling=ceiling,
            convert=options.convert,
            shards=options.shards,
            most_runs=share_of_runs(len(groups)),
            excluded=options.excluded,
        )
        for number, group in enumerate(groups)
    ]


def _sort_group(task: SortTask) -> dict[str, Any]:
    return sort_group(task).to_json()
