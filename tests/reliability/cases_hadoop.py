"""CDX files that are corrupt, as the mappers of a job on Hadoop read them: one for each row `hadoop-...` of docs/reliability.md."""

from __future__ import annotations

import gzip
import random

_GOOD = b"a 2020 {}\nb 2020 {}\n"
_RANDOM = gzip.compress(random.Random(1).randbytes(50_000).hex().encode())

CASES = {
    "hadoop-cut-line": _GOOD + b"b 2020 {",
    "hadoop-mixed": _GOOD + b"a 2020 u m s\n",
    "hadoop-nul": bytes(5000),
    "hadoop-html": b"<html>\n",
    "hadoop-empty": b"",
    "hadoop-cut-gzip": gzip.compress(_GOOD)[:-4],
    "hadoop-cut-second-member": gzip.compress(_GOOD) + gzip.compress(_GOOD)[:-9],
    "hadoop-corrupt-gzip": _RANDOM[:30_000] + b"corrupt" + _RANDOM[30_007:],
    "hadoop-not-gzip": gzip.compress(_GOOD) + b"not gzip",
}
