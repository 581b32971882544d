"""Sample CDX files and write the split points to two files, a SequenceFile and a text file.

    python dosample.py -r local --shards 300 --splitfile splits.seq CDX...
    python dosample.py --shards 300 --splitfile splits.seq --from-cluster CLUSTER

Takes all options of samplecdxjob.py. Without --splitfile it writes splits.seq and splits.txt. With
--from-cluster the split points are taken from a cluster's index, which needs no job.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from cdxmill.commands.clusters.split_points import points_of_cluster
from cdxmill.errors import OK, CdxmillError, UsageError
from cdxmill.inputs.split_files import check_splits_absent, write_splits
from cdxmill.jobs.sample_job import SampleCDXJob
from cdxmill.messages import say
from cdxmill.running.start_script import fail


def main() -> int:
    """Run the job, or read the index. Returns the exit status."""
    if any(word.partition("=")[0] == "--from-cluster" for word in sys.argv[1:]):
        return from_cluster()
    sys.argv[1:1] = ["--splitfile", "splits.seq", "--no-cat-output"]  # the user's own come later and win
    SampleCDXJob.arguments = "CDX...\n       %(prog)s --from-cluster CLUSTER"
    SampleCDXJob.description = "Sample CDX files and write split points for the ZipNum job to two files."
    SampleCDXJob.run()
    return OK


def from_cluster() -> int:
    """Write the split points of a cluster's index. Options of mrjob are ignored."""
    parser = ArgumentParser(description="Take split points from the index of a ZipNum cluster.")
    parser.add_argument(
        "--from-cluster", required=True, metavar="CLUSTER", help="directory or URL of the cluster"
    )
    parser.add_argument("--shards", type=int, default=300, help="number of shards (default: 300)")
    parser.add_argument(
        "--splitfile",
        default="splits.seq",
        help="SequenceFile to write, with a .txt file beside it (default: splits.seq)",
    )
    parser.add_argument("--replace", action="store_true", help="replace existing files")
    options, _ = parser.parse_known_args()
    try:
        if options.shards < 1:
            raise UsageError(f"invalid --shards {options.shards}: expected a number >= 1")
        if not options.replace:
            check_splits_absent(options.splitfile, ".seq")
        found = points_of_cluster(options.from_cluster, options.shards)
        write_splits(found.points, options.splitfile, ".seq")
    except CdxmillError as error:
        return fail(error, error.status)
    say(str(found))
    return OK
