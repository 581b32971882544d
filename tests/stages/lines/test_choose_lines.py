"""Revisits and their originals."""

from __future__ import annotations

import json

from cdxmill.stages.lines.choose_lines import resolve_revisits


def line(timestamp: int, mime: str, digest: str = "A", filename: str = "a.warc.gz") -> bytes:
    fields = {"url": "http://a.com/", "mime": mime, "status": "200", "digest": digest, "length": "1"}
    return f"com,a)/ {timestamp} {json.dumps({**fields, 'offset': str(timestamp), 'filename': filename})}".encode()


def originals(*lines: bytes) -> list[str]:
    """The offset of the original of each line."""

    def invalid(given: bytes, error: Exception) -> None:
        raise AssertionError(given) from error

    found = [one for lists in resolve_revisits(iter([list(lines)]), invalid) for one in lists]
    return [json.loads(one.split(b" ", 2)[2])["orig.offset"] for one in found]


def test_a_revisit_is_the_original_of_none() -> None:
    """Not of a capture before it, and not of other revisits: it has no content."""
    revisit = "warc/revisit"
    assert originals(line(1, revisit), line(2, revisit)) == ["-", "-"]
    assert originals(line(1, "-", filename="-"), line(2, revisit)) == ["-", "-"]
    assert originals(line(1, revisit), line(2, "text/html"), line(3, revisit)) == ["-", "-", "2"]
    assert originals(line(1, "text/html"), line(2, "text/html"), line(3, revisit)) == ["-", "-", "1"]
    assert originals(line(1, "text/html", "B"), line(2, revisit)) == ["-", "-"]
    assert originals(line(1, "text/html", ""), line(2, revisit, "")) == ["-", "-"]
