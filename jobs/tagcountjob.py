#!/usr/bin/env python3
"""Count the tags of the archives that manifests list. The output is that of `cdxmill count tags`."""

from __future__ import annotations

from cdxmill.jobs.count_job import CountJob


class TagCountJob(CountJob):
    """Input: manifests. Output: lines `<tag> TAB <count>`."""

    what = "tags"


if __name__ == "__main__":
    TagCountJob.run()
