"""Damaged CDX files, as `zipnum` and `sample` read them: a file is reported, or its lines are those that it had.

usage: python tests/reliability/cdx_mutants.py [--seed N] [--count N]

Exit status 1 and a line for each finding:

WRONG   a line that the file did not have, where a checksum or the form of the lines shows it
LOST    lines are missing, and nothing was reported
EMPTY   a file of 0 bytes was read as a file without lines
CRASH   another exception than InputError

Not findings, but counted: whole gzip members at the end are missing; a changed line of a plain file still has
the form of a CDX line.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import read_pieces

LINES, MEMBER = 300, 50
CDXJ = b'com,a)/%06d 20200101000000 {"url": "http://a.com/%d", "digest": "%032x", "offset": "%d"}'
CDX11 = b"com,a)/%06d 20200101000000 http://a.com/%d text/html 200 %032x - - 17 %d a.warc.gz"


class Kind(NamedTuple):
    """A sound file: its bytes and its lines. `ends` are the offsets at which gzip members end."""

    data: bytes
    lines: set[bytes]
    ends: list[int]


def sound_files(rng: random.Random) -> dict[str, Kind]:
    """The files that are damaged, by name."""
    kinds = {}
    for form, ending in ((CDXJ, "cdxj"), (CDX11, "cdx")):
        lines = [form % (n, n, rng.getrandbits(128), n) for n in range(LINES)]
        text = b"".join(line + b"\n" for line in lines)
        parts = [b"".join(line + b"\n" for line in lines[at : at + MEMBER]) for at in range(0, LINES, MEMBER)]
        members = [gzip.compress(part, mtime=0) for part in parts]
        ends = [sum(map(len, members[:number])) for number in range(len(members) + 1)]
        kinds[f"one.{ending}.gz"] = Kind(gzip.compress(text, mtime=0), set(lines), [])
        kinds[f"many.{ending}.gz"] = Kind(b"".join(members), set(lines), ends)
        kinds[f"plain.{ending}"] = Kind(text, set(lines), [])
    return kinds


def damaged(data: bytes, at: int, rng: random.Random) -> tuple[str, bytes]:
    """The name of a damage, and the damaged bytes."""
    size = rng.choice((1, 2, 10, 100, 512, 3000))
    kind = rng.choice(("cut", "flip", "zero", "out", "again", "in", "nuls", "tail"))
    return kind, {
        "cut": data[:at],
        "flip": data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :],
        "zero": data[:at] + bytes(len(data[at : at + size])) + data[at + size :],
        "out": data[:at] + data[at + size :],
        "again": data[: at + size] + data[at:],
        "in": data[:at] + rng.randbytes(size) + data[at:],
        "nuls": data[:at] + bytes(len(data) - at),
        "tail": data + rng.choice((b"\n", b"\0" * size, rng.randbytes(size), b"\x1f\x8b\x08")),
    }[kind]


def verdict(name: str, kind: str, sound: Kind, path: Path) -> str:
    """What the file at `path`, which has this damage, came to."""
    try:
        found = {line for line in b"".join(read_pieces(str(path))).split(b"\n") if line}
    except InputError:
        return "reported"
    except Exception as error:
        return f"CRASH {error!r}"
    if not path.stat().st_size:
        return "EMPTY"
    strange, missing = found - sound.lines, sound.lines - found
    is_plain = name.startswith("plain")
    if strange:
        has_form = is_plain and kind not in ("zero", "nuls") and (kind != "cut" or name == "plain.cdx")
        return "plain, a changed line" if has_form else f"WRONG {min(strange)[:80]!r}"
    if missing and not (is_plain or (len(missing) % MEMBER == 0 and sound.ends)):
        return f"LOST {len(missing)} lines"
    return "members or plain lines missing" if missing else "all lines"


def run(seed: int, count: int, work: Path) -> Counter[str]:
    """Damage `count` files; findings are printed. The number of each verdict."""
    rng = random.Random(seed)
    kinds = sound_files(rng)
    seen = Counter[str]()
    for number in range(count):
        name = rng.choice(sorted(kinds))
        sound = kinds[name]
        at = rng.choice(sound.ends) if sound.ends and rng.random() < 0.2 else rng.randrange(len(sound.data))
        at = max(0, min(len(sound.data) - 1, at + rng.choice((0, 0, 0, 1, -1, 2))))
        kind, data = damaged(sound.data, at, rng)
        path = work / name
        path.write_bytes(data)
        found = verdict(name, kind, sound, path)
        seen[found.split(" ")[0] if found[:3].isupper() else found] += 1
        if found[:3].isupper():
            print(f"#{number} {name} {kind}@{at}: {found}")
    return seen


def findings(seen: Counter[str]) -> int:
    """The number of verdicts that are findings."""
    return sum(number for verdict, number in seen.items() if verdict.isupper())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdx-mutants-") as work:
        seen = run(options.seed, options.count, Path(work))
    print(dict(seen))
    return 1 if findings(seen) else 0


if __name__ == "__main__":
    sys.exit(main())
