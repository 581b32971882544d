"""Answers to questions that are asked often. They are not made again until their collection changes.

key      a digest of what the answer depends on, beside the state of the collection
text     STATE LF CONTENT-TYPE LF BODY
"""

from __future__ import annotations

from hashlib import blake2b

from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection
from cdxmill.stages.zipnum.kept_texts import KeptTexts

PART = 8
"""The part of the cache that answers take at most."""
_COUNTED = 1 << 11
"""Bytes of the cache for each question that is counted. To count one takes 140 bytes."""
_LEAST = 512
"""Bytes that an answer takes beside its text."""


class KeptAnswers:
    """At most an eighth of `most` bytes of answers. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._texts = KeptTexts(most // PART, most // _COUNTED, _LEAST)

    def get(self, key: bytes, collection: Collection) -> tuple[bytes, Response] | None:
        """The state of the collection and the answer to a question; None if it has to be made. This is a hit."""
        text = self._texts.get(key)
        if text is None:
            return None
        state, kind, body = text.split(b"\n", 2)
        if state != collection.state():
            return None
        return state, Response(200, kind.decode(), (body,))

    def add(self, key: bytes, state: bytes, answer: Response, body: bytes) -> None:
        """Keep an answer to a question that was asked before, if it is short."""
        if answer.status == 200 and not answer.headers and self._texts.is_wanted(key):
            self._texts.add(key, b"\n".join((state, answer.kind.encode(), body)))


def key_of(path: bytes, query: bytes) -> bytes:
    """The key of a question."""
    return blake2b(b"%b?%b" % (path, query), digest_size=16).digest()
