"""Specs that are too large for a proxy, or whose connection ends: the page says what to do, and goes on."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from browser_pages import open_dash
from dash_bench import DashProgram, DashReader
from playwright.sync_api import Browser, Page, expect
from proxies import running_apache, running_nginx

SPEC: Final = {"name": "wide", "jobs": [{"name": "a", "command": f"true # {'x' * (3 << 19)}"}]}
"""A spec of 1.5 MiB."""
CUT: Final = """
client_max_body_size 0;
location = /torc/dash/commands {{ if ($request_method = POST) {{ return 444; }} proxy_pass {base}dash/commands; }}
"""
"""Settings of nginx with which it ends the connection of each such request without an answer."""
LIMITED: Final = """
RewriteEngine On
RewriteCond %{{HTTP:Content-Length}} "-gt 1048576"
RewriteRule ^ - [R=413,L]
RewriteRule "^/torc/(.*)$" "{base}$1" [P]
"""
"""Settings of Apache with which it refuses such a body; LimitRequestBody does not limit what it passes on."""


@pytest.fixture
def proxied(dash: DashProgram, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of the page behind a proxy that takes no body of more than 1 MiB, or none at all."""
    with ExitStack() as stack:
        if request.param == "apache":
            url = stack.enter_context(running_apache(tmp_path, LIMITED.format(base=dash.base))) + "/torc/"
        else:
            more = CUT.format(base=dash.base) if request.param == "cut" else ""
            url = stack.enter_context(running_nginx(tmp_path, dash.base, more))
        yield f"{url}?{dash.url.partition('?')[2]}"


def upload(shown: Page, folder: Path) -> None:
    """Choose the spec as a file, and check it."""
    (folder / "wide.json").write_text(json.dumps(SPEC))
    shown.get_by_label("Spec file").set_input_files(folder / "wide.json")
    shown.get_by_role("button", name="Check").click()


@pytest.mark.parametrize("proxied", ["nginx", "apache"], indirect=True)
def test_a_proxy_that_refuses_large_bodies(browser: Browser, proxied: str, owner: DashReader, tmp_path: Path) -> None:
    known = owner.get("api/workflows")["total_count"]
    with open_dash(browser, proxied) as opened:
        shown = opened.show("create/file")
        upload(shown, tmp_path)
        expect(shown.get_by_role("alert")).to_contain_text(
            "A proxy before torc-dash refuses a request of 1.5 MiB. "
            "Give the path of the spec instead, or have its limit raised (nginx: client_max_body_size)."
        )
        expect(shown.locator(".connection.away")).to_have_count(0)
    assert owner.get("api/workflows")["total_count"] == known


@pytest.mark.parametrize("proxied", ["cut"], indirect=True)
def test_a_connection_that_ends_during_an_upload(browser: Browser, proxied: str, tmp_path: Path) -> None:
    """The reason may be the size or the network; the page asks on, and is live again."""
    with open_dash(browser, proxied) as opened:
        shown = opened.show("create/file")
        upload(shown, tmp_path)
        expect(shown.get_by_role("alert")).to_contain_text(
            "The connection ended before a request of 1.5 MiB was answered"
        )
        expect(shown.locator(".connection.away")).to_have_count(0, timeout=60_000)
        opened.complaints.clear()  # of the request without an answer
