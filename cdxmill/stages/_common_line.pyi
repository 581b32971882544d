from collections.abc import Callable, Mapping
from typing import Literal

from cdxmill.capture import CommonLine, CrawlNotes

sources: int

def read(
    archive: tuple[Mapping[bytes, bytes], bytes, Callable[[bytearray, int, int], bytes]],
    content: bytearray,
    offset: int,
    length: int,
    /,
) -> CommonLine | CrawlNotes | Literal[False] | None: ...
