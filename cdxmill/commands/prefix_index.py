"""prefix-index build: sorted lines, or a cluster -> a prefix B-tree, one file with all that a reader needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cdxmill.cluster.find import find_index
from cdxmill.cluster.reader import open_cluster
from cdxmill.cluster.write import files_read
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.formats.tree.pointer_layout import Layout
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.inputs.pipes import STDIN, is_pipe
from cdxmill.messages import count, human_bytes
from cdxmill.options.option import required_paths
from cdxmill.options.queries import Query
from cdxmill.options.trees import TreeBuilding
from cdxmill.outputs.names import check_inputs_stay, output_file, writing
from cdxmill.regex import regex
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Progress
from cdxmill.search.opened import OpenCluster
from cdxmill.search.prefix_index import parse_layout
from cdxmill.search.query import PreparedQuery
from cdxmill.stages.lines.line_lists import distinct_captures
from cdxmill.stages.lines.merge_lines import merge_lines
from cdxmill.stages.prefix_tree.write_tree import NotSortedError, TreeWriter
from cdxmill.storage.location import Location, locate, total_size
from cdxmill.storage.scratch import scratch_files
from cdxmill.tasks.tree_items import (
    Archives,
    CaptureItems,
    Items,
    TreeSource,
    in_order,
    not_sorted,
    open_source,
    pointer_items,
)

_ALL = KeyRange(b"", b"\xff" * 16)
_FILE = regex(r"\.(cdxj?|tsv|txt)(\.gz)?$", re.I)
"""Names that are not those of a cluster."""


class TreeSummary(NamedTuple):
    """A finished prefix B-tree. `reads` are the blocks from the root to an item."""

    items: int
    archives: int
    blocks: int
    index_blocks: int
    reads: int
    bytes: int

    def __str__(self) -> str:
        """Return one line."""
        archives = f" of {count(self.archives, 'archive')}" if self.archives else ""
        blocks = f"{count(self.blocks, 'data block')} and {count(self.index_blocks, 'index block')}"
        return f"{count(self.items, 'item')}{archives} in {blocks}, {human_bytes(self.bytes)}, {count(self.reads, 'read')} per search"


def build_tree(options: TreeBuilding, failures: Failures) -> TreeSummary:
    """Build the prefix B-tree of sorted inputs at a path or URL.

    Inputs are CDX or CDXJ files, clusters, or files of keys and pointers; several are merged. Nothing is written if
    one of them is corrupt, not sorted or has something that cannot be stored. Raises InputError, UsageError, StoppedError.
    """
    output = os.fspath(options.output)
    if output == STDIN:
        raise UsageError("-o needs a file: the start of a prefix B-tree is written last")
    place = output_file(output, replace=options.replace)
    sources, paths = _open_all(required_paths(options.inputs), failures)
    clusters = [one for source in sources if source.cluster for one in files_read(source.cluster)]
    check_inputs_stay([place], [*map(locate, paths), *clusters])
    with (
        Progress("prefix-index", 1, total_size(map(locate, paths)), options.quiet) as progress,
        scratch_files(output) as scratch,
    ):
        failures.show_on(progress)
        work = _Work(sources, options)
        try:
            layout = "" if work.layout.name == "classic" else work.layout.text
            writer = TreeWriter(options.block_size, work.layout.size, scratch, layout)
        except ValueError as error:
            raise UsageError(f"--block-size: {error}") from None
        with _input_errors(work.label):
            for keys, tails in work.items():
                writer.add(keys, tails)
                progress.tick()
        if not writer.items:
            raise InputError(work.label, "has no lines for the index", "check the inputs")
        summary = _write(writer, work, place, options.replace)
        progress.advance()
    return summary


def _write(writer: TreeWriter, work: _Work, place: Location, replace: bool) -> TreeSummary:
    with writing(place, replace=replace) as file:
        size = writer.finish(file, list(work.archives))
    archives = len(work.archives)
    return TreeSummary(writer.items, archives, writer.blocks, writer.index_blocks, writer.levels + 1, size)


@contextmanager
def _input_errors(label: str) -> Iterator[None]:
    """Turn errors of items into InputError."""
    try:
        yield
    except NotSortedError as error:
        raise not_sorted(label, error.before, error.key) from None
    except ValueError as error:
        raise InputError(label, str(error)) from None


class _SortedSource(NamedTuple):
    """A file, or a cluster, which has lists of lines."""

    label: str
    file: TreeSource | None
    cluster: str = ""

    def lists(self) -> Iterator[list[bytes]]:
        """The lines, sorted."""
        if self.file is not None:
            return self.file.lists()
        return in_order(self.label, filter(None, _lines_of(self.cluster)))


class _Work:
    """The sources of a build, and the items of all of them."""

    def __init__(self, sources: Sequence[_SortedSource], options: TreeBuilding) -> None:
        self._sources = sources
        has_pointers = {source.file is not None and source.file.has_pointers for source in sources}
        if len(has_pointers) > 1:
            raise UsageError("some inputs are CDX lines, others keys and pointers: build one index of each")
        self._has_pointers = has_pointers == {True}
        self.layout: Layout = parse_layout(options.layout or ("classic" if self._has_pointers else "capture"))
        self.is_capture = self.layout.name == "capture"
        if not self._has_pointers and not self.is_capture:
            raise UsageError(
                "--layout: CDX lines have captures; other layouts need lines of keys and pointers"
            )
        self.label = sources[0].label if len(sources) == 1 else f"{len(sources)} inputs"
        self.archives = Archives()
        self.captures = CaptureItems(self.archives)

    def items(self) -> Iterator[Items]:
        """The items in order."""
        if not self._has_pointers:
            return self.captures.of_lines(self._lists())
        texts = self._texts()
        return self.captures.of_rows(texts) if self.is_capture else pointer_items(texts, self.layout)

    def _lists(self) -> Iterator[list[bytes]]:
        lists = [source.lists() for source in self._sources]
        return distinct_captures(lists[0]) if len(lists) == 1 else merge_lines(map(distinct_captures, lists))

    def _texts(self) -> Iterator[bytes]:
        (source, *others) = self._sources
        if source.file is not None and not others:
            return source.file.texts()
        return (b"\n".join(lines) for lines in self._lists())


def _open_all(named: Sequence[str], failures: Failures) -> tuple[list[_SortedSource], list[str]]:
    """The sources of what is named, and the paths of those that are files. Raises UsageError, InputError."""
    sources, files, piped = [], [], set()
    for name in named:
        if is_pipe(name):
            if name in piped:
                raise UsageError(f"{name}: was given twice, but it can be read only once")
            piped.add(name)
            sources.append(_SortedSource(name, open_source(name)))
        elif _is_cluster(name):
            sources.append(_SortedSource(name, None, name))
        else:
            files.append(name)
    paths = find_cdx_files(files, failures) if files else []
    for path in paths:
        found = open_source(path)
        if found.first:
            sources.append(_SortedSource(path, found))
    if not sources:
        raise InputError(paths[0], "has no lines for the index", "check the inputs")
    return sources, paths


def _is_cluster(name: str) -> bool:
    """Whether an input is a ZipNum cluster, and not a file or a directory of CDX files."""
    if _FILE.search(name):
        return False
    place = locate(name)
    try:
        find_index(place)
    except UsageError:
        return False
    except InputError:
        if not place.is_remote:
            raise
        return False
    return True


def _lines_of(cluster: str) -> Iterable[list[bytes]]:
    """All lines of a cluster, in lists."""
    prepared = PreparedQuery(Query())
    with open_cluster(cluster) as reader:
        yield from prepared.answer(OpenCluster.of(reader), _ALL)
