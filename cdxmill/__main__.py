"""python -m cdxmill."""

import sys

from cdxmill.cli import main

sys.exit(main())
