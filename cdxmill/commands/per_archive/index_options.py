"""What the user said about index lines -> how archives are indexed."""

from __future__ import annotations

from cdxmill.commands.per_archive.index_one import IndexOptions
from cdxmill.errors import UsageError
from cdxmill.options.archives import LineOptions, Recording
from cdxmill.options.option import text_list
from cdxmill.outputs.existing import Rule
from cdxmill.stages.captures.capture_options import DEFAULT_RECORDS, CaptureOptions, parse_record_types


def index_options(asked: LineOptions, existing: Rule) -> IndexOptions:
    """How archives are indexed. Raises UsageError."""
    return IndexOptions(
        captures=capture_options(asked),
        line_format=asked.line_format,
        processes=asked.processes,
        existing=existing,
        quiet=asked.quiet,
    )


def capture_options(asked: Recording) -> CaptureOptions:
    """Which records get a line. Raises UsageError for an unknown type of record."""
    names = None if asked.records is None else ",".join(text_list(asked.records)).split(",")
    try:
        records = DEFAULT_RECORDS if names is None else parse_record_types(names)
    except ValueError as error:
        raise UsageError(f"--records: {error}") from None
    return CaptureOptions(
        records=records,
        post_append=asked.post_append,
        minimal=asked.minimal,
        unsurt=asked.unsurt,
        keep_www=asked.keep_www,
    )
