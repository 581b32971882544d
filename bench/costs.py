"""Computes the results in docs/costs.md from its inputs.

    python -m bench.costs FILE      rewrites the last column of its tables of formulas

Rows of inputs are | `name` | what | number |; rows of results are | `name` | what | `formula` | number |.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_INPUT = re.compile(r"^\| `(\w+)` \|[^|]*\| ([\d.]+) \|$")
_RESULT = re.compile(r"^(\| `(\w+)` \|[^|]*\| `([^`|]+)` \|) [^|]* \|$")


def shown(number: float) -> str:
    """Two digits, or all of them before the point.

    >>> shown(15.625), shown(0.3233), shown(249.9), shown(1.04)
    ('16', '0.32', '250', '1.0')
    """
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}" if number >= 0.995 else f"{number:.2g}"


def compute(text: str) -> str:
    """The page with its results as the formulae give them; a result is an input of those below."""
    values: dict[str, float] = {}
    lines = []
    for line in text.splitlines():
        if found := _INPUT.match(line):
            values[found[1]] = float(found[2])
        elif found := _RESULT.match(line):
            values[found[2]] = float(eval(found[3], {"__builtins__": {}, "max": max, "min": min}, values))
            line = f"{found[1]} {shown(values[found[2]])} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(compute(page.read_text()))
