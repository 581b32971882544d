"""Functions about what is in archives: `scan`, `count`, `cat`, `recompress`, `reindex`, `train_dictionary`."""

from __future__ import annotations

import os
from dataclasses import field
from io import BytesIO

from cdxmill.api.calls import takes
from cdxmill.api.results import (
    CatResult,
    CountResult,
    DictionaryResult,
    EstimateResult,
    RecompressResult,
    ReindexResult,
    ScanResult,
    VerifyArchivesResult,
    result_of,
)
from cdxmill.commands.cat import content_asked, table_asked
from cdxmill.commands.count import count_asked
from cdxmill.commands.per_archive.ask import estimate_asked, recompress_asked, reindex_asked
from cdxmill.commands.per_archive.verify_archives import verify_archives as compare
from cdxmill.commands.scanning.ask import scan_asked
from cdxmill.commands.train_dictionary import train_dictionary as train
from cdxmill.inputs.archives import find_archives
from cdxmill.options.contents import CountOptions, Scanning
from cdxmill.options.option import AnyPath, declared
from cdxmill.options.packing import Comparing, Estimating, Recompressing, Reindexing, Training
from cdxmill.options.records import Printing
from cdxmill.running.failures import Failures


class CountCall(CountOptions):
    """The parameters of `count`."""

    output: AnyPath | None = field(default=None)


@takes(Scanning)
def scan(asked: Scanning) -> ScanResult:
    """Search archives for records, and write what you need of them: one file per archive in the directory `output`.

    `inputs` are archives, directories, globs or URLs. `where` are conditions, `extract` the names of fields, `call`
    functions of your own as "MODULE:FUNCTION". Records that cannot be read, take too long or make a function fail are
    in the failures of the result, and in `output`/failures.tsv. Raises UsageError for invalid arguments, and for an
    output that exists and may not be replaced; StoppedError if the output cannot be written.
    """
    failures = Failures(printed=False)
    return result_of(ScanResult, scan_asked(asked, failures), failures)


@takes(CountCall)
def count(asked: CountCall) -> CountResult:
    """Count `what` ("tags", "servers", "words" or "links") in archives, directories, globs or URLs.

    With `call` in place of `what`, count what a function of your own finds: it gets each record (see `records`) and returns
    or yields items, or pairs of an item and a number. It may be named "MODULE:FUNCTION".
    With `output`, the counts are written to that file, a path or URL; without, they are in the result. Of an archive that
    cannot be read to its end, nothing is counted. Raises UsageError for invalid arguments, or if nothing can be counted.
    """
    failures, memory = Failures(printed=False), BytesIO()
    done = count_asked(asked, memory if asked.output is None else os.fspath(asked.output), failures)
    rows = (line.rpartition(b"\t") for line in memory.getvalue().splitlines())
    return CountResult(
        archives=done.archives,
        items=done.lines,
        counted=done.counted.counted,
        skipped=done.counted.skipped,
        counts={item: int(number) for item, _, number in rows} if asked.output is None else None,
        failures=failures.items,
    )


@takes(Printing)
def cat(asked: Printing) -> CatResult:
    """Read the record at `offset` of an archive as it is, or write a table of all records to `table`.

    The content of the record has its header, and is not decoded. Raises InputError if there is no record, or if the
    archive cannot be read, UsageError for invalid arguments.
    """
    failures = Failures(printed=False)
    if asked.table is not None:
        return CatResult(table_asked(asked, failures), b"", failures.items)
    return CatResult(1, b"".join(content_asked(asked)), failures.items)


@takes(Recompressing)
def recompress(asked: Recompressing) -> RecompressResult:
    """Write archives again, compressed as `to` says ("zst" or "gz"): one per archive in the directory `output`.

    `inputs` are archives, directories, globs or URLs. With `offsets`, each gets a table for `reindex`, with `index` a
    CDXJ index. Records that are corrupt are in the failures of the result. Raises UsageError for invalid arguments, and
    for an output that exists and may not be replaced; StoppedError if the output cannot be written.
    """
    failures = Failures(printed=False)
    return result_of(RecompressResult, recompress_asked(asked, failures), failures)


@takes(Estimating)
def recompress_estimate(asked: Estimating) -> EstimateResult:
    """Estimate what `recompress` would do with archives. Nothing is written.

    The parameters are those of `recompress`. At most 2 GiB of archives are read, drawn at random. Damage is in the
    failures of the result. Raises UsageError for invalid arguments, or if there are no archives.
    """
    failures = Failures(printed=False)
    found = estimate_asked(
        Recompressing(**{one.name: getattr(asked, one.name) for one in declared(Estimating) if one.init}),
        failures,
    )
    return EstimateResult(
        archives=found.archives,
        read=found.read,
        records=found.records,
        before=found.before,
        after=found.after,
        dictionaries=found.dictionaries,
        seconds=found.seconds,
        kinds={one.kind: (one.before, one.after) for one in found.kinds},
        failures=failures.items,
    )


@takes(Comparing)
def verify_archives(asked: Comparing) -> VerifyArchivesResult:
    """Compare the archive `old` with `new`, which `recompress` made of it, record by record; or two directories of them.

    Differences, and digests that are not those of their records, are in the failures of the result. Raises UsageError if there
    are no archives.
    """
    failures = Failures(printed=False)
    return result_of(VerifyArchivesResult, compare(asked, failures), failures)


@takes(Reindexing)
def reindex(asked: Reindexing) -> ReindexResult:
    """Rewrite the index files `inputs` for archives that `recompress` wrote with `offsets`: tables, or directories.

    One file per index file is written to the directory `output`. Lines whose record is missing in its table are in the
    failures of the result. Raises as `recompress` does.
    """
    failures = Failures(printed=False)
    return result_of(ReindexResult, reindex_asked(asked, failures), failures)


@takes(Training)
def train_dictionary(asked: Training) -> DictionaryResult:
    """Train a Zstandard dictionary for archives like the `inputs`, and write it to `output`, with its statistics beside it.

    `size` is in KiB. Raises UsageError for invalid arguments, if the records are too few, or if `output` exists and
    `replace` is not given; StoppedError if it cannot be written.
    """
    failures = Failures(printed=False)
    done = train(find_archives(asked, failures), asked, failures)
    return DictionaryResult(
        id=done.number,
        size=done.size,
        trained_on=done.trained_on,
        held_out=done.held_out,
        **done.saved._asdict(),
        failures=failures.items,
    )
