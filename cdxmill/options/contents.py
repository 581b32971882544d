"""Options of `scan` and `count`, which read what is in archives."""

from collections.abc import Callable, Iterable
from typing import Any

from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.option import (
    REPLACE,
    AnyPath,
    EngineOptions,
    Excludes,
    Existing,
    Needs,
    Options,
    Running,
    argument,
    option,
)

_WARC, _WET = ("warc.gz", "warc.zst"), ("wet.gz", "wet.zst")
_WHOLE, _TEXT = (tuple(f"to={name}" for name in names) for names in (_WARC, _WET))
"""Formats of records as they are, which have no fields, and of texts, which have one."""


class Watched(Options):
    """The limits of commands and jobs that a single record could stop."""

    timeout: int = option(
        "--timeout N", "Seconds for one record. Then it is skipped and reported.", default=60, min=1
    )
    memory: int = option("--memory N", "MiB of memory that one process may use.", default=2048, min=64)


class Watching(Watched, Running):
    """How such a command runs."""


class Scanning(ArchiveInputs, Existing, Watching, EngineOptions):
    """The arguments of `scan`."""

    output: AnyPath = option("--output -o DIR", "Directory, s3 or hdfs URL for the results.")
    where: str | Iterable[str] | None = option(
        "--where EXPRESSION",
        "Conditions such as status=200, url~REGEX, title:TEXT or host@FILE, with and, or, not and parentheses. May"
        " be repeated: then all must hold. Default: all records.",
        default=None,
    )
    extract: str | None = option(
        "--extract NAMES",
        "Fields to write, comma-separated. Default: url,time,type,status,mime,offset,length. With --to wet: text_lines (the"
        " default), main_text or text.",
        Excludes(*_WHOLE),
        default=None,
    )
    find: str | Iterable[str] | None = option(
        "--find FILTER",
        "NAME=FIELD~REGEX: write all matches in a field, or of the groups in REGEX. May be repeated.",
        Excludes(*_WHOLE, *_TEXT),
        default=None,
    )
    call: str | Iterable[str] | None = option(
        "--call FUNCTION",
        "MODULE:FUNCTION of your own. It gets each matching record. If it returns a dict, its items are written; if"
        " False, the record is skipped. NAME:MODULE.FUNCTION:TYPE writes what it returns to the column NAME; TYPE is text, int,"
        " double, bool, list or json. May be repeated.",
        default=None,
    )
    call_page: str | Iterable[str] | None = option(
        "--call-page FUNCTION", "As --call, but it gets the parsed page, if there is one.", default=None
    )
    to: str = option(
        "--to FORMAT",
        "jsonl, jsonl.gz, jsonl.zst, parquet; for the matching records as they are, warc.gz or warc.zst; for their texts,"
        " wet.gz or wet.zst.",
        default="jsonl.gz",
        choices=("jsonl", "jsonl.gz", "jsonl.zst", "parquet", *_WARC, *_WET),
    )
    captures: AnyPath | None = option(
        "--captures FILE",
        "Scan only the records that these index lines name, as lookup prints them: path, URL, or - for standard"
        " input. INPUT has to contain their archives. A line whose record has another URL or time is reported.",
        Excludes("engine=spark"),
        default=None,
    )
    detector: str = option(
        "--detector NAME",
        "Detector of languages: fast; or py3langid, which is right more often and takes up to 100 times as long.",
        default="fast",
        choices=("fast", "py3langid"),
    )
    sample: str | int | None = option(
        "--sample N",
        "Choose N of the matching records of all archives, or a share such as 1%, at random. The same ones in each run.",
        default=None,
    )
    seed: int | None = option(
        "--seed N", "Choose another sample. Default: 0.", Needs("sample"), default=None, min=0
    )
    explain: bool = option(
        "--explain",
        "Print the order of the conditions, and what was measured of each.",
        default=False,
        init=False,
    )


class _What(Watching):
    """What is counted. It comes before the inputs."""

    what: str | None = argument(
        "WHAT",
        "What is counted: tags, servers, words or links. Omit it with --call.",
        default=None,
        kw_only=False,
    )


class CountOptions(ArchiveInputs, _What):
    """What is counted, and whether an output is replaced. Functions of the API take a function for `call`."""

    call: str | Callable[[Any], Any] | None = option(
        "--call FUNCTION",
        "Count what MODULE:FUNCTION of your own finds: it gets each record, and returns or yields items, or pairs of"
        " an item and a number. It may be a class with a method `items`, such as one for Hadoop.",
        default=None,
    )

    replace: bool = REPLACE


class Counting(CountOptions, EngineOptions):
    """The arguments of `count`."""

    output: AnyPath = option(
        "--output -o FILE",
        "File to write: path, s3 or hdfs URL. It is gzipped if its name ends in .gz. - writes to stdout.",
    )
