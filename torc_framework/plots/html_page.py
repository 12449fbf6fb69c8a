"""One page as one file: data, styles and the plotting library inside it, nothing from anywhere else."""

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any


@cache
def _static(name: str) -> str:
    return files("torc_framework.plots").joinpath("static", name).read_text(encoding="utf-8")


def html(page: dict[str, Any]) -> str:
    """Return a page as an HTML document.

    The policy in its head lets the browser load nothing, so that what is missing shows at once.
    """
    data = json.dumps(page, separators=(",", ":")).replace("<", "\\u003c")  # whatever a job is called
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'; img-src data:">
<title>{escape(page["title"])}</title>
<link rel="icon" href="data:,">
<style>{_static("uplot.min.css")}{_static("page.css")}</style>
</head>
<body>
<script type="application/json" id="page">{data}</script>
<!-- uPlot {escape(_version())}
{_static("uplot.LICENSE")}-->
<script>{_static("uplot.min.js")}</script>
<script>{_static("page.js")}</script>
</body>
</html>
"""


def _version() -> str:
    """Return what the library's first line says of itself."""
    return _static("uplot.min.js").partition("\n")[0].strip("/*! ")
