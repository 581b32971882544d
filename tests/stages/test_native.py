"""The compiled part: it is used only if it was compiled from the current sources, and it takes only what it can use."""

from __future__ import annotations

import gc
import os
import pickle
import re
import shutil
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cdxmill.stages import native
from tests.material.sanitizers import SOURCES

SHOW = "from cdxmill.stages import native; print(native.read, native.Merger, native.odd_line, native.lines_in_order, native.frame_within)"
STALE = f"import cdxmill.stages._native as compiled; compiled.sources += 1; {SHOW}"
ROOT = SOURCES.parents[1]
GONE = f"import sys; sys.modules['cdxmill.stages._native'] = None; {SHOW}"
compiled: Any = vars(native).get("_native")


def test_it_was_compiled_from_the_current_sources() -> None:
    assert native.read is not None, "install a C compiler and Python's headers, and run bin/test again"


def test_one_binary_serves_all_pythons() -> None:
    assert Path(compiled.__file__).name == "_native.abi3.so"


@pytest.mark.parametrize("start", [STALE, GONE], ids=["other-sources", "missing"])
def test_a_missing_or_outdated_module_is_not_used(start: str) -> None:
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True)
    assert done.stdout == "None None None None None\n"


def test_the_build_writes_the_stamp(tmp_path: Path) -> None:
    """A changed comment switches the module off until it is compiled again. Then it is used, and nothing else has to change."""
    for name in ("setup.py", "README.md", "cdxmill/version.py", "cdxmill/native"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place)
    sources = tmp_path / "cdxmill/native"
    assert native._stamp(sources) == compiled.sources
    text = sources / "text.h"
    text.write_text(text.read_text() + "/* more */\n")
    changed = native._stamp(sources)
    assert changed != compiled.sources
    build = ["setup.py", "-q", "build_ext", "--build-lib", "lib", "--build-temp", "temp"]
    quick = {**os.environ, "CFLAGS": "-O0"}
    subprocess.run([sys.executable, *build], cwd=tmp_path, check=True, capture_output=True, env=quick)
    show = "import _native; print(_native.sources)"
    lib = tmp_path / "lib/cdxmill/stages"
    done = subprocess.run([sys.executable, "-c", show], cwd=lib, capture_output=True, text=True, check=True)
    assert int(done.stdout) == changed


def test_an_installed_module_has_no_sources_to_be_compared_with(tmp_path: Path) -> None:
    assert native._stamp(tmp_path / "native") is None


TALLY, RANGE = "Tally", (b"a\n", 0, 2)
USUAL: dict[str, tuple[Any, ...]] = {
    "read": (({}, b"x", len), b"", 0, 0),
    "head": (b"",),
    "frame_within": (b"ab", 0, 1),
    "count": (TALLY, "tags", b""),
    "odd_line": (*RANGE, 0),
    "lines_in_order": RANGE,
    "capture_columns": ([], str),
    "capture_items": ([b"a)/ 2020 http://a/ x 200 S - - 1 2 a.gz"], 0, {b"a.gz": 1}, [], []),
    "pointer_rows": (b"a\t1", b"\1", [], []),
    "outline_block": (b"a\0\1b\0\1\0", 1, 1),
    "elements_in": (b"<a", (b"a",)),
    "parsed_size": (b"<a>",),
    "outline": (b"<a>", 0, str),
    "plain_links": (["/a", "b#c", "\\"], b"http://a/", 9, str),
    "Tally": (),
    "Tally.add": (b"a", 1),
    "Tally.absorb": (TALLY,),
    "Tally.add_words": (b"a",),
    "Tally.add_tags": (b"<a>",),
    "Tally.take": (b"\n",),
    "Merger": ([(iter([b"a\n"]), b"a", b"c")] * 9,),
    "Merger.fill": (bytearray(), 1),
    "CaptureSums": (False,),
    "CaptureSums.take": (b'a)/ 2020 {"mime": "x"}\n', 0, 0, []),
    "CaptureSums.add": (b"a", b"2020", (b"",) * 6),
    "CaptureSums.groups": (),
    "CaptureSums.totals": (),
    "CaptureSums.pack": ("urls",),
    "CaptureSums.absorb": ("urls", compiled.CaptureSums(False).pack("urls")),
    "CaptureSums.sampled": ("urls",),
}
"""Arguments that each entry point takes."""


def entry(name: str) -> Callable[..., Any]:
    owner, _, method = name.partition(".")
    if not method:
        found: Callable[..., Any] = getattr(compiled, owner)
        return found
    made = {
        "Tally": compiled.Tally,
        "Merger": lambda: compiled.Merger([]),
        "CaptureSums": lambda: compiled.CaptureSums(False),
    }
    bound: Callable[..., Any] = getattr(made[owner](), method)
    return bound


def usual(name: str) -> list[Any]:
    return [compiled.Tally() if value is TALLY else value for value in USUAL[name]]


def test_all_entry_points_are_listed() -> None:
    methods = {
        f"{owner}.{name}"
        for owner in ("Tally", "Merger", "CaptureSums")
        for name, value in vars(getattr(compiled, owner)).items()
        if callable(value) and not name.startswith("__")
    }
    functions = {
        name for name, value in vars(compiled).items() if callable(value) and not name.startswith("__")
    }
    assert set(USUAL) == methods | functions


@pytest.mark.parametrize("name", USUAL)
def test_usual_arguments_are_taken(name: str) -> None:
    entry(name)(*usual(name))


@pytest.mark.parametrize("name", USUAL)
def test_no_other_number_of_arguments_is_taken_and_no_keyword(name: str) -> None:
    with pytest.raises(TypeError):
        entry(name)(*usual(name), 1)
    with pytest.raises(TypeError):
        entry(name)(*usual(name), x=1)
    for size in range(len(usual(name))):
        with pytest.raises(TypeError, match=f"expected {len(usual(name))} arguments, got {size}"):
            entry(name)(*usual(name)[:size])


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name in USUAL for place in range(len(USUAL[name]))]
)
def test_no_argument_of_another_kind_is_taken(name: str, place: int) -> None:
    if (name, place) in (("capture_items", 2), ("capture_columns", 1)):  # any mapping, any function
        return
    for wrong in (1.5, object(), None):
        arguments = usual(name)
        arguments[place] = wrong
        with pytest.raises(TypeError) as error:
            entry(name)(*arguments)
        named = re.search(r"argument (\d+) is not", str(error.value))
        assert named is None or named[1] == str(place + 1)


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name in USUAL for place, value in enumerate(USUAL[name]) if type(value) is int],
)
@pytest.mark.parametrize("number", [-1, -(2**63), 2**64])
def test_no_number_outside_of_its_range_is_taken(name: str, place: int, number: int) -> None:
    arguments = usual(name)
    arguments[place] = number
    with pytest.raises(OverflowError if number > 0 else (ValueError, OverflowError)):
        entry(name)(*arguments)


WRONG: list[tuple[str, tuple[Any, ...], type[Exception]]] = [
    ("read", (({}, b"x"), b"", 0, 0), TypeError),
    ("read", (({}, "x", len), b"", 0, 0), TypeError),
    ("frame_within", (b"ab", 3, 1), ValueError),
    ("count", (None, "tags", b""), TypeError),
    ("capture_columns", (["a"], str), TypeError),
    ("capture_columns", ([b"a"], str), TypeError),
    ("capture_columns", ([b"a"], lambda line: ()), TypeError),
    ("capture_columns", ([b"a"], lambda line: (1,) * 23), TypeError),
    ("capture_columns", ([b"a"], lambda line: (b"",) * 23), TypeError),
    ("capture_columns", ([b"a"], lambda line: (None,) * 22 + (2**64,)), OverflowError),
    ("odd_line", (b"a\n", 2, 1, 0), ValueError),
    ("odd_line", (b"a\n", 0, 3, 0), ValueError),
    ("lines_in_order", (b"a\n", 2, 1), ValueError),
    ("lines_in_order", (b"a\n", 0, 3), ValueError),
    ("capture_items", (["a"], 0, {}, [], []), TypeError),
    ("pointer_rows", (b"", b"\0", [], []), ValueError),
    ("pointer_rows", (b"", b"\x09", [], []), ValueError),
    ("pointer_rows", (b"", b"\1" * 257, [], []), ValueError),
    ("outline_block", (b"", 1, 0), ValueError),
    ("elements_in", (b"", ("a",)), TypeError),
    ("elements_in", (b"", (b"",)), ValueError),
    ("elements_in", (b"", (b"a",) * 17), ValueError),
    ("plain_links", ([], b"http://a/", 8, str), ValueError),
    ("plain_links", ([], b"http://a/", 10, str), ValueError),
    ("plain_links", ([], b"http://a/b", 9, str), ValueError),
    ("plain_links", (["\\"], b"http://a/", 9, 1), TypeError),
    ("outline", (b"<a>", 0, 1), TypeError),
    ("Tally.add", (b"x" * 1001, 1), ValueError),
    ("Merger", ([1],), TypeError),
    ("Merger", ([(iter([]), None)],), TypeError),
    ("Merger", ([(1, None, None)],), TypeError),
    ("Merger", ([(iter([]), 1, None)],), TypeError),
    ("Merger", ([(iter([]), None, "b")],), TypeError),
    ("Merger", ([(iter([1]), None, None)],), TypeError),
    ("Merger.fill", (bytearray(), 0), ValueError),
]


@pytest.mark.parametrize(("name", "arguments", "error"), WRONG)
def test_values_that_make_no_sense_are_refused(
    name: str, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        entry(name)(*arguments)


def test_only_what_can_be_counted_is_named() -> None:
    with pytest.raises(ValueError, match="expected tags, servers or words"):
        compiled.count(compiled.Tally(), "tag", b"")


def test_a_count_that_does_not_fit_is_refused() -> None:
    tally = compiled.Tally()
    tally.add(b"x", 2**64 - 1)
    with pytest.raises(OverflowError):
        tally.add(b"x", 1)
    with pytest.raises(OverflowError):
        tally.add(b"y", -1)
    assert tally.take(b"\n") == b"x\t18446744073709551615\n"


def test_a_buffer_is_free_after_each_call() -> None:
    for name in (
        "read",
        "head",
        "odd_line",
        "lines_in_order",
        "count",
        "Tally.add",
        "Tally.add_words",
        "Tally.add_tags",
    ):
        data = bytearray(b"a\n")
        arguments = [data if isinstance(value, bytes) else value for value in usual(name)]
        entry(name)(*arguments)
        with pytest.raises((TypeError, ValueError, OverflowError)):
            entry(name)(
                *[-1 if type(value) is int else value for value in arguments], *[1] * (0 not in arguments)
            )
        data += b"more"  # BufferError if a call still holds it


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
    words = b" ".join(b"word%d" % number for number in range(3_000))
    tally, other, sums = compiled.Tally(), compiled.Tally(), compiled.CaptureSums(True)
    tally.add_words(words)
    other.add_tags(b"<x%b>" % words.replace(b" ", b"><x"))
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
    words = b" ".join(b"word%d" % number for number in range(3_000))
    large = {
        "Tally.add_words": (words,),
        "Tally.add_tags": (b"<x%b>" % words.replace(b" ", b"><x"),),
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
    """As by interpreters in one process: its tables are made once, and found again. What it made goes with it."""
    show = (
        "import gc, importlib.util; from collections import Counter; from cdxmill.stages import _native\n"
        "spec = importlib.util.spec_from_file_location('_native', _native.__file__)\n"
        "for _ in range(20):\n"
        "    one = importlib.util.module_from_spec(spec); spec.loader.exec_module(one)\n"
        "assert one.parsed_size(b'<table>' * 20_000) < 140_000\n"
        "del one; gc.collect()\n"
        "kinds = Counter(one.__name__ for one in gc.get_objects() if isinstance(one, type))\n"
        "print(*(kinds[name] for name in ('Tally', 'Merger', 'CaptureSums')))"
    )
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n{show}"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=True)
    assert done.stdout == "1 1 1\n"


def test_no_header_defines_a_function_without_the_prefix() -> None:
    for header in SOURCES.glob("*.h"):
        for line in header.read_text().splitlines():
            if line.startswith(("static", "int ", "void ", "const ", "PyObject ")) and "(" in line:
                name = line.partition("(")[0].split()[-1].lstrip("*")
                assert name.startswith("cdx_"), (header.name, line)
