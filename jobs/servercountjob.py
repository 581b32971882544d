#!/usr/bin/env python3
"""Count the servers of the archives that manifests list. The output is that of `cdxmill count servers`."""

from __future__ import annotations

from cdxmill.jobs.count_job import CountJob


class ServerCountJob(CountJob):
    """Input: manifests. Output: lines `<server> TAB <count>`."""

    what = "servers"


if __name__ == "__main__":
    ServerCountJob.run()
