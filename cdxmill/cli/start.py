"""The start of the program. Ctrl-C ends it without a traceback while its modules are imported, too."""

from __future__ import annotations

import gc
import sys

_YOUNG = 30_000
"""Objects after which Python looks for garbage. With its 700 it does so fifty times while the modules are imported: a tenth of the start."""


def main() -> int:
    """Run the command line and return the exit status."""
    gc.set_threshold(_YOUNG)
    try:
        from cdxmill.cli.main import main as run
    except KeyboardInterrupt:
        print("cdxmill: interrupted", file=sys.stderr)
        return 130
    return run()
