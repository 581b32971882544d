#!/usr/bin/env python3
"""Sample CDX files and write the split points as a SequenceFile and as text.

    python dosample.py -r local --shards 300 --splitfile splits.seq CDX...

Takes all options of samplecdxjob.py. Without --splitfile it writes splits.seq and splits.txt.
"""

from __future__ import annotations

import sys

from cdxmill.jobs.samplecdxjob import SampleCDXJob


def main() -> None:
    """Run the job; a --splitfile that is named comes later and wins."""
    sys.argv[1:1] = ["--splitfile", "splits.seq", "--no-cat-output"]
    SampleCDXJob.run()


if __name__ == "__main__":
    main()
