"""The memory of the compiled part: all of it is freed, and it may end anywhere."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.stages.native_calls import USUAL, WRONG, compiled, entry, usual

WORDS = b" ".join(b"word%d" % number for number in range(3_000))
TAGS = b"<x%b>" % WORDS.replace(b" ", b"><x")


def test_a_merger_in_a_cycle_is_freed() -> None:
    class Pieces:
        merger: object = None

        def __iter__(self) -> Iterator[bytes]:
            return self

        def __next__(self) -> bytes:
            return b"a\n"

    pieces = Pieces()
    gone = weakref.ref(pieces)
    pieces.merger = compiled.Merger([(pieces, None, None)])
    del pieces
    gc.collect()
    assert gone() is None


def fill_all() -> None:
    """Make one of each type, with so much in it that all of its memory grows a few times, and drop it."""
    tally, other, sums = compiled.Tally(), compiled.Tally(), compiled.CaptureSums(True)
    tally.add_words(WORDS)
    other.add_tags(TAGS)
    tally.absorb(other)
    lines = b"".join(
        b'a%d)/ 2020 {"mime": "m%d", "digest": "%d", "length": "9"}\n' % ((number,) * 3)
        for number in range(3_000)
    )
    sums.take(bytearray(lines), 0, 0, [])
    sums.absorb("urls", sums.pack("urls"))
    merged = bytearray()
    merger = compiled.Merger([(iter([b"a%d\n" % part, b"b%d\n" % part]), None, None) for part in range(40)])
    while merger.fill(merged, 10):
        merged.clear()
    compiled.outline(b"<a href=x>" * 3_000, 1 << 20, str)
    compiled.capture_items(lines.splitlines()[:50], 0, {}, [], [])


def test_all_memory_is_freed() -> None:
    """Seven rounds leave no more than one."""
    calls = [(name, tuple(usual(name))) for name in USUAL] + [
        (name, arguments) for name, arguments, _ in WRONG
    ]
    tracemalloc.start()
    try:
        left = []
        for rounds in (1, 7):
            for number in range(rounds):
                fill_all()
                for name, arguments in calls * (number < 2):
                    with suppress(TypeError, ValueError, OverflowError):
                        entry(name)(*arguments)
            gc.collect()
            left.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert left[1] - left[0] < 20_000


SHORT_OF_MEMORY = """
import pickle, sys, _testcapi
from cdxmill.stages import _native
made = {"Tally": _native.Tally, "Merger": lambda: _native.Merger([]), "CaptureSums": lambda: _native.CaptureSums(True)}
failures = 0
for name, given in map(pickle.loads, map(bytes.fromhex, sys.stdin)):
    owner, _, method = name.partition(".")
    for number in range(60):
        call = getattr(made[owner](), method) if method else getattr(_native, name)
        arguments = [_native.Tally() if value == "Tally" else value for value in pickle.loads(pickle.dumps(given))]
        taken = [[] for _ in range(100)]  # Python keeps some that were freed, for the next ones
        _testcapi.set_nomemory(number, number + 1)
        try:
            try:
                call(*arguments)
            finally:
                _testcapi.remove_mem_hooks()
        except MemoryError:
            failures += 1
        del taken
assert failures > 150, failures
"""


def test_memory_that_ends_is_an_error_wherever_it_ends() -> None:
    """Each of the first 60 allocations of a call fails once. Nothing crashes, and no other error appears."""
    pytest.importorskip("_testcapi")
    large = {
        "Tally.add_words": (WORDS,),
        "Tally.add_tags": (TAGS,),
        "outline": (b"<title>a &amp; b</title><base href=x>" + b"<a href='y&amp;z'>" * 3_000, 0, str),
    }
    given = "".join(pickle.dumps(call).hex() + "\n" for call in (*USUAL.items(), *large.items()))
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_types_are_freed_with_their_module() -> None:
    show = (
        "import gc, importlib.util, sys, weakref; from cdxmill.stages import _native\n"
        "spec = importlib.util.spec_from_file_location('_native', _native.__file__)\n"
        "one = importlib.util.module_from_spec(spec); spec.loader.exec_module(one)\n"
        "assert one.Tally is not _native.Tally and one.Merger([]).fill(bytearray(), 1) == 0\n"
        "gone = [weakref.ref(kind) for kind in (one.Tally, one.Merger, one.CaptureSums)]; tally = one.Tally()\n"
        "del one; gc.collect(); assert gone[0]() is not None\n"
        "del tally; gc.collect(); print(*{kind() for kind in gone})"
    )
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


def test_the_module_can_be_loaded_many_times() -> None:
    """As by interpreters in one process: its tables are made once, and found again. What it made or held goes with it."""
    show = (
        "import gc, importlib.util, sys; from collections import Counter; from cdxmill.stages import _native\n"
        "from cdxmill.capture import CommonLine, CrawlNotes, Outcome; from cdxmill.errors import StoppedError\n"
        "held = CommonLine, CrawlNotes, Outcome, Outcome.NO_LINE, Outcome.NOT_COMMON, StoppedError\n"
        "before = [sys.getrefcount(one) for one in held]\n"
        "spec = importlib.util.spec_from_file_location('_native', _native.__file__)\n"
        "for _ in range(20):\n"
        "    one = importlib.util.module_from_spec(spec); spec.loader.exec_module(one)\n"
        "assert one.parsed_size(b'<table>' * 20_000) < 140_000\n"
        "del one; gc.collect()\n"
        "assert [sys.getrefcount(one) for one in held] == before\n"
        "kinds = Counter(one.__name__ for one in gc.get_objects() if isinstance(one, type))\n"
        "print(*(kinds[name] for name in ('Tally', 'Merger', 'CaptureSums')))"
    )
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n{show}"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=True)
    assert done.stdout == "1 1 1\n"
