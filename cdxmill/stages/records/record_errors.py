"""What is wrong with a record's content, and the hints that tell the user what to do."""

from __future__ import annotations

NOT_AN_ARCHIVE = "fetch it again if it is an archive, otherwise remove it from the input"
FETCH_AGAIN = "fetch the file again"
FETCH_IF_MISSING = "fetch the file again if a record is missing"
TO_WARC = "convert the file to WARC and index that"
REPAIR = "repair the record or fetch the file again"
RECOMPRESS_MEMBERS = (
    "write it with one record per member (cdxmill recompress --to gz -o DIR FILE) and index that"
)
WITH_DICTIONARY = "fetch the file again; its dictionary has to be in its first frame"
LARGE_WINDOW = "write it with smaller windows (cdxmill recompress --max-window %d -o DIR FILE) and index that"
RECOMPRESS_FRAMES = "write it with one record per frame (cdxmill recompress -o DIR FILE) and index that"


class RecordError(ValueError):
    """The content is not exactly one record; `reason` and `hint` are for the user.

    `unfinished` means that the header may be complete if more content is read.
    """

    def __init__(self, reason: str, hint: str = REPAIR, unfinished: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.unfinished = reason, hint, unfinished


class NotARecord(RecordError):
    """The content does not start with a WARC or ARC record header."""


class BrokenHeader(RecordError):
    """A header breaks off, and the header of another record follows at position `next` of the content."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.next = position


class TooLong(RecordError):
    """Content-Length is larger than the block."""


class SeveralRecords(RecordError):
    """One compressed unit contains more than one record."""


class BlankContent(RecordError):
    """The content consists of line ends. It is no record, and nothing is lost."""
