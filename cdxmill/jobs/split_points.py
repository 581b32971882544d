"""Sample CDX files and write the split points as a SequenceFile and as text.

    python dosample.py -r local --shards 300 --splitfile splits.seq CDX...
    python dosample.py --shards 300 --splitfile splits.seq --from-cluster CLUSTER

Takes all options of samplecdxjob.py. Without --splitfile it writes splits.seq and splits.txt. From a cluster's
secondary index they come at once, without a job.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from cdxmill.commands.split_points import points_of_cluster
from cdxmill.errors import CdxmillError, UsageError
from cdxmill.jobs.sample_job import SampleCDXJob
from cdxmill.jobs.split_files import write_split_files


def main() -> int:
    """Run the job, or read the index; the exit status."""
    if any(word.partition("=")[0] == "--from-cluster" for word in sys.argv[1:]):
        return from_cluster()
    sys.argv[1:1] = ["--splitfile", "splits.seq", "--no-cat-output"]  # one that is named comes later and wins
    SampleCDXJob.run()
    return 0


def from_cluster() -> int:
    """Write the split points that a cluster's index gives; options of mrjob are let be."""
    parser = ArgumentParser(description="Finds split points in the secondary index of a cluster.")
    parser.add_argument("--from-cluster", required=True, metavar="CLUSTER")
    parser.add_argument("--shards", type=int, default=300)
    parser.add_argument("--splitfile", default="splits.seq")
    options, _ = parser.parse_known_args()
    try:
        if options.shards < 1:
            raise UsageError("--shards is a number from 1")
        found = points_of_cluster(options.from_cluster, options.shards)
        write_split_files(found.points, options.splitfile)
    except CdxmillError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    print(found, file=sys.stderr)
    return 0
