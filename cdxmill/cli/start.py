"""The start of the program. Ctrl-C ends it without a traceback while its modules are imported, too."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return the exit status."""
    try:
        from cdxmill.cli.main import main as run
    except KeyboardInterrupt:
        print("cdxmill: interrupted", file=sys.stderr)
        return 130
    return run()
