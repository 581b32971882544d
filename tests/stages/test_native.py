"""The compiled part: it is used only if it was compiled from the current sources, and it takes only what it can use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdxmill.stages import native
from tests.material.sanitizers import SOURCES
from tests.stages.native_calls import USUAL, WRONG, compiled, entry, usual

SHOW = "from cdxmill.stages import native; print(native.read, native.Merger, native.odd_line, native.lines_in_order, native.frame_within)"
STALE = f"import cdxmill.stages._native as compiled; compiled.sources += 1; {SHOW}"
ROOT = SOURCES.parents[1]
GONE = f"import sys; sys.modules['cdxmill.stages._native'] = None; {SHOW}"


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


def test_no_header_defines_a_function_without_the_prefix() -> None:
    for header in SOURCES.glob("*.h"):
        for line in header.read_text().splitlines():
            if line.startswith(("static", "int ", "void ", "const ", "PyObject ")) and "(" in line:
                name = line.partition("(")[0].split()[-1].lstrip("*")
                assert name.startswith("cdx_"), (header.name, line)
