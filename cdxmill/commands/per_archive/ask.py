"""What a user asks `recompress` and `reindex` for: inputs are found, options read, outputs named."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdxmill.commands.per_archive.estimate import NewSizes, estimate
from cdxmill.commands.per_archive.recompress import RecompressSummary, recompress
from cdxmill.commands.per_archive.recompress_one import RecompressOptions
from cdxmill.commands.per_archive.reindex import ReindexSummary, reindex
from cdxmill.commands.per_archive.task import OutputOptions, outputs_in
from cdxmill.errors import UsageError
from cdxmill.inputs.archives import OpenAll, find_archives, open_here
from cdxmill.inputs.cdx_files import find_cdx_inputs
from cdxmill.inputs.dictionaries import read_dictionary
from cdxmill.inputs.named import Input
from cdxmill.options.option import check_no_pipe, required_paths
from cdxmill.options.packing import Recompressing, Reindexing, Repacking
from cdxmill.outputs.existing import Rule, rule_of
from cdxmill.outputs.names import below, check_inputs_stay, output_name, output_names, recompressed_name
from cdxmill.outputs.offset_tables import find_tables, table_beside
from cdxmill.outputs.proofs import proof_beside
from cdxmill.outputs.record import without_outputs
from cdxmill.running.failures import Failures
from cdxmill.running.processes import RunTasks
from cdxmill.storage.location import locate

_HIGHEST_LEVELS = {"zst": 22, "gz": 12}


def recompress_asked(
    asked: Recompressing,
    failures: Failures,
    run: RunTasks | None = None,
    open_all: OpenAll = open_here,
) -> RecompressSummary:
    """Write archives again; `run` is another engine, and `open_all` opens WACZ files on it. Raises UsageError, StoppedError."""
    if asked.output is None:
        raise UsageError("missing --output DIR; or use --estimate, which writes nothing")
    check_no_pipe(asked.inputs, "an archive from a pipe has no name for its output; give a file")
    options, output = _options(asked), os.fspath(asked.output)
    names = new_names(find_archives(asked, failures, open_all=open_all), asked, output, failures)
    return recompress(names, output, options, failures, run)


def new_names(
    archives: Sequence[Input], asked: Repacking, output: str, failures: Failures
) -> Mapping[Input, str]:
    """The names of the new archives below `output`. Raises UsageError if one of them would replace the dictionary."""
    to = asked.to
    archives = without_outputs(archives, output, failures.note)
    names = output_names(archives, lambda path: recompressed_name(path, to), f".{to}")
    if asked.dictionary is not None:
        new = outputs_in(locate(output), names).values()
        beside = (place.with_name(output_name(place.name)) for place in new)
        check_inputs_stay(
            [*new, *beside, *map(table_beside, new), *map(proof_beside, new)],
            [locate(os.fspath(asked.dictionary))],
        )
    return names


def estimate_asked(asked: Recompressing, failures: Failures) -> NewSizes:
    """What the new archives of `recompress` would take. Raises UsageError."""
    check_no_pipe(asked.inputs, "an archive from a pipe cannot be read twice; give a file")
    return estimate(find_archives(asked, failures), _options(asked), failures)


def _options(asked: Recompressing) -> RecompressOptions:
    return replace(repacking_options(asked), processes=asked.processes, quiet=asked.quiet)


def repacking_options(asked: Repacking) -> RecompressOptions:
    """How archives are written again. The dictionary is read. Raises UsageError."""
    if asked.level > _HIGHEST_LEVELS[asked.to]:
        raise UsageError(f"--level: {asked.to} has levels 1 to {_HIGHEST_LEVELS[asked.to]}")
    return RecompressOptions(
        to=asked.to,
        level=asked.level,
        dictionary=b"" if asked.dictionary is None or asked.to == "gz" else read_dictionary(asked.dictionary),
        keeps_dictionary=not asked.drop_dictionary,
        group=asked.group,
        max_window=asked.max_window << 20,
        index=asked.index,
        offsets=asked.offsets,
        any_digest=asked.any_digest,
        keep_damaged=asked.keep_damaged,
        describe=asked.describe,
        existing=rule_of(asked),
    )


def reindex_asked(asked: Reindexing, failures: Failures) -> ReindexSummary:
    """Rewrite index files. Raises UsageError, StoppedError."""
    check_no_pipe(asked.inputs, "an index from a pipe has no name for its output; give a file")
    tables = find_tables(required_paths(asked.offsets), failures)
    names = output_names(find_cdx_inputs(required_paths(asked.inputs), failures), below)
    rule = Rule.REPLACE if asked.replace else Rule.STAY
    options = OutputOptions(processes=asked.processes, existing=rule, quiet=asked.quiet)
    return reindex(names, tables, os.fspath(asked.output), options, failures)
