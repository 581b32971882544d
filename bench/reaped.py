"""Run a command and wait for all processes that it leaves, so that their CPU time is counted.

    python -m bench.reaped COMMAND...

Spark's Java ends before the Python processes that it has started.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    status = subprocess.run(sys.argv[1:], check=False).returncode
    with suppress(ChildProcessError):
        while True:
            os.wait()
    return status


if __name__ == "__main__":
    sys.exit(main())
