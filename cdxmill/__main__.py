"""`python -m cdxmill`."""

import os
import sys

if (
    "-m" in sys.orig_argv and not sys.flags.safe_path
):  # else the working directory, with a click.py perhaps, comes first
    here = sys.path.pop(0)
    if os.path.dirname(os.path.dirname(__file__)) == here:  # noqa: PTH120 - a checkout that is not installed
        sys.path.append(here)

from cdxmill.cli.start import main

sys.exit(main())
