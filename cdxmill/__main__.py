"""`python -m cdxmill`."""

import sys

from cdxmill.cli.main import main

sys.exit(main())
