#!/usr/bin/env python3
"""Count the words of the archives that manifests list. The output is that of `cdxmill count words`."""

from __future__ import annotations

from cdxmill.jobs.count_job import CountJob


class WordCountJob(CountJob):
    """Input: manifests. Output: lines `<word> TAB <count>`."""

    what = "words"


if __name__ == "__main__":
    WordCountJob.run()
