"""Split points: text <-> Hadoop SequenceFile.

python seqfileutils.py --copyfrom splits.txt splits.seq     (or the other way round)
python seqfileutils.py --count splits.seq
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import PurePosixPath

from cdxmill.errors import CdxmillError, UsageError
from cdxmill.formats.split_points import format_sequence_file, format_text
from cdxmill.inputs.split_files import read_splits
from cdxmill.storage.choose import read_bytes, write_atomic


def write_split_files(points: Sequence[bytes], place: str) -> None:
    """Write a SequenceFile at `place`, a path or URL, and the text beside it, ending in .txt.

    Where `place` itself ends in .txt it is the text, and the SequenceFile ends in .seq.
    """
    head, slash, name = place.rpartition("/")
    text = head + slash + PurePosixPath(name).with_suffix(".txt").name
    write_points(points, text, is_text=True)
    write_points(points, place[:-4] + ".seq" if place == text else place, is_text=False)


def write_points(points: Sequence[bytes], place: str, is_text: bool) -> None:
    """Write one file of split points."""
    with write_atomic(place) as file:
        file.write(format_text(points) if is_text else format_sequence_file(points))


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert or count; the exit status."""
    parser = ArgumentParser(description="Converts split points, a text file <-> a Hadoop SequenceFile.")
    parser.add_argument("seqfile", help="the file to write, or to count")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--copyfrom", help="split points of the other kind")
    what.add_argument("--count", action="store_true", help="print how many split points the file has")
    options = parser.parse_args(arguments)
    try:
        points = read_splits(options.copyfrom or options.seqfile)
        if options.count:
            print(len(points))
        else:
            is_text = read_bytes(options.copyfrom).startswith(b"SEQ")
            write_points(points, options.seqfile, is_text)
    except CdxmillError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 3
    return 0
