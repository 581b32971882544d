"""Sorted CDXJ lines of about 490 bytes, with the fields of Common Crawl, in gzip members that end anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import deflate

from bench.words import make_urls

BASE32 = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[byte % 32] for byte in range(256))
MEMBER = 1_000_000  # uncompressed bytes of a gzip member; most members end inside a line
SHARED_LINES = 100  # lines that every file has; a cluster has them once
FIRST_SECOND = 1_715_989_282
SECONDS = 12 * 86_400
CRAWL = "BENCH-2024-22"
LINE = (
    '%s %s {"url": "%s", "mime": "%s", "mime-detected": "%s", "status": "%s", "digest": "%s", '
    '"length": "%d", "offset": "%d", "filename": "%s"%s}\n'
)
ENDS = [
    ', "charset": "UTF-8", "languages": "eng"',
    ', "charset": "UTF-8", "languages": "eng"',
    ', "charset": "UTF-8", "languages": "deu,eng"',
    ', "charset": "UTF-8", "languages": "rus"',
    ', "charset": "ISO-8859-1", "languages": "fra"',
    ', "charset": "UTF-8", "languages": "spa,eng,por"',
    ', "charset": "UTF-8"',
    ', "charset": "UTF-8", "languages": "jpn", "truncated": "length"',
    "",
]
KINDS = [("text/html", "text/html")] * 8 + [
    ("text/html", "application/xhtml+xml"),
    ("unk", "application/pdf"),
]
STATUSES = ["200"] * 20 + ["404", "301"]


class CdxRecipe(NamedTuple):
    """The recipe of a file. Equal recipes give equal bytes."""

    seed: int
    lines: int
    one_member: bool = False


def make_timestamps(rng: Random, count: int) -> list[str]:
    days = [
        time.strftime("%Y%m%d%H", time.gmtime(FIRST_SECOND + 3600 * hour)) for hour in range(SECONDS // 3600)
    ]
    minutes = [f"{minute:02d}{second:02d}" for minute in range(60) for second in range(60)]
    hours = rng.choices(days, k=count)
    return [hour + minute for hour, minute in zip(hours, rng.choices(minutes, k=count), strict=True)]


def make_filenames(rng: Random) -> list[str]:
    """The names of 400 WARCs."""
    names = []
    for _ in range(400):
        segment = f"1715971{rng.getrandbits(18):06d}.{rng.getrandbits(6):02d}"
        name = f"BENCH-20240517233122-20240518023122-{rng.getrandbits(14):05d}.warc.gz"
        names.append(f"crawl-data/{CRAWL}/segments/{segment}/warc/{name}")
    return names


def make_lines(rng: Random, count: int) -> list[bytes]:
    urls, timestamps = make_urls(rng, count), make_timestamps(rng, count)
    digests = rng.getrandbits(8 * 32 * count).to_bytes(32 * count, "little").translate(BASE32).decode()
    filenames = rng.choices(make_filenames(rng), k=count)
    ends, kinds, statuses = (
        rng.choices(ENDS, k=count),
        rng.choices(KINDS, k=count),
        rng.choices(STATUSES, k=count),
    )
    lines = []
    for number, url in enumerate(urls):
        mime, detected = kinds[number]
        target = f', "redirect": "{url.text}/"' if statuses[number] == "301" else ""
        fields = (url.key, timestamps[number], url.text, mime, detected, statuses[number])
        place = (
            int(4000 / (rng.random() + 0.02)),
            int(rng.random() * 1.1e9),
            filenames[number],
            ends[number] + target,
        )
        lines.append((LINE % (*fields, digests[32 * number : 32 * number + 32], *place)).encode())
    return lines


def make_file(recipe: CdxRecipe) -> Iterator[bytes]:
    """The gzip members of one sorted file."""
    lines = make_lines(Random(4), min(SHARED_LINES, recipe.lines))
    lines += make_lines(Random(recipe.seed), recipe.lines - len(lines))
    lines.sort()
    data = b"".join(lines)
    step = len(data) if recipe.one_member else MEMBER
    for start in range(0, len(data), step):
        yield bytes(deflate.gzip_compress(data[start : start + step], 6))
