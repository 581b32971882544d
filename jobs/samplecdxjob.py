#!/usr/bin/env python3
"""Start script of the sample job: CDX files -> split points."""

from __future__ import annotations

from cdxmill.jobs.sample_job import SampleCDXJob

if __name__ == "__main__":
    SampleCDXJob.run()
