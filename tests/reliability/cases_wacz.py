"""WACZ files that are corrupt, or have what cannot be indexed."""

from __future__ import annotations

import zipfile

from ..material.wacz_files import DATA, make_wacz
from .cases import BAD, Case, Sources, flip, overwrite, row, swap

_LOCAL_NAME = 30


def _data(sources: Sources) -> bytes:
    return b"".join(sources.warc.members())


def _lost(data: bytes, sources: Sources) -> Case:
    names = sources.warc.names()
    return Case({"a.wacz": data}, names, frozenset(range(len(names))))


@row("wacz-record")
def wacz_record(sources: Sources) -> Case:
    members = sources.warc.members()
    data = b"".join(swap(members, flip(members[BAD], len(members[BAD]) // 2)))
    return Case({"a.wacz": make_wacz({DATA: data})}, sources.warc.names(), frozenset({BAD}))


@row("wacz-truncated")
def wacz_truncated(sources: Sources) -> Case:
    return _lost(make_wacz({DATA: _data(sources)})[:-30], sources)


@row("wacz-directory")
def wacz_directory(sources: Sources) -> Case:
    data = make_wacz({DATA: _data(sources)})
    return _lost(overwrite(data, data.rindex(b"PK\x01\x02"), b"XX"), sources)


@row("wacz-header")
def wacz_header(sources: Sources) -> Case:
    return _lost(overwrite(make_wacz({DATA: _data(sources)}), 0, b"XX"), sources)


@row("wacz-name")
def wacz_name(sources: Sources) -> Case:
    return _lost(overwrite(make_wacz({DATA: _data(sources)}), _LOCAL_NAME, b"X"), sources)


@row("wacz-size")
def wacz_size(sources: Sources) -> Case:
    data = make_wacz({DATA: _data(sources)})
    return _lost(overwrite(data, 18, (7).to_bytes(4, "little")), sources)


@row("wacz-overlap")
def wacz_overlap(sources: Sources) -> Case:
    content = _data(sources)
    data = make_wacz({DATA: content, "z.txt": b"x" * 50})
    larger = (len(content) + 9).to_bytes(4, "little") * 2
    return _lost(overwrite(overwrite(data, data.index(b"PK\x01\x02") + 20, larger), 18, larger), sources)


@row("wacz-compressed")
def wacz_compressed(sources: Sources) -> Case:
    return _lost(make_wacz({DATA: _data(sources)}, zipfile.ZIP_DEFLATED), sources)


@row("wacz-encrypted")
def wacz_encrypted(sources: Sources) -> Case:
    data = make_wacz({DATA: _data(sources)})
    return _lost(overwrite(overwrite(data, 6, b"\1"), data.rindex(b"PK\x01\x02") + 8, b"\1"), sources)


@row("wacz-twice")
def wacz_twice(sources: Sources) -> Case:
    data = make_wacz({DATA: _data(sources), "archive/data.warc.gx": _data(sources)})
    return _lost(data.replace(b"warc.gx", b"warc.gz"), sources)


@row("wacz-outside")
def wacz_outside(sources: Sources) -> Case:
    data = make_wacz({DATA: _data(sources), "archive/../../b.warc.gz": _data(sources)})
    return Case({"a.wacz": data}, sources.warc.names(), frozenset())


@row("wacz-others")
def wacz_others(sources: Sources) -> Case:
    files = {DATA: _data(sources), "archive/notes.txt": b"x", "archive/b.bin": b"x", "pages/pages.jsonl": b""}
    return Case({"a.wacz": make_wacz(files)}, sources.warc.names(), frozenset())


@row("wacz-nested")
def wacz_nested(sources: Sources) -> Case:
    files = {DATA: _data(sources), "b.wacz": make_wacz({DATA: _data(sources)})}
    return Case({"a.wacz": make_wacz(files)}, sources.warc.names(), frozenset())


@row("wacz-empty")
def wacz_empty(sources: Sources) -> Case:
    return _lost(make_wacz({"pages/pages.jsonl": b"{}\n"}), sources)
