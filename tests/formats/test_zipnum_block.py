"""Blocks of a shard, opened by zlib and gzip."""

from __future__ import annotations

import gzip
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import LEVELS, Compressor

compressors = st.builds(Compressor, st.just("libdeflate"), st.integers(1, 12)) | st.builds(
    Compressor, st.just("zlib"), st.integers(1, 9)
)


@given(compressors, st.binary(max_size=5000))
def test_a_block_is_one_gzip_member_of_exactly_the_data(compressor: Compressor, data: bytes) -> None:
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    block = compressor.compress(data)
    assert inflater.decompress(block) == data
    assert inflater.eof
    assert inflater.unused_data == b""


@given(compressors, st.binary(max_size=5000))
def test_equal_data_give_equal_bytes_without_name_and_time(compressor: Compressor, data: bytes) -> None:
    block = compressor.compress(data)
    assert block == compressor.compress(data)
    assert block[3] == 0
    assert block[4:8] == bytes(4)


@pytest.mark.parametrize("library", LEVELS)
def test_blocks_one_behind_the_other_are_one_gzip_file(library: str) -> None:
    pack = Compressor(library).compress
    assert gzip.decompress(pack(b"a\n") + pack(b"") + pack(b"b\n" * 10_000)) == b"a\n" + b"b\n" * 10_000


@pytest.mark.parametrize("library", LEVELS)
def test_a_higher_level_packs_better(library: str) -> None:
    data = b"".join(b"com,example)/%d 2020 {}\n" % (number * number) for number in range(3000))
    assert len(Compressor(library, 9).compress(data)) < len(Compressor(library, 1).compress(data))


def test_the_version_is_that_of_the_library() -> None:
    import deflate

    assert Compressor("zlib").version() == zlib.ZLIB_RUNTIME_VERSION
    assert deflate.__version__ in Compressor("libdeflate").version()


def test_a_library_that_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deflate", None)
    with pytest.raises(ValueError, match="libdeflate is not installed"):
        Compressor("libdeflate").version()


def test_each_library_makes_its_own_bytes() -> None:
    import deflate

    data = b"com,example)/ 2020 {}\n" * 300

    assert Compressor("libdeflate", 5).compress(data) == bytes(deflate.gzip_compress(data, 5))
    assert zlib.decompress(Compressor("zlib", 5).compress(data), 31) == data
    made = {library: Compressor(library, 5).compress(data) for library in ("libdeflate", "zlib", "zlib-ng")}
    assert len(set(made.values())) == 3
    for library in made:
        for block in made.values():
            assert Compressor(library, 5).decompress(block) == data


def test_another_library_is_not_asked_for_what_libdeflate_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Compressor("zlib", 5).compress(b"a")
    monkeypatch.setitem(sys.modules, "deflate", None)
    assert Compressor("zlib", 5).decompress(block) == b"a"
    with pytest.raises(ImportError):
        Compressor("libdeflate", 5).decompress(block)
    with pytest.raises(ImportError):
        Compressor("libdeflate", 5).compress(b"a")
