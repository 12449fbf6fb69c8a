"""The page when the server goes away, behind a proxy, and for readers who may do less."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_pages import DashPage, open_dash
from dash_bench import DashProgram, DashReader, running_dash
from playwright.sync_api import Browser, expect
from proxies import running_nginx
from waiting import eventually

BACK_MS = 60_000
KEEPS_HOST = "proxy_http_version 1.1; proxy_set_header Host $http_host;"
"""Settings of nginx with which the dashboard sees the address that the browser uses."""


def test_a_lost_server_is_told_and_found_again(browser: Browser, tmp_path: Path) -> None:
    """What is shown stays, marked as old; buttons are grey; when the server is back the page goes on by itself."""
    with running_dash(tmp_path, "--standalone", "--database", str(tmp_path / "torc.db")) as dash:
        owner = dash.owner()
        workflow = owner.create({"name": "steady", "jobs": [{"name": "a", "command": "true"}]})
        with open_dash(browser, dash.url) as opened:
            shown = opened.show(f"w/{workflow}")
            expect(shown.locator(".connection")).to_have_text("● Live")
            owner.http.post("dash/server/stop")
            expect(shown.locator(".connection.away")).to_contain_text("Server away", timeout=BACK_MS)
            expect(shown.locator(".headline")).to_contain_text("steady")
            expect(shown.get_by_role("button", name="Run here…").first).to_be_disabled()
            owner.http.post("dash/server/start")
            expect(shown.locator(".connection.live")).to_be_visible(timeout=BACK_MS)
            expect(shown.get_by_role("button", name="Run here…").first).to_be_enabled()
            owner.run_to_its_end(workflow)
            expect(shown.locator(".headline")).to_contain_text("completed: 1 job", timeout=BACK_MS)
            opened.complaints.clear()  # of requests that failed meanwhile


def test_a_server_that_is_stopped_is_not_live(browser: Browser, tmp_path: Path) -> None:
    """It refuses nothing. The age of the data is told, buttons are grey, and the page goes on by itself."""
    with running_dash(tmp_path, "--standalone", "--database", str(tmp_path / "torc.db")) as dash:
        owner = dash.owner()
        workflow = owner.create({"name": "steady", "jobs": [{"name": "a", "command": "true"}]})
        pid = owner.get("dash/server")["pid"]
        with open_dash(browser, dash.url) as opened:
            shown = opened.show(f"w/{workflow}")
            expect(shown.locator(".connection")).to_have_text("● Live")
            expect(shown.get_by_role("button", name="Run here…").first).to_be_enabled()
            os.kill(pid, signal.SIGSTOP)
            try:
                expect(shown.locator(".connection.away")).to_contain_text("no answer for", timeout=BACK_MS)
                expect(shown.get_by_role("button", name="Run here…").first).to_be_disabled()
                eventually(lambda: owner.get("dash/state")["server"]["state"] == "away")
            finally:
                os.kill(pid, signal.SIGCONT)
            expect(shown.locator(".connection.live")).to_be_visible(timeout=BACK_MS)
            expect(shown.get_by_role("button", name="Run here…").first).to_be_enabled()
            opened.complaints.clear()  # of requests that failed meanwhile


def test_the_server_is_started_from_the_page(browser: Browser, tmp_path: Path) -> None:
    """The fields hold what it was started with; a wrong port gets the message; another database begins empty."""
    with running_dash(tmp_path, "--standalone", "--database", str(tmp_path / "torc.db")) as dash:
        owner = dash.owner()
        owner.create({"name": "steady", "jobs": [{"name": "a", "command": "true"}]})
        with socket.create_server(("127.0.0.1", 0)) as used, open_dash(browser, dash.url) as opened:
            shown = opened.show("server")
            shown.get_by_role("button", name="Stop the server…").click()
            shown.get_by_role("dialog").get_by_role("button", name="Stop the server").click()
            database = shown.get_by_label("Database, a path on this host")
            expect(database).to_have_value(str(tmp_path / "torc.db"), timeout=BACK_MS)
            expect(shown.get_by_label("Log level")).to_have_value("warn")
            port = shown.get_by_label("Port (0 takes a free one)")
            port.fill(str(used.getsockname()[1]))
            shown.get_by_role("button", name="Start the server").click()
            expect(shown.locator("main")).to_contain_text("Address already in use", timeout=BACK_MS)
            port.fill("0")
            database.fill(str(tmp_path / "other.db"))
            shown.get_by_label("Log level").select_option("info")
            shown.get_by_role("button", name="Start the server").click()
            expect(shown.get_by_role("button", name="Stop the server…")).to_be_visible(timeout=BACK_MS)
            assert owner.get("api/workflows")["items"] == []
            opened.complaints.clear()  # of requests that failed meanwhile


@pytest.fixture
def proxy(dash: DashProgram, tmp_path: Path) -> Iterator[str]:
    """URL of the dashboard behind nginx at a prefix, with nginx's usual buffering."""
    with running_nginx(tmp_path, dash.base, KEEPS_HOST) as url:
        yield f"{url}?{dash.url.partition('?')[2]}"


def test_live_behind_nginx_at_a_prefix(browser: Browser, owner: DashReader, proxy: str) -> None:
    """Every request is relative, and events come through nginx's buffers at once."""
    workflow = owner.create({"name": "proxied", "jobs": [{"name": "a", "command": "echo out"}]})
    with open_dash(browser, proxy) as opened:
        shown = opened.show(f"w/{workflow}")
        expect(shown.locator(".connection")).to_have_text("● Live")
        owner.run_to_its_end(workflow)
        expect(shown.locator(".headline")).to_contain_text("completed: 1 job", timeout=BACK_MS)
        shown.get_by_role("button", name="Archive…").click()
        shown.get_by_role("dialog").get_by_role("button", name="Archive", exact=True).click()
        expect(shown.get_by_role("dialog")).to_have_count(0, timeout=BACK_MS)
        assert {url.split("/torc/")[0] for url in _requested(opened)} == {proxy.partition("/torc/")[0]}


def _requested(opened: DashPage) -> list[str]:
    script = "() => performance.getEntriesByType('resource').map((each) => each.name)"
    return list(opened.page.evaluate(script))


def test_events_of_a_busy_workflow_leave_the_tab_small(browser: Browser, dash: DashProgram, owner: DashReader) -> None:
    """After 20,000 events the page keeps at most 5,000, and shows new ones when asked."""
    workflow = owner.create({"name": "busy", "jobs": [{"name": "a", "command": "true"}]})
    with open_dash(browser, dash.url) as opened:
        shown = opened.show(f"w/{workflow}/events")
        script = """async () => {
            const live = await import(new URL("static/core/live.js", document.baseURI));
            const common = {type: "job_started", severity: "info", timestamp: Date.now()};
            const event = (id) => ({...common, id, data: {job_id: id}});
            for (let round = 0; round < 40; round += 1) {
                live.receive(Array.from({length: 500}, (_, index) => event(1000000 + 500 * round + index)));
                await new Promise((done) => setTimeout(done, 10));
            }
            await new Promise((done) => setTimeout(done, 600));
            return live.liveEvents.value.length}"""
        assert shown.evaluate(script) == 5000
        shown.get_by_role("button", name="Show").click()
        assert shown.locator("main tbody tr").count() <= 500


def test_a_reader_without_the_token_sees_no_commands(browser: Browser, tmp_path: Path) -> None:
    """With a server that requires log-in a person logs in by name: views work, commands are not offered."""
    from programs import BIN, running_server

    htpasswd = tmp_path / "htpasswd"
    subprocess.run(
        [BIN / "torc-htpasswd", "add", htpasswd, "ben", "--password", "bens-secret"], check=True, capture_output=True
    )
    (tmp_path / "server").mkdir()
    with (
        running_server(tmp_path / "server", "--auth-file", str(htpasswd), "--require-auth") as server,
        running_dash(tmp_path, "--api-url", server) as dash,
        open_dash(browser, f"{dash.base}#/w") as opened,
    ):
        shown = opened.page
        shown.get_by_label("Name").fill("ben")
        shown.get_by_label("Password").fill("wrong")
        shown.get_by_role("button", name="Log in", exact=True).first.click()
        expect(shown.get_by_role("alert")).to_be_visible()
        shown.get_by_label("Password").fill("bens-secret")
        shown.get_by_role("button", name="Log in", exact=True).first.click()
        expect(shown.get_by_text("No workflows yet.")).to_be_visible(timeout=BACK_MS)
        expect(shown.get_by_role("link", name="Create")).to_have_count(0)
        opened.show("server")
        expect(shown.get_by_role("heading", name="torc-server")).to_be_visible()
        expect(shown.get_by_role("heading", name="Start and stop")).to_have_count(0)
