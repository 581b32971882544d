"""What captures are searched in: clusters, files with CDX lines, and standard input, one or several at once."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from cdxmill.cluster.archive_index import ArchivePlaces, archives_of, cluster_folder
from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lookup_query import KeyRange
from cdxmill.search.many import Answer, answer_many
from cdxmill.search.query import OpenCluster, PreparedQuery
from cdxmill.stages.inflate import MemberError
from cdxmill.stages.lines.line_lists import is_capture_line, split_lines
from cdxmill.stages.lines.read_content import read_content
from cdxmill.stages.window import ReadAt, Window
from cdxmill.storage.choose import exists, is_remote, open_ranges, status
from cdxmill.storage.entry import Entry
from cdxmill.storage.local import spooled

STDIN = "-"
EVERYTHING = "*"
"""The query for all lines of a file or of standard input."""
_LINES = re.compile(r"\.(?:cdxj?)(?:\.gz)?\Z")
_ALL = KeyRange(b"", b"\xff")


class Searched(Protocol):
    """An open source of index lines."""

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers for `urls`, in their order. Raises InputError, UsageError."""


class Source(NamedTuple):
    """What the user named, and where the archives of its lines are."""

    name: str
    places: ArchivePlaces

    @property
    def has_lines(self) -> bool:
        """Whether it is a file with lines, or standard input, and not a cluster."""
        return self.name == STDIN or bool(_LINES.search(self.name))


def find_sources(text: str, archives: str | None) -> list[Source]:
    """The sources that `text` names, separated by commas. Raises UsageError, InputError."""
    is_one = not is_remote(text) and exists(text)
    names = [text] if is_one else [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("no source given; name a cluster, a .cdxj file or -")
    return [_source(name, archives) for name in names]


def _source(name: str, archives: str | None) -> Source:
    if name == STDIN:
        return Source(name, ArchivePlaces(archives))
    if _LINES.search(name):
        if not exists(name):
            raise UsageError(f"{name}: does not exist; name a cluster, a .cdxj file or -")
        return Source(name, ArchivePlaces(archives))
    cluster_folder(name)
    return Source(name, archives_of(name, archives))


def state_of(source: Source) -> Entry | None:
    """The size and time of a local file or cluster index; None if they are not known."""
    if source.name == STDIN or is_remote(source.name):
        return None
    index = Path(source.name) / "cluster.idx"
    return status(index) or status(source.name)


@contextmanager
def open_source(source: Source) -> Iterator[Searched]:
    """Open a source. Raises UsageError and InputError as `open_cluster`, also inside the `with`."""
    if not source.has_lines:
        with open_cluster(source.name) as reader:
            yield _Cluster(OpenCluster.of(reader))
        return
    with ExitStack() as files:
        if source.name != STDIN:
            yield _LineFile(source.name, files.enter_context(open_ranges(source.name)))
            return
        file = files.enter_context(spooled())  # several queries read it several times
        while piece := sys.stdin.buffer.read(1 << 20):
            file.write(piece)
        file.flush()
        yield _LineFile("stdin", lambda offset, size: os.pread(file.fileno(), size, offset))


class _Cluster:
    def __init__(self, cluster: OpenCluster) -> None:
        self._cluster = cluster

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the cluster."""
        if EVERYTHING in urls:
            raise UsageError("no QUERY given; name URLs, such as '*.example.com'")
        yield from answer_many(self._cluster, prepared, urls)


class _LineFile:
    """A file of CDX or CDXJ lines in any order. It is read once for each query."""

    def __init__(self, name: str, read_at: ReadAt) -> None:
        self._name, self._read_at = name, read_at

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the file."""
        for url in urls:
            try:
                keys = _ALL if url == EVERYTHING else prepared.narrowed(prepared.keys(url))
            except UsageError as error:
                yield Answer(url, (), error)
                continue
            yield Answer(url, prepared.choose(self._within(keys), self._name))

    def _within(self, keys: KeyRange) -> Iterator[list[bytes]]:
        try:
            for lines in split_lines(read_content(Window(self._read_at))):
                found = [line.rstrip(b"\r") for line in lines if keys.low <= line < keys.high]
                yield [line for line in found if is_capture_line(line)]
        except MemberError as error:
            raise InputError(self._name, str(error), "fetch the file again") from None
