"""The secret token in the address of the server of ``torc-dash --standalone``: no page and no answer has it."""

from pathlib import Path

import psutil
from browser_pages import open_dash
from dash_bench import running_dash
from playwright.sync_api import Browser, expect

from torc_framework.server.settings import TOKEN_VARIABLE

RUN_MS = 60_000
ROUTES = (
    *("dash/session", "dash/state", "dash/server", "dash/commands", "dash/commands/1", "api/openapi.json"),
    *("api/workflows/1/export", "api/events?workflow_id=1", "api/compute_nodes?workflow_id=1", "api/nothing"),
)


def test_the_token_of_the_server_is_not_shown(browser: Browser, tmp_path: Path) -> None:
    """The settings name the server's address without it, with passwords of other addresses hidden as well."""
    (tmp_path / "torc.toml").write_text(
        "server.database = 'postgresql://eve:open-sesame@db/torc?sslpassword=hush-hush'\n"
    )
    with running_dash(tmp_path, "--standalone", "--database", str(tmp_path / "torc.db")) as dash:
        owner = dash.owner()
        token = psutil.Process(owner.get("dash/server")["pid"]).environ()[TOKEN_VARIABLE]
        workflow = owner.create({"name": "w", "jobs": [{"name": "a", "command": "true"}]})
        owner.run_to_its_end(workflow)
        answers = {route: owner.http.get(route).text for route in ROUTES}
        with open_dash(browser, dash.url) as opened:
            for route, text in (("settings", "client.api_url"), ("server", "127.0.0.1")):
                page = opened.show(route)
                expect(page.locator("main")).to_contain_text(text, timeout=RUN_MS)
                answers[f"#/{route}"] = page.content()
        secrets = (token, "open-sesame", "hush-hush")
        assert [name for name, text in answers.items() if any(secret in text for secret in secrets)] == []
        assert "/~***/torc-service/v1" in answers["#/settings"]
        errors = owner.http.post("dash/server/stop").text + owner.http.get("api/workflows").text
        assert token not in errors
    assert token not in (tmp_path / "dash.err").read_text()
