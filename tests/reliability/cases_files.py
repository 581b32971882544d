"""Files that are not archives or cannot be read, and one corrupt file among others."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib

from .cases import Case, Sources, flip, one_file, row

CDX = (
    b" CDX N b a m s k r M S V g\n"
    + b"org,a)/ 20080430204825 http://a.org/ text/html 200 - - - 99 0 a.warc.gz\n" * 9
)
LZ4_FRAME = b"\x04\x22\x4d\x18\x64\x40\xa7" + bytes(40)


def _foreign(name: str, data: bytes) -> Case:
    return Case({name: data}, [], frozenset())


@row("cdx")
def cdx(sources: Sources) -> Case:
    return _foreign("a.warc", CDX)


@row("cdx-gz")
def cdx_gz(sources: Sources) -> Case:
    return _foreign("a.warc.gz", gzip.compress(CDX))


@row("png")
def png(sources: Sources) -> Case:
    chunk = b"IHDR" + bytes((0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n\0\0\0\r" + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    return _foreign("a.warc.gz", data)


@row("text")
def text(sources: Sources) -> Case:
    return _foreign("a.arc", b"To whom it may concern:\nthe WARC/1.0 files are on the other disk.\n")


@row("bzip2")
def bzip2(sources: Sources) -> Case:
    return _foreign("a.warc.bz2", bz2.compress(b"".join(sources.warc.parts())))


@row("xz")
def xz(sources: Sources) -> Case:
    return _foreign("a.warc.xz", lzma.compress(b"".join(sources.warc.parts())))


@row("lz4")
def lz4(sources: Sources) -> Case:
    return _foreign("a.warc.lz4", LZ4_FRAME)


@row("zip")
def zipped(sources: Sources) -> Case:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.warc.gz", b"".join(sources.warc.members()))
    return _foreign("a.zip", file.getvalue())


@row("empty-file")
def empty_file(sources: Sources) -> Case:
    return _foreign("a.warc.gz", b"")


@row("folder-without-archives")
def directory_without_archives(sources: Sources) -> Case:
    return Case({"notes/readme.txt": b"nothing here"}, [], frozenset(), ("notes",))


@row("absent")
def absent(sources: Sources) -> Case:
    case = one_file("a.warc.gz", sources.warc.members(), sources.warc)
    return case._replace(inputs=("a.warc.gz", "b.warc.gz"))


@row("folder-in-manifest")
def directory_in_manifest(sources: Sources) -> Case:
    case = one_file("a.warc.gz", sources.warc.members(), sources.warc)
    files = {**case.files, "list": b"a.warc.gz\nfolder\n", "folder/readme.txt": b""}
    return case._replace(files=files, inputs=("--manifest", "list"))


@row("path-through-file")
def path_through_file(sources: Sources) -> Case:
    case = one_file("a.warc.gz", sources.warc.members(), sources.warc)
    return case._replace(inputs=("a.warc.gz", "a.warc.gz/b.warc.gz"))


@row("no-permission")
def no_permission(sources: Sources) -> Case:
    case = one_file("a.warc.gz", sources.warc.members(), sources.warc, range(6))
    return case._replace(is_forbidden=True)


@row("one-bad-among-many")
def one_bad_among_many(sources: Sources) -> Case:
    members = sources.warc.members()
    files = {f"{number}.warc.gz": member for number, member in enumerate(members)}
    return Case({**files, "3.warc.gz": flip(members[3], -8)}, sources.warc.names(), frozenset((3,)))
