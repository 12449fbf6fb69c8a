"""The HTML file of one page, with data, styles and the plotting library inside it."""

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

    Its content security policy lets the browser load nothing, so that a missing part is noticed at once.
    """
    data = json.dumps(page, separators=(",", ":")).replace("<", "\\u003c")  # the name of a job may hold "</script>"
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
    """Return name and version of the plotting library, from its first line."""
    return _static("uplot.min.js").partition("\n")[0].strip("/*! ")
