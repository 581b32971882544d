"""The benchmark of `copy` runs: every contender gets every capture."""

from __future__ import annotations

import re

import pytest

from bench.copying import CDXT_NAME, CHECKING, JOINED_NAME, OURS, PLAIN, main


def test_all_contenders_copy_a_small_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cdx_toolkit")
    main(["--captures", "200", "--rounds", "1", "--processes", "2", "--delay", "1"])
    said = capsys.readouterr().out
    assert re.findall(r"^(\S+): (\d+) captures", said, re.M) == [
        ("*.com", "200"),
        ("*.wanted.com", "20"),
        ("*.wanted.com", "20"),
        ("*.com", "200"),
    ]
    for name in (PLAIN, JOINED_NAME, CHECKING, OURS, CDXT_NAME):
        rates = re.findall(
            rf"^{re.escape(name)} .* (\d+) captures/s +\d+\.\d\d of the plain one$", said, re.M
        )
        assert len(rates) == 4
        assert all(int(rate) > 0 for rate in rates)
