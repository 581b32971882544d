"""bench/ is not installed, so the checkout is added to the search path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
