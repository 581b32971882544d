"""Options of prefix B-trees."""

from cdxmill.options.option import REPLACE, AnyPath, Paths, Quiet, argument, option
from cdxmill.options.queries import FIELDS, OUTPUTS, CaptureFilters


class TreeQuery(CaptureFilters):
    """What a prefix B-tree is asked besides the URL. `resume` is the key to start at."""

    limit: int | None = option("--limit N", "Print at most N lines.", default=None, min=1)
    resume: str | None = option(
        "--resume KEY",
        "Start at this key, such as the first field of the last line that was printed.",
        default=None,
    )
    fields: tuple[str, ...] | None = FIELDS
    output: str | None = option(
        "--output FORMAT", "Output format: cdxj, json, text, cdx or csv.", default=None, choices=OUTPUTS
    )
    layout: str | None = option(
        "--layout LAYOUT",
        "Fields of a pointer, as in prefix-index build, for a file of 2012, which does not say them. Default: classic.",
        default=None,
    )
    keys: str | None = option(
        "--keys TYPE",
        "How keys are written: surt (com,example)/a), reversed (com.example/a:http) or plain. Default: that of the"
        " layout.",
        default=None,
        choices=("surt", "reversed", "plain"),
    )


class TreeBuilding(Quiet):
    """The arguments of `prefix-index build`. Without a layout it is `capture` for CDX lines, `classic` for pointers."""

    inputs: Paths = argument(
        "INPUT...",
        "Sorted CDX or CDXJ files, clusters, or files of keys and pointers; - reads standard input.",
        kw_only=False,
    )
    block_size: int = option("--block-size N", "Bytes of a block.", default=65536, min=1)
    layout: str | None = option(
        "--layout LAYOUT",
        "Fields of a pointer: capture, classic, or NAME:TYPE,NAME:TYPE... with the types u8, u16, u32 and u64."
        " Default: capture for CDX lines, classic for pointers.",
        default=None,
    )
    replace: bool = REPLACE
    output: AnyPath = option("--output -o FILE", "File to write: path, s3 or hdfs URL.")
