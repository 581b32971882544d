"""Records that are being written -> what captures are made from, at their new offsets. Nothing is read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdxmill.capture import CommonLine, CrawlNotes, Damage, Outcome, Record
from cdxmill.formats.archives.header_shape import HeaderShapes
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.common_line import common_reader
from cdxmill.stages.records.record_errors import BlankContent, RecordError
from cdxmill.stages.records.take_record import take_stream, take_whole

Item = Record | CommonLine | CrawlNotes | Damage

if TYPE_CHECKING:
    from cdxmill.stages.records.pack_contents import Packed


def read_packed(
    packed: Iterable[Packed | Damage], filename: bytes, options: CaptureOptions
) -> Iterator[Item]:
    """The record of each content, as `read_records` would find it in the new archive. Damage passes through.

    Requires: each content is one record, or blank.
    """
    read_common, shapes = common_reader(filename, options), HeaderShapes()
    for item in packed:
        if isinstance(item, Damage):
            yield item
            continue
        content, offset, length = item
        found: Item | Outcome
        try:
            if content.data is None:
                found = take_stream(offset, content.pieces())._replace(length=length)
            else:
                data = content.data
                found = Outcome.NOT_COMMON if read_common is None else read_common(data, offset, length)
                if found is Outcome.NOT_COMMON:
                    found = take_whole(offset, length, data, shapes, options.lineless)
        except BlankContent:
            continue
        except RecordError as error:
            found = Damage(content.offset, error.reason, error.hint)
        if not isinstance(found, Outcome):
            yield found
