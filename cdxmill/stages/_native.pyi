from collections.abc import Callable, Iterator, Mapping

from cdxmill.capture import CommonLine, CrawlNotes, Outcome

sources: int

def read(
    archive: tuple[Mapping[bytes, bytes], bytes, Callable[[bytearray, int, int], bytes]],
    content: bytearray,
    offset: int,
    length: int,
    /,
) -> CommonLine | CrawlNotes | Outcome: ...
def frame_within(buffer: bytes, start: int, limit: int, /) -> int: ...
def odd_line(text: bytes | bytearray, start: int, end: int, fields: int, /) -> tuple[int, int]: ...
def lines_in_order(text: bytes, start: int, end: int, /) -> int: ...

class Merger:
    def __new__(cls, texts: list[tuple[Iterator[bytes], bytes | None, bytes | None]], /) -> Merger: ...
    def fill(self, text: bytearray, lines: int, /) -> int: ...
