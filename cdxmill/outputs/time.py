"""The time that is written to outputs."""

from __future__ import annotations

import os
import time


def output_time() -> str:
    """14 digits. SOURCE_DATE_EPOCH sets another time than now, so that the same run, run twice, has the same bytes."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = int(seconds) if seconds.isascii() and seconds.isdigit() else time.time()
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
