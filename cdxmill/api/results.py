"""What the functions of the public API return. `failures` has at most the first 10,000."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from cdxmill.running.failures import Failure, Failures


@dataclass(frozen=True)
class IndexResult:
    """What `index` did. `bytes` is the size of the archives that were indexed."""

    archives: int
    skipped: int
    captures: int
    bytes: int
    failures: list[Failure]


@dataclass(frozen=True)
class ClusterResult:
    """A finished ZipNum cluster. `duplicates` counts the equal lines that were dropped, `bytes` all shards."""

    shards: int
    blocks: int
    lines: int
    duplicates: int
    bytes: int
    failures: list[Failure]


@dataclass(frozen=True)
class ChangeResult:
    """What `add`, `remove` or `compact` did to a cluster, in lines: `added`, `removed`, there already, and excluded.

    `shards` of its shards were written. The cluster is unchanged if that is 0.
    """

    added: int
    present: int
    excluded: int
    removed: int
    shards: int
    failures: list[Failure]


@dataclass(frozen=True)
class SampleResult:
    """The split points that `sample` found: the keys at which the shards start, except the first."""

    points: list[bytes]
    failures: list[Failure]


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` checked. `exact` says that every byte was checked against cluster.json.

    `records` is the number of records that were read from archives, None if that was not asked for.
    The cluster is sound if `failures` is empty.
    """

    shards: int
    blocks: int
    lines: int
    bytes: int
    exact: bool
    records: int | None
    failures: list[Failure]


@dataclass(frozen=True)
class PrefixIndexResult:
    """A finished prefix B-tree. `reads` are the blocks from its root to an item, `blocks` those with items."""

    items: int
    archives: int
    blocks: int
    index_blocks: int
    reads: int
    bytes: int
    failures: list[Failure]


@dataclass(frozen=True)
class CopyResult:
    """What `copy` did. `captures` were copied in this run, `present` in earlier ones.

    `files` archives of `bytes` were written; `requests` were sent, and `fetched` bytes read.
    """

    captures: int
    present: int
    files: int
    bytes: int
    requests: int
    fetched: int
    failures: list[Failure]


@dataclass(frozen=True)
class ExportResult:
    """What `export` wrote. `missing` is the number of values that a table cannot have, by column; `pages` is that of a WACZ."""

    captures: int
    missing: dict[str, int]
    pages: int | None
    failures: list[Failure]


@dataclass(frozen=True)
class CapturedRecord:
    """One record of an archive.

    `url` and `timestamp` (14 digits) are "" if the record has none. `headers` are the record's own, by lower-case name.
    `http_head` is the status line and the HTTP headers, b"" if there are none.
    """

    url: str
    timestamp: str
    filename: str
    offset: int
    headers: dict[str, str]
    http_head: bytes
    payload: bytes


@dataclass(frozen=True)
class ScanResult:
    """What `scan` did. Of `records` in `archives`, `matches` match. `kept` outputs were up to date."""

    archives: int
    written: int
    kept: int
    records: int
    matches: int
    failures: list[Failure]


@dataclass(frozen=True)
class CountResult:
    """What `count` did. `items` is the number of different items in `counted` records of `archives`.

    `skipped` has the number of other records by the reason. `counts` are the items with their numbers, in the order
    of their bytes; None if they were written to a file.
    """

    archives: int
    items: int
    counted: int
    skipped: dict[str, int]
    counts: dict[bytes, int] | None
    failures: list[Failure]


@dataclass(frozen=True)
class RecompressResult:
    """What `recompress` did. `before` and `after` are the bytes of the `written` archives; `kept` were up to date.

    `captures` is the number of lines of the indexes that were asked for.
    """

    archives: int
    written: int
    kept: int
    records: int
    before: int
    after: int
    captures: int
    failures: list[Failure]


@dataclass(frozen=True)
class EstimateResult:
    """What `recompress` would do with `archives`, of which `read` were read: the bytes `before` and `after`, with dictionaries.

    `dictionaries` of them would have one. `seconds` is the CPU time that it would take. `kinds` has the bytes before and after of
    each kind of content, the largest first.
    """

    archives: int
    read: int
    records: int
    before: int
    after: int
    dictionaries: int
    seconds: float
    kinds: dict[str, tuple[int, int]]
    failures: list[Failure]


@dataclass(frozen=True)
class VerifyArchivesResult:
    """What `verify_archives` compared: `pairs` of archives with `records` that both have, of `content` bytes in all.

    `old` and `new` are the bytes of the files. `proven` pairs have a proof, so every byte was checked. `different` records are in one
    archive only, `carried` damaged parts in both, and `wrong_digests` of `digests` are not those of their records. The archives are equal if `failures` is empty.
    """

    pairs: int
    records: int
    content: int
    old: int
    new: int
    proven: int
    digests: int
    wrong_digests: int
    different: int
    carried: int
    failures: list[Failure]


@dataclass(frozen=True)
class ReindexResult:
    """What `reindex` did: index lines that were moved, copied because they are of other archives, and skipped.

    `files` were written, `kept` were up to date, and `duplicates` lines dropped.
    """

    files: int
    kept: int
    moved: int
    copied: int
    skipped: int
    duplicates: int
    failures: list[Failure]


@dataclass(frozen=True)
class DictionaryResult:
    """A new dictionary: its `id` and `size`, the records that it was trained on, and those of the test (`held_out`).

    These have `plain` bytes. They take `gzip` bytes with gzip -6, `compressed` with the dictionary, `without` without it.
    """

    id: int
    size: int
    trained_on: int
    held_out: int
    plain: int
    gzip: int
    compressed: int
    without: int
    failures: list[Failure]


@dataclass(frozen=True)
class ReportResult:
    """What `report` found: the `report`, as its JSON has it."""

    report: dict[str, Any]
    failures: list[Failure]


@dataclass(frozen=True)
class CatResult:
    """What `cat` read: the `content` of one record, or the number of `records` in the table that it wrote."""

    records: int
    content: bytes
    failures: list[Failure]


_Result = TypeVar(
    "_Result",
    ClusterResult,
    CopyResult,
    ExportResult,
    PrefixIndexResult,
    RecompressResult,
    ReindexResult,
    ScanResult,
    VerifyArchivesResult,
    VerifyResult,
)


def result_of(kind: type[_Result], done: object, failures: Failures) -> _Result:
    """The result of a command whose summary `done` has the same names, with its failures."""
    values = {field.name: getattr(done, field.name) for field in fields(kind) if field.name != "failures"}
    return kind(**values, failures=failures.items)
