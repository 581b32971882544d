"""bench/ is not installed: it is found from the checkout, whoever starts pytest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
