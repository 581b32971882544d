"""The options of `report`."""

from __future__ import annotations

from cdxmill.options.option import AnyPath, Needs, Paths, Running, argument, option


class Reporting(Running):
    """The arguments of `report`."""

    inputs: Paths = argument(
        "INPUT...", "ZipNum clusters, or CDX files: file, directory, glob or URL.", kw_only=False
    )

    html: AnyPath | None = option(
        "--html FILE", "Write the report as one HTML file with plots.", default=None
    )
    json: AnyPath | None = option(
        "--json FILE", "Write the report as JSON. -: to stdout, without the tables.", default=None
    )
    compare: AnyPath | None = option(
        "--compare OTHER",
        "Show what was added since OTHER, and what is gone. OTHER is a cluster, CDX files, or the JSON of an earlier report.",
        default=None,
    )
    replace: bool = option("--replace", "Replace an existing output.", Needs("html", "json"), default=False)
