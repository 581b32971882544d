"""Blocks of a shard: the compiled way, the way by lists, and Python's own sort agree."""

from __future__ import annotations

import gzip
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.errors import StoppedError
from cdxmill.stages import native
from cdxmill.stages.lines.merge_lines import merge_blocks
from cdxmill.stages.lines.sort_lines import LineSorter, Slice, cut_runs
from cdxmill.stages.lines.sorted_input import SeekPoints, note_seek_points
from cdxmill.stages.window import Window
from tests.material.memory_files import MemoryFiles
from tests.material.sanitizers import run_sanitized

word = st.binary(min_size=1, max_size=3).filter(lambda line: b"\n" not in line)
line = word | st.sampled_from([b"", b" CDX N b", b" CDW", b" CDY", b"x" * 3000, b"\xff", b"\0", b"\r"])
sorted_lines = st.lists(line, max_size=15).map(sorted)
bounds = st.none() | line


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    """The text in pieces, some of them empty."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
        yield b""


def filled(merger: Any, lines: int) -> list[tuple[int, bytes]]:
    blocks, text = [], bytearray(b"what is there before")
    while count := merger.fill(text, lines):
        blocks.append((count, bytes(text)))
    assert merger.fill(text, lines) == len(text) == 0
    return blocks


def in_blocks(lines: Iterable[bytes], size: int) -> list[tuple[int, bytes]]:
    """The set of the captures among the lines, sorted by Python."""
    wanted = sorted({line for line in lines if line and not line.startswith(b" CDX")})
    parts = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    return [(len(part), b"".join(line + b"\n" for line in part)) for part in parts]


@given(
    st.lists(
        st.tuples(sorted_lines, bounds, bounds, st.integers(1, 9), st.sampled_from([b"\n", b""])), max_size=9
    ),
    st.integers(1, 20),
)
def test_texts_merge_however_they_come(
    texts: list[tuple[list[bytes], bytes | None, bytes | None, int, bytes]], size: int
) -> None:
    sources = [(pieces(b"\n".join(lines) + end, step), low, high) for lines, low, high, step, end in texts]
    wanted = [
        line
        for lines, low, high, *_ in texts
        for line in lines
        if (low is None or low <= line) and (high is None or line < high)
    ]
    assert native.Merger is not None
    assert filled(native.Merger(sources), size) == in_blocks(wanted, size)


@given(
    st.lists(sorted_lines, max_size=6),
    st.lists(st.lists(line, max_size=12), max_size=6),
    st.lists(word, max_size=3, unique=True).map(sorted),
    st.integers(1, 9),
)
def test_runs_and_sorted_files_lead_to_the_same_blocks_both_ways(
    inputs: list[list[bytes]], lists: list[list[bytes]], points: list[bytes], size: int
) -> None:
    files = MemoryFiles()
    parts = slices_of(files, inputs, lists, points)
    compiled = [list(map(frozen, merge_blocks(part, files.reader, size))) for part in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "Merger", None)
        assert [list(merge_blocks(part, files.reader, size)) for part in parts] == compiled
    lines = [line for lines in (*inputs, *lists) for line in lines]
    whole = b"".join(text for part in compiled for _, text in part)
    assert whole == b"".join(text for _, text in in_blocks(lines, 1))


def frozen(block: tuple[int, bytes | bytearray]) -> tuple[int, bytes]:
    return block[0], bytes(block[1])


def places_in(window: Window) -> SeekPoints | None:
    return note_seek_points(window, 1 << 20, lambda piece: None)


def slices_of(
    files: MemoryFiles, inputs: Sequence[list[bytes]], lists: Sequence[list[bytes]], points: list[bytes]
) -> list[list[Slice]]:
    """`inputs` as sorted files where they can be, `lists` spilled."""
    sorter = LineSorter(files.create, "run", 300)
    for number, lines in enumerate(inputs):
        name = f"/input-{number}.cdx.gz"
        files[name] = gzip.compress(b"".join(line + b"\n" for line in lines))
        if places := places_in(Window(files.reader(name))):
            sorter.adopt(name, places)
        else:
            sorter.add(list(lines))
    for lines in lists:
        sorter.add(list(lines))
    return cut_runs(sorter.finish(), points, files.reader)


@pytest.mark.parametrize(
    ("compiled", "text"), [(True, b"a\nc\nb\n"), (True, b"z\ny\na\n"), (False, b"z\ny\na\n")]
)
def test_a_file_that_is_not_sorted_any_more_stops_it(
    compiled: bool, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(native, "Merger", None)
    files = MemoryFiles()
    (part,) = slices_of(files, [[b"a", b"b", b"c"], [b"x"]], [], [])
    files["/input-0.cdx.gz"] = gzip.compress(text)
    with pytest.raises(StoppedError, match="inputs were changed while they were read; run it again"):
        list(merge_blocks(part, files.reader, 2))


def test_a_file_that_is_damaged_by_now_stops_it() -> None:
    files = MemoryFiles()
    (part,) = slices_of(files, [[b"a", b"b", b"c"]], [], [])
    files["/input-0.cdx.gz"] = files["/input-0.cdx.gz"][:-9]
    with pytest.raises(StoppedError, match=r"/input-0.cdx.gz: .*; run it again"):
        list(merge_blocks(part, files.reader, 2))


def test_what_is_no_text_is_refused_and_nothing_is_kept_of_it() -> None:
    assert native.Merger is not None
    wrong: list[Any] = [
        (),
        ([1],),
        ([(1, None, None)],),
        ([(iter([1]), None, None)],),
        ((),),
        ([(iter([]), 1, None)],),
    ]
    for arguments in wrong:
        with pytest.raises(TypeError):
            native.Merger(*arguments)
    text = pieces(b"a\nb\n", 1)
    gone = weakref.ref(text)
    merger = native.Merger([(text, None, None)])
    with pytest.raises(TypeError):
        merger.fill(b"", 1)  # type: ignore[arg-type]
    del text, merger
    assert gone() is None


def test_errors_of_a_source_are_raised() -> None:
    def broken() -> Iterator[bytes]:
        yield b"a\nb"
        raise KeyError("why")

    assert native.Merger is not None
    merger = native.Merger([(broken(), None, None), (iter([b"a\n"]), None, None)])
    with pytest.raises(KeyError, match="why"):
        merger.fill(bytearray(), 9)
    with pytest.raises(ValueError, match="failed"):  # and not 0, for it is not at its end
        merger.fill(bytearray(), 9)
    with pytest.raises(ZeroDivisionError):
        native.Merger([((b"" * (1 // 0) for _ in "a"), None, None)])


def test_a_block_that_a_source_cuts_is_not_read_beyond_its_end() -> None:
    block = bytearray()

    def cutting() -> Iterator[bytes]:
        yield b"a\nb\n"
        block.clear()
        yield b"c\n"

    assert native.Merger is not None
    with pytest.raises(ValueError, match="changed"):
        native.Merger([(cutting(), None, None)]).fill(block, 9)


_FUZZ = """
import random
from _native import Merger
from cdxmill.errors import StoppedError
random = random.Random(11)
for number in range(600):
    texts, lines = [], set()
    for _ in range(random.randrange(9)):
        some = sorted(random.randbytes(random.choice((0, 1, 2, 3, 700))).replace(b"\\n", b"") for _ in range(random.randrange(30)))
        lines.update(some)
        text, step = b"\\n".join(some) + b"\\n" * random.randrange(2), random.choice((1, 2, 5, 1000))
        texts.append((iter([text[at : at + step] for at in range(0, len(text), step)]), None, None))
    merger, block, whole = Merger(texts), bytearray(), b""
    while merger.fill(block, random.choice((1, 2, 100))):
        whole += block
    assert whole == b"".join(line + b"\\n" for line in sorted(lines) if line and line[:4] != b" CDX")
    unsorted = Merger([(iter([random.randbytes(50), random.randbytes(50)]), random.randbytes(1), random.randbytes(1))])
    try:
        unsorted.fill(block, 9)
    except StoppedError:
        pass
"""


def test_no_byte_is_touched_that_is_not_the_merger_s(tmp_path: Path) -> None:
    run_sanitized(_FUZZ, tmp_path)
