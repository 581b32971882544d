"""Convert split points between a text file and a Hadoop SequenceFile.

python seqfileutils.py --copyfrom splits.txt splits.seq     (or the reverse)
python seqfileutils.py --count splits.seq
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from cdxmill.cluster.split_files import read_splits, write_points
from cdxmill.errors import OK, CdxmillError
from cdxmill.messages import fail
from cdxmill.outputs.names import check_inputs_stay, output_file
from cdxmill.storage.location import locate


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
        if options.copyfrom:
            check_inputs_stay([locate(options.seqfile)], [locate(options.copyfrom)])
            output_file(options.seqfile, replace=options.replace)
        points = read_splits(options.copyfrom or options.seqfile)
        if options.count:
            print(len(points))
        else:
            is_text = locate(options.copyfrom).read_bytes().startswith(b"SEQ")
            write_points(points, options.seqfile, is_text)
    except CdxmillError as error:
        return fail(error, error.status)
    return OK
