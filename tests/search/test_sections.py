"""Lookups in blocks with sections: the lines of a plain filter, few bytes, and no wrong answer from changed bytes."""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

from cdxmill.cluster.reader import open_cluster
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError
from cdxmill.formats.clusters.compressor import BLOCKS, Compressor
from cdxmill.formats.clusters.manifest import format_manifest, parse_manifest
from cdxmill.formats.clusters.sections import format_header, header_bytes, parse_sections
from cdxmill.formats.clusters.zipnum import BlockRef, parse_index_line
from cdxmill.options.queries import Query
from cdxmill.running.failures import Failures
from cdxmill.search.lookup import lookup, lookup_many, open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery
from cdxmill.stages.zipnum import block_pieces, sectioned_block

from ..checks.checking import found as verified
from ..material.cdx_files import write_plain
from ..storage.range_server import RangeServer, serving


def make_lines(count: int) -> list[bytes]:
    """Lines with digests, which hardly compress; every tenth URL has two captures."""
    lines = []
    for number in range(count):
        page, day = (number - 1, 2) if number % 10 == 1 else (number, 1)
        digest = hashlib.sha256(b"%d" % number).hexdigest()
        lines.append(
            b'com,example)/page/%06d 2020010%d000000 {"url": "http://example.com/page/%06d", "digest": "%b"}'
            % (page, day, page, digest.encode() * 2)
        )
    return sorted(lines)


LINES = make_lines(7000)


def page_of(line: bytes) -> int:
    return int(line[18:24])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster as commands make it: blocks of 3000 lines with 6 sections."""
    directory = tmp_path_factory.mktemp("sections")
    path = write_plain(directory / "a.cdxj", LINES)
    build_cluster([str(path)], directory / "C", ZipnumOptions(shards=1, quiet=True), Failures())
    return directory / "C"


def blocks_of(cluster: Path) -> list[BlockRef]:
    return [parse_index_line(line) for line in (cluster / "cluster.idx").read_bytes().splitlines()]


def url_of(page: int) -> str:
    return f"http://example.com/page/{page:06d}"


def captures(page: int) -> list[bytes]:
    return [line for line in LINES if page_of(line) == page]


@pytest.fixture
def server(made: Path) -> Iterator[RangeServer]:
    with serving() as server:
        for path in made.iterdir():
            if path.is_file():
                server.add(f"/c/{path.name}", path.read_bytes())
        yield server


def read_sizes(server: RangeServer) -> list[int]:
    """The sizes of the ranges that were asked of shards, since last time."""
    wanted = [str(ranges) for _, path, ranges in server.seen if path.endswith(".gz")]
    server.seen.clear()
    return [
        int(last) - int(first) + 1 for first, last in (one.rpartition("=")[2].split("-") for one in wanted)
    ]


def test_a_cluster_has_sections_unless_an_option_says_otherwise(made: Path) -> None:
    assert (
        parse_manifest((made / "cluster.json").read_bytes()).compressor.section_lines == BLOCKS.section_lines
    )
    data = (made / "cdx-00000.gz").read_bytes()
    counts = []
    for block in blocks_of(made):
        sections = parse_sections(data[block.offset : block.offset + block.length], block.length)
        counts.append(0 if sections is None else len(sections.keys))
    assert counts == [6, 6, 2]


def test_every_url_has_its_lines(made: Path) -> None:
    pages = random.Random(1).sample(range(7100), 300)
    with open_searched(made) as cluster:
        prepared = PreparedQuery(Query())
        for page in pages:
            lists = prepared.answer(cluster, prepared.keys(url_of(page)))
            assert [line for lines in lists for line in lines] == captures(page)
    answers = {
        answer.url: [line for lines in answer.lists for line in lines]
        for answer in lookup_many(made, map(url_of, pages))
    }
    assert answers == {url_of(page): captures(page) for page in pages}


def test_ranges_have_their_lines(made: Path) -> None:
    source = random.Random(2)
    with open_cluster(made) as reader:
        for _ in range(60):
            first, last = sorted(source.sample(range(7000), 2))
            low, high = LINES[first], LINES[last]
            texts = OpenCluster.of(reader)
            prepared = PreparedQuery(Query())
            keys = prepared.keys("example.com/*")._replace(low=low, high=high)
            assert [line for lines in prepared.answer(texts, keys) for line in lines] == LINES[first:last]
            assert prepared.count(texts, keys) == last - first


def test_a_lookup_over_http_reads_a_section(server: RangeServer, made: Path) -> None:
    block = min(block.length for block in blocks_of(made)[:2])
    for page in (123, 3456, 6500):
        server.seen.clear()
        assert list(lookup(f"{server.url}/c", url_of(page))) == captures(page)
        sizes = read_sizes(server)
        assert len(sizes) == 2
        assert sum(sizes) < block / 4


def test_neighboring_sections_are_one_read(server: RangeServer) -> None:
    found = list(lookup(f"{server.url}/c", "example.com/page/001*"))
    assert found == [line for line in LINES if 1000 <= page_of(line) < 2000]
    assert len(read_sizes(server)) == 2


def test_a_block_without_sections_is_read_in_two_requests_and_the_next_ones_in_one(
    server: RangeServer, made: Path, tmp_path: Path
) -> None:
    path = write_plain(tmp_path / "a.cdxj", LINES)
    options = ZipnumOptions(shards=1, compressor=Compressor(), quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Failures())
    for name in ("cluster.idx", "cdx-00000.gz"):
        server.add(f"/plain/{name}", (tmp_path / "C" / name).read_bytes())
    prepared = PreparedQuery(Query())
    with open_searched(f"{server.url}/plain") as cluster:
        for page, reads in ((123, 2), (3456, 1), (6500, 1)):
            lists = prepared.answer(cluster, prepared.keys(url_of(page)))
            assert [line for lines in lists for line in lines] == captures(page)
            assert len(read_sizes(server)) == reads


def test_no_changed_byte_of_a_block_gives_a_wrong_answer(made: Path, tmp_path: Path) -> None:
    for path in made.glob("c*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    shard, data = tmp_path / "cdx-00000.gz", (made / "cdx-00000.gz").read_bytes()
    sections = parse_sections(data, blocks_of(made)[0].length)
    assert sections is not None
    places = [
        *range(header_bytes(data)),
        *random.Random(3).sample(range(sections.starts[1], sections.starts[2]), 60),
    ]
    page = 700  # in the second section
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        shard.write_bytes(changed)
        try:
            assert list(lookup(tmp_path, url_of(page))) == captures(page), place
            assert place < sections.starts[0]
        except InputError as error:
            assert "cdx-00000.gz@0: the block" in str(error)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda table: table.replace(b"com,example)/page/0005", b"com,example)/page/0004"),
            "keys of its sections",
        ),
        (lambda table: table[:2] + table[10:18] + table[2:10] + table[18:], "CRC32 of its section 1"),
    ],
)
def test_verify_finds_a_wrong_table_with_a_valid_checksum(
    made: Path, tmp_path: Path, change: Callable[[bytes], bytes], reason: str
) -> None:
    data = (made / "cdx-00000.gz").read_bytes()
    end = header_bytes(data)
    table = change(data[16 : end - 4])
    assert len(table) == end - 20
    assert table != data[16 : end - 4]
    changed = data[:16] + table + crc32(table).to_bytes(4, "little") + data[end:]
    assert any(reason in line for line in verified(with_shard(made, tmp_path, changed)))


def with_shard(made: Path, directory: Path, shard: bytes) -> Path:
    """A copy of the cluster with another shard, of the same lines; index and manifest are those of this shard."""
    for path in made.glob("*"):
        if path.is_file():
            (directory / path.name).write_bytes(path.read_bytes())
    (directory / "cdx-00000.gz").write_bytes(shard)
    manifest = parse_manifest((made / "cluster.json").read_bytes())
    entry = manifest.shards[0]._replace(bytes=len(shard), sha256=hashlib.sha256(shard).hexdigest())
    (directory / "cluster.json").write_bytes(format_manifest(manifest._replace(shards=(entry,))))
    (directory / "cluster.loc").write_bytes(b"cdx-00000.gz\tcdx-00000.gz\n")
    return directory


def test_verify_finds_blocks_without_the_sections_of_the_manifest(made: Path, tmp_path: Path) -> None:
    path = write_plain(tmp_path / "a.cdxj", LINES)
    options = ZipnumOptions(shards=1, compressor=BLOCKS._replace(section_lines=0), quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Failures())
    manifest = parse_manifest((tmp_path / "C/cluster.json").read_bytes())
    claimed = manifest._replace(compressor=manifest.compressor._replace(section_lines=500))
    assert verified(tmp_path / "C") == []
    (tmp_path / "C/cluster.json").write_bytes(format_manifest(claimed))
    found = verified(tmp_path / "C")
    assert [line.partition(": ")[2].partition(";")[0] for line in found] == [
        "block 1: has 1 section, expected 6",
        "block 2: has 1 section, expected 6",
        "block 3: has 1 section, expected 2",
    ]


def hostile_block(sections: list[bytes], keys: list[bytes], text: bytes) -> bytes:
    """A block with any sections, whose checksums are valid."""
    trailer = struct.pack("<II", crc32(text), len(text))
    return format_header(sections, keys, list(map(crc32, sections))) + b"".join(sections) + trailer


def packed(text: bytes, mode: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(text) + packer.flush(mode)


FULL, END = zlib.Z_FULL_FLUSH, zlib.Z_FINISH
LINE, NEXT = b"com,a)/ 1 {}\n", b"com,b)/ 1 {}\n"
KEYS = [b"com,a)/ 1", b"com,b"]


@pytest.mark.parametrize(
    ("sections", "keys"),
    [
        ([packed(LINE, FULL), b"", packed(NEXT, END)], [b"com,a)/ 1", b"com,aa", b"com,b"]),
        ([packed(LINE, END), packed(NEXT, END)], KEYS),
        ([packed(LINE, FULL), packed(NEXT, FULL)], KEYS),
        ([packed(LINE, FULL)[:-2], packed(NEXT, END)], KEYS),
        ([packed(LINE, FULL), packed(NEXT, END) + b"more"], KEYS),
        ([packed(LINE, FULL), packed(b"com,c)/ 1 {}\n", END)], KEYS),
        ([packed(LINE, FULL), packed(NEXT, END)], [b"com,a)/ 1", b"com,a"]),
        ([packed(LINE + NEXT, FULL), packed(LINE, END)], KEYS),
        ([packed(LINE[:-1], FULL), packed(b"\n" + NEXT, END)], KEYS),
        ([packed(LINE, FULL), b"\xff\xff"], KEYS),
    ],
)
def test_verify_refuses_hostile_sections_and_lookups_give_no_foreign_line(
    sections: list[bytes], keys: list[bytes], tmp_path: Path
) -> None:
    block = hostile_block(sections, keys, LINE + NEXT)
    (tmp_path / "cdx-00000.gz").write_bytes(block)
    (tmp_path / "cluster.idx").write_bytes(b"com,a)/ 1\tcdx-00000.gz\t0\t%d\t1\n" % len(block))
    assert verified(tmp_path) != []
    for url, line in (("http://a.com/", LINE), ("http://b.com/", NEXT)):
        try:
            assert b"".join(found + b"\n" for found in lookup(tmp_path, url)) in (line, b"")
        except InputError as error:
            assert "cdx-00000.gz@0: the block" in str(error)


def test_a_bomb_in_a_section_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (block_pieces, sectioned_block):
        monkeypatch.setattr(module, "MAX_BLOCK", 1 << 23)
    bomb = packed(b"com,a)/ 1 {}\n" + b" " * (1 << 24), FULL)
    block = hostile_block([bomb, packed(NEXT, END)], KEYS, NEXT)
    (tmp_path / "cdx-00000.gz").write_bytes(block)
    (tmp_path / "cluster.idx").write_bytes(b"com,a)/ 1\tcdx-00000.gz\t0\t%d\t1\n" % len(block))
    with pytest.raises(InputError, match="it has more than"):
        list(lookup(tmp_path, "http://a.com/"))
    assert any("it has more than" in line for line in verified(tmp_path))
