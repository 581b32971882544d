"""Runs a command and prints its peak memory in KiB: started fresh, for a fork counts its parent's memory.

    python peak.py COMMAND [ARGUMENT...]

The exit status is the command's.
"""

from __future__ import annotations

import os
import sys


def main(command: list[str]) -> int:
    """Run it; the peak goes to stdout, as the command's own output does to /dev/null."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    print(usage.ru_maxrss)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
