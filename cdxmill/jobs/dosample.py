"""Sample CDX files and write the split points to two files, a SequenceFile and a text file.

    python dosample.py -r local --shards 300 --splitfile splits.seq CDX...
    python dosample.py --shards 300 --splitfile splits.seq --from-cluster CLUSTER

Takes all options of samplecdxjob.py. Without --splitfile it writes splits.seq and splits.txt. With
--from-cluster the split points are taken from a cluster's index, which needs no job.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from cdxmill.cluster.split_files import check_splits_absent, write_splits
from cdxmill.commands.clusters.split_points import points_of_cluster
from cdxmill.errors import OK, CdxmillError
from cdxmill.jobs.sample_job import SampleCDXJob, SplitsOptions
from cdxmill.messages import fail, say
from cdxmill.options.option import option
from cdxmill.options.table import add_options, read_options


class FromCluster(SplitsOptions):
    """The options with which the split points come from a cluster."""

    from_cluster: str = option("--from-cluster CLUSTER", "Directory or URL of the cluster.")
    splitfile: str = option(
        "--splitfile", "SequenceFile to write, with a .txt file beside it.", default="splits.seq"
    )


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
    add_options(FromCluster, parser.add_argument)
    given, _ = parser.parse_known_args()
    try:
        options = read_options(FromCluster, given)
        if not options.replace:
            check_splits_absent(options.splitfile, ".seq")
        found = points_of_cluster(options.from_cluster, options.shards)
        write_splits(found.points, options.splitfile, ".seq")
    except CdxmillError as error:
        return fail(error, error.status)
    say(str(found))
    return OK
