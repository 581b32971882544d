#!/usr/bin/env python3
"""Count the links between hosts in the archives that manifests list. The output is that of `cdxmill count links`."""

from __future__ import annotations

from cdxmill.jobs.count_job import CountJob


class LinkCountJob(CountJob):
    """Input: manifests. Output: lines `<host> <linked host> TAB <count>`."""

    what = "links"


if __name__ == "__main__":
    LinkCountJob.run()
