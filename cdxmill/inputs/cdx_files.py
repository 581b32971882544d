"""The CDX files that the user named, and how one of them is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cdxmill.formats.archives.gzip_member import MAGIC
from cdxmill.formats.lines.cdx import CDX_NAME
from cdxmill.inputs.named import Input, Search, Wanted
from cdxmill.inputs.pipes import Pipes
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failures
from cdxmill.stages.inflate import MemberError
from cdxmill.stages.lines.check_lines import LineCheck, LineError, Piece
from cdxmill.stages.lines.read_content import read_cdx, read_content, read_large_pieces
from cdxmill.stages.lines.sorted_file import SeekPoints, note_seek_points
from cdxmill.stages.window import CHUNK, Window
from cdxmill.storage.location import PathOrUrl, locate
from cdxmill.storage.unchanged import open_unchanged

_LOCAL_CHUNK = 1 << 18
"""Bytes per read of a local file: larger reads cost more, because their memory is new each time."""

_LARGE_CHUNK = 1 << 20

_CDX = Wanted(
    "CDX files",
    CDX_NAME,
    "in directories, cdxmill searches for .cdx, .cdxj, .cdx.gz and .cdxj.gz files; for the shards of a cluster write"
    " DIR/cdx-*.gz",
)


def find_cdx_files(named: list[str], failures: Failures, pipes: Pipes | None = None) -> list[str]:
    """The CDX files that the user named: files, globs, and directories with `*.cdx`, `*.cdxj`, also `.gz`.

    Also as s3 and hdfs URLs; an http URL is one file. With `pipes`, also pipes and - for standard input. Inputs that cannot be listed are reported to `failures`, and
    what was skipped in directories. Raises UsageError if there is no file, InputError if nothing could be listed.
    """
    return [entry.path for entry in find_cdx_inputs(named, failures, pipes)]


def find_cdx_inputs(named: list[str], failures: Failures, pipes: Pipes | None = None) -> list[Input]:
    """The same files, with the names that their outputs can have."""
    search = Search(_CDX, failures, pipes)
    for name in named:
        search.add(name)
    return search.finish(named)


def read_pieces(path: PathOrUrl, chunk: int = 0) -> Iterator[bytes]:
    """The text of the CDX file at a path or URL, in pieces; `chunk` bytes are read at a time.

    Each piece is checked before it is passed on. Raises InputError if the file cannot be read, is empty or
    corrupt, or has a line that is no CDX line.
    """
    return _read(path, chunk or chunk_of(path), read_content)


def read_text(path: PathOrUrl) -> Iterator[bytes | bytearray]:
    """As `read_pieces`, but pieces can have 4 MiB and be bytearrays: for readers that copy only some of the lines."""
    return _read(path, max(_LARGE_CHUNK, chunk_of(path)), read_large_pieces)


def _read(path: PathOrUrl, chunk: int, content: Callable[[Window], Iterator[Piece]]) -> Iterator[Piece]:
    with open_unchanged(path) as read_at:
        yield from read_cdx(str(path), Window(counted(read_at), chunk), content)


def read_sorted(path: PathOrUrl, most: int, take: Callable[[bytes], object]) -> SeekPoints | None:
    """Pass the text of a gzip CDX file to `take`, in pieces; the result makes the file a sorted run.

    None if it cannot be one: it is not gzip, not sorted or corrupt, has a line that is no CDX line, or a gzip
    member has more than `most` plain bytes. Some of the text may have been passed then. Raises InputError if the file cannot be read.
    """
    check = LineCheck()

    def take_checked(piece: bytes) -> None:
        check.take(piece)
        take(piece)

    with open_unchanged(path) as read_at:
        window = Window(counted(read_at), chunk_of(path))
        if window.get(0, len(MAGIC)) != MAGIC or MAGIC not in read_at(1, most):
            return None  # without another member in `most` compressed bytes, there are more plain ones in the first
        try:
            seek_points = note_seek_points(window, most, take_checked)
            check.end()
        except (MemberError, LineError):
            return None
    return seek_points


def chunk_of(path: PathOrUrl) -> int:
    """Bytes per read of a file that is read from start to end."""
    return CHUNK if locate(path).is_remote else _LOCAL_CHUNK
