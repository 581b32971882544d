"""A cluster to verify, made once, and copies of it to damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .checking import make


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("verify"))


@pytest.fixture
def cluster(made: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(made / "C", tmp_path / "C"))
