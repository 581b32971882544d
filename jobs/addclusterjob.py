#!/usr/bin/env python3
"""Start script of the add job: the lines of other clusters go to a cluster."""

from __future__ import annotations

from cdxmill.jobs.add_job import AddClusterJob

if __name__ == "__main__":
    AddClusterJob.run()
