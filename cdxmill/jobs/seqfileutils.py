"""Convert split points between a text file and a Hadoop SequenceFile.

python seqfileutils.py --copyfrom splits.txt splits.seq     (or the reverse)
python seqfileutils.py --count splits.seq
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import PurePosixPath

from cdxmill.errors import CdxmillError, UsageError
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text
from cdxmill.inputs.split_files import read_splits
from cdxmill.messages import say
from cdxmill.storage.choose import check_absent, read_bytes, write_atomic


def write_split_files(points: Sequence[bytes], path: str) -> None:
    """Write a SequenceFile at `path`, a path or URL, and a text file with the ending .txt beside it.

    If `path` itself ends in .txt it is the text file, and the SequenceFile ends in .seq.
    """
    text, sequence = _names(path)
    write_points(points, text, is_text=True)
    write_points(points, sequence, is_text=False)


def check_split_files_absent(path: str) -> None:
    """Raise UsageError if `write_split_files` would overwrite a file."""
    for name in _names(path):
        check_absent(name)


def _names(path: str) -> tuple[str, str]:
    """The text file and the SequenceFile."""
    head, slash, name = path.rpartition("/")
    text = head + slash + PurePosixPath(name).with_suffix(".txt").name
    return text, path[:-4] + ".seq" if path == text else path


def write_points(points: Sequence[bytes], path: str, is_text: bool) -> None:
    """Write one file of split points."""
    with write_atomic(path) as file:
        file.write(format_text(points) if is_text else format_sequence_file(points))


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert or count. Returns the exit status."""
    parser = ArgumentParser(description="Convert split points between a text file and a Hadoop SequenceFile.")
    parser.add_argument("seqfile", help="the file to write, or to count")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--copyfrom", help="a file of split points of the other kind")
    action.add_argument("--count", action="store_true", help="print the number of split points")
    parser.add_argument("--replace", action="store_true", help="replace an existing file")
    options = parser.parse_args(arguments)
    try:
        if options.copyfrom and not options.replace:
            check_absent(options.seqfile)
        points = read_splits(options.copyfrom or options.seqfile)
        if options.count:
            print(len(points))
        else:
            is_text = read_bytes(options.copyfrom).startswith(b"SEQ")
            write_points(points, options.seqfile, is_text)
    except CdxmillError as error:
        say(str(error))
        return 2 if isinstance(error, UsageError) else 3
    return 0
