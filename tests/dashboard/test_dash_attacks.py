"""Requests of other sites, of strangers, and of readers who want more than they may."""

import http.client
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from dash_bench import TOKEN, DashProgram, DashReader, running_dash
from people import guarded_server, password_of

from torc_framework.dashboard.http.limits import STREAMS_OF_PERSON

pytestmark = pytest.mark.e2e
LISTS = {"name": "w", "jobs": [{"name": "a", "command": "echo hello"}]}


@pytest.mark.parametrize("path", ["api/workflows", "dash/words", "dash/commands", "dash/events?workflows=1"])
def test_a_stranger_gets_nothing(dash: DashProgram, path: str) -> None:
    stranger = dash.reader()
    assert stranger.http.get(path).status_code == 401
    assert stranger.session()["logged_in"] is False
    stranger.http.cookies.set(f"torc_dash_{urlsplit(dash.base).port}", "guess")
    assert stranger.http.get(path).status_code == 401


def test_a_wrong_token_opens_nothing(dash: DashProgram) -> None:
    stranger = dash.reader()
    answer = stranger.http.get("", params={"token": f"{TOKEN}x"})
    assert (answer.status_code, answer.headers.get("set-cookie")) == (303, None)
    for body in ({"token": "x"}, {"token": ""}, {}, {"username": "root", "password": "x"}):
        assert stranger.http.post("login", json=body).status_code in (400, 401)
    assert stranger.http.post("login", content=b"{}").status_code == 415
    assert stranger.http.post("login", json={"token": "x" * 20_000}).status_code == 413
    assert stranger.session()["logged_in"] is False


def test_the_token_is_exchanged_for_a_cookie_of_this_browser(dash: DashProgram) -> None:
    answer = dash.reader().http.get("", params={"token": TOKEN})
    cookie = answer.headers["set-cookie"].lower()
    assert (answer.status_code, answer.headers["location"]) == (303, "./")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=" not in cookie
    assert TOKEN not in cookie


def test_every_answer_forbids_foreign_scripts_and_frames(dash: DashProgram, owner: DashReader) -> None:
    for path in ("dash/session", "api/workflows", "api/nonsense", "dash/nonsense"):
        headers = owner.http.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::1", ""])
def test_another_host_name_is_refused(dash: DashProgram, owner: DashReader, host: str) -> None:
    answer = owner.http.get("api/workflows", headers={"Host": host})
    assert answer.status_code in (400, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_is_refused(owner: DashReader, headers: dict[str, str]) -> None:
    assert owner.http.get("api/workflows", headers=headers).status_code == 403
    assert owner.http.post("dash/commands", json={"command": "settings"}, headers=headers).status_code == 403
    assert owner.http.post("login", json={"token": TOKEN}, headers=headers).status_code == 403


def test_a_change_needs_the_csrf_text(dash: DashProgram) -> None:
    owner = dash.owner()
    for text in ("", "x", dash.owner().http.headers["X-Torc-CSRF"]):
        owner.http.headers["X-Torc-CSRF"] = text
        for method, path in (("POST", "api/workflows"), ("DELETE", "api/workflows/1"), ("POST", "dash/commands")):
            assert owner.http.request(method, path, json={}).status_code == 403
        assert owner.http.post("logout").status_code == 403


def test_a_log_out_ends_the_session(dash: DashProgram) -> None:
    owner = dash.owner()
    assert owner.http.post("logout").json()["logged_in"] is False
    assert owner.http.get("api/workflows").status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/api/../health",
        "/api/%2e%2e/%2e%2e/metrics",
        "/api//workflows",
        "/api/workflows/%2e%2e/%2e%2e/%2e%2e/metrics",
        "/api/",
        "/api/http://127.0.0.1:1/",
        "/api/workflows/1/events/stream",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/dash/../api",
        "/nonsense",
        pytest.param(f"/dash/workflows/{'9' * 5000}/log", id="a long number"),
    ],
)
def test_no_path_leads_elsewhere(dash: DashProgram, owner: DashReader, path: str) -> None:
    status, body = _raw(dash, owner, path)
    assert status in (404, 405), body
    assert b"Traceback" not in body
    assert b"# HELP" not in body


def _raw(dash: DashProgram, owner: DashReader, path: str) -> tuple[int, bytes]:
    """Send a path as it is."""
    connection = http.client.HTTPConnection(urlsplit(dash.base).netloc, timeout=30)
    cookies = "; ".join(f"{name}={value}" for name, value in owner.http.cookies.items())
    connection.request("GET", path, headers={"Cookie": cookies})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_cookies_stay_between_the_browser_and_the_dashboard(owner: DashReader) -> None:
    answer = owner.http.get("api/workflows")
    assert not {"set-cookie", "www-authenticate", "server", "location"} & set(answer.headers)


def test_an_unchanged_answer_is_not_sent_again(owner: DashReader) -> None:
    first = owner.http.get("static/index.html")
    if first.status_code == 200:
        again = owner.http.get("static/index.html", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")


def test_a_body_that_is_too_large_is_refused(owner: DashReader) -> None:
    piece = b" " * (1 << 20)

    def endless() -> Iterator[bytes]:
        for _ in range(80):
            yield piece

    answer = owner.http.post("dash/commands", content=endless(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    huge = {"Content-Length": str(1 << 40), "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(urlsplit(owner.base).netloc, timeout=30)
    cookies = "; ".join(f"{name}={value}" for name, value in owner.http.cookies.items())
    connection.request("POST", "/dash/commands", headers={**huge, "Cookie": cookies, **owner.http.headers})
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_for_the_server_is_passed_on_up_to_a_limit(owner: DashReader) -> None:
    def spaces(count: int) -> Iterator[bytes]:
        yield b'{"name": "w", "user": "u"'
        for _ in range(count):
            yield b" " * (1 << 20)
        yield b"}"

    json_type = {"Content-Type": "application/json"}
    assert owner.http.post("api/workflows", content=spaces(3), headers=json_type).status_code == 200
    assert owner.http.post("api/workflows", content=spaces(70), headers=json_type).status_code == 413
    assert owner.get("api/workflows")["items"]


def test_a_proxy_that_changes_the_host_name_needs_no_setting(owner: DashReader) -> None:
    """The browser says that page and request have one origin, which a page cannot forge."""
    headers = {"Origin": "https://torc.example.org", "Sec-Fetch-Site": "same-origin"}
    assert owner.http.get("api/workflows", headers=headers).status_code == 200


def test_a_body_of_another_kind_is_refused(owner: DashReader) -> None:
    for content in (b"", b"{", b"[" * 100_000, b'{"command": 1}', b"\xff"):
        answer = owner.http.post("dash/commands", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400


def test_a_reader_that_does_not_read_costs_the_others_nothing(dash: DashProgram, owner: DashReader) -> None:
    id_ = owner.create(LISTS)
    cookies = "; ".join(f"{name}={value}" for name, value in owner.http.cookies.items())
    idle = []
    for _ in range(8):
        connection = socket.create_connection(("127.0.0.1", urlsplit(dash.base).port or 0))
        request = f"GET /dash/events?workflows={id_} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n"
        connection.sendall(request.encode())
        idle.append(connection)
    assert owner.get("api/workflows")["items"]
    for connection in idle:
        connection.close()


def test_a_person_has_a_limited_number_of_streams(dash: DashProgram, owner: DashReader) -> None:
    id_ = owner.create(LISTS)
    cookies = "; ".join(f"{name}={value}" for name, value in owner.http.cookies.items())
    request = f"GET /dash/events?workflows={id_} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n"
    connections, statuses = [], []
    for _ in range(STREAMS_OF_PERSON + 1):
        connection = socket.create_connection(("127.0.0.1", urlsplit(dash.base).port or 0))
        connection.sendall(request.encode())
        statuses.append(connection.recv(12))
        connections.append(connection)
    assert statuses[0] == b"HTTP/1.1 200"
    assert statuses[-1] == b"HTTP/1.1 429"
    for connection in connections:
        connection.close()


# --- logs that lead elsewhere ----------------------------------------------------------------------


def test_links_pipes_and_folders_are_no_logs(dash: DashProgram, owner: DashReader, tmp_path: Path) -> None:
    id_ = owner.create(LISTS)
    owner.run_to_its_end(id_)
    job_id = owner.get("api/jobs", workflow_id=id_)["items"][0]["id"]
    attempt = owner.get(f"dash/workflows/{id_}/jobs/{job_id}/attempts")["attempts"][0]
    path = Path(attempt["logs"]["stdout"]["path"])
    secret = tmp_path / "secret"
    secret.write_text("secret")
    where = f"dash/workflows/{id_}/log"

    def answer() -> tuple[int, str]:
        found = owner.http.get(where, params={"job": job_id})
        return found.status_code, found.text

    assert answer()[0] == 200
    path.unlink()
    path.symlink_to(secret)
    assert answer()[0] == 403
    assert '"text"' not in answer()[1]
    path.unlink()
    os.mkfifo(path)
    assert answer()[0] == 403
    path.unlink()
    path.mkdir()
    assert answer()[0] == 403
    path.rmdir()
    assert answer()[0] == 404
    folder = path.parent
    moved = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(moved)
    assert answer()[0] == 403
    folder.unlink()
    moved.rename(folder)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"job": "1/../../etc"},
        {"job": "-1"},
        {"job": "9" * 30},
        {"job": "1", "stream": "../x"},
        {"job": "1", "offset": "1e3"},
        {"job": "1", "length": "0"},
        {"job": "1", "length": str(1 << 30)},
        {"job": "1", "tail": str(1 << 30)},
    ],
)
def test_a_wrong_question_for_a_log_is_refused(owner: DashReader, query: dict[str, str]) -> None:
    id_ = owner.create(LISTS)
    assert owner.http.get(f"dash/workflows/{id_}/log", params=query).status_code == 400


def test_a_job_of_another_workflow_has_no_log_here(owner: DashReader) -> None:
    first, second = owner.create(LISTS), owner.create(LISTS)
    job_id = owner.get("api/jobs", workflow_id=first)["items"][0]["id"]
    assert owner.http.get(f"dash/workflows/{second}/log", params={"job": job_id}).status_code == 404
    assert owner.http.get(f"dash/workflows/{second}/jobs/{job_id}/attempts").status_code == 404


# --- a server with users ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashProgram]:
    """A dashboard in front of a server with access control, for ana and ben."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "dash").mkdir()
    with (
        guarded_server(folder, ["ana", "ben"]) as server,
        running_dash(folder / "dash", "--api-url", server.url) as program,
    ):
        yield program


def test_readers_log_in_as_themselves_and_see_what_they_may(guarded: DashProgram) -> None:
    stranger = guarded.reader()
    session = stranger.session()
    assert (session["logged_in"], session["upstream_requires_login"]) == (False, True)
    assert "password" in session["logins"]
    assert stranger.http.post("login", json={"username": "ana", "password": "wrong"}).status_code == 401
    ana, ben = (guarded.reader().log_in(name, password_of(name)) for name in ("ana", "ben"))
    assert (ana.session()["user"], ana.session()["is_owner"]) == ("ana", False)
    made = ana.http.post("api/workflows", json={"name": "hers", "user": "ana"})
    assert made.status_code == 200, made.text
    id_ = made.json()["id"]
    assert ana.get(f"dash/workflows/{id_}/overview")["name"] == "hers"
    for path in (f"api/workflows/{id_}", f"dash/workflows/{id_}/overview", f"dash/workflows/{id_}/explain"):
        assert ben.http.get(path).status_code in (403, 404), path
    events = ben.http.get(f"dash/events?workflows={id_}")
    assert '"gone"' in events.text


def test_a_reader_has_no_commands_and_no_account_of_this_machine(guarded: DashProgram) -> None:
    ana = guarded.reader().log_in("ana", password_of("ana"))
    id_ = ana.http.post("api/workflows", json={"name": "hers", "user": "ana"}).json()["id"]
    for path in ("dash/commands", "dash/server", f"dash/workflows/{id_}/why-failed", f"dash/workflows/{id_}/pending"):
        assert ana.http.get(path).status_code == 403, path
    for command in ("run", "create", "settings"):
        assert ana.http.post("dash/commands", json={"command": command, "workflow_id": id_}).status_code == 403
    assert ana.http.post("dash/server/stop").status_code == 403


def test_the_token_and_a_log_in_together_open_commands_as_that_user(guarded: DashProgram) -> None:
    owner = guarded.reader()
    owner.http.get("", params={"token": TOKEN})
    session = owner.take_csrf().session()
    assert (session["logged_in"], session["is_owner"]) == (False, True)
    assert owner.http.get("api/workflows").status_code == 401
    owner.log_in("ana", password_of("ana"))
    id_ = owner.create(LISTS)
    assert owner.get(f"api/workflows/{id_}")["user"] == "ana"
    ben = guarded.reader().log_in("ben", password_of("ben"))
    assert ben.http.get(f"dash/workflows/{id_}/log", params={"job": 1}).status_code in (403, 404)


def test_a_reader_cannot_point_the_dashboard_to_files_of_its_account(guarded: DashProgram, tmp_path: Path) -> None:
    """A record of a runner may name any folder as its output directory."""
    ana = guarded.reader().log_in("ana", password_of("ana"))
    id_ = ana.http.post("api/workflows", json={"name": "hers", "user": "ana"}).json()["id"]
    job = ana.http.post("api/jobs", json={"workflow_id": id_, "name": "j", "command": "true"}).json()
    node = {
        "workflow_id": id_,
        "hostname": os.uname().nodename,
        "pid": 1,
        "start_time": "2026-01-01T00:00:00Z",
        "num_cpus": 1,
        "memory_gb": 1.0,
        "num_gpus": 0,
        "num_nodes": 1,
        "compute_node_type": "local",
        "scheduler": {"spool": str(tmp_path / "a" / "b")},
    }
    node_id = ana.http.post("api/compute_nodes", json=node).json()["id"]
    result = {
        "job_id": job["id"],
        "workflow_id": id_,
        "run_id": 1,
        "attempt_id": 1,
        "compute_node_id": node_id,
        "return_code": 0,
        "exec_time_minutes": 0.1,
        "completion_time": "2026-01-01T00:00:00Z",
        "status": "completed",
    }
    assert ana.http.post("api/results", json=result).status_code == 200
    log = tmp_path / "job_stdio" / f"job_wf{id_}_j{job['id']}_r1_a1.o"
    log.parent.mkdir()
    log.write_text("of the account")
    log.chmod(0o600)
    question = f"dash/workflows/{id_}/log", {"job": job["id"]}
    refused = ana.http.get(question[0], params=question[1])
    assert refused.status_code == 403
    assert "of the account" not in refused.text


def test_a_session_ends_when_it_is_idle(server: str, tmp_path: Path) -> None:
    with running_dash(tmp_path, "--api-url", server, environment={"TORC_DASH__SESSION_HOURS": "0.01"}) as program:
        owner = program.owner()
        assert owner.session()["idle_seconds"] == pytest.approx(36)
        assert owner.session()["logged_in"] is True


def test_a_proxy_may_keep_or_strip_its_prefix_and_show_the_page_in_a_frame(server: str, tmp_path: Path) -> None:
    flags = ("--base-path", "/node/n1/8090", "--frame-ancestors", "https://ondemand.example.org")
    with running_dash(tmp_path, "--api-url", server, *flags, "--allowed-host", "ondemand.example.org") as program:
        assert program.base.endswith("/node/n1/8090/")
        owner = program.owner()
        assert owner.session()["logged_in"] is True
        at_proxy = {"Host": "ondemand.example.org", "Origin": "https://ondemand.example.org"}
        answer = owner.http.get("api/workflows", headers=at_proxy)
        assert answer.status_code == 200
        assert "frame-ancestors https://ondemand.example.org" in answer.headers["content-security-policy"]
        assert "x-frame-options" not in answer.headers
        stripped = program.reader()
        stripped.http.base_url = httpx2.URL(program.base.replace("/node/n1/8090", ""))
        assert stripped.enter().session()["logged_in"] is True
        bare = owner.http.get(str(program.base).rstrip("/"), params={"token": TOKEN})
        assert (bare.status_code, bare.headers["location"]) == (307, f"8090/?token={TOKEN}")


def test_settings_that_cannot_be_are_refused(tmp_path: Path) -> None:
    for flags in (
        ("--frame-ancestors", "*; script-src *"),
        ("--base-path", "no/slash"),
        ("--api-url", "ftp://x"),
        ("--host", "256.1.1.1"),
    ):
        with pytest.raises(AssertionError, match=r"Error|error"), running_dash(tmp_path, *flags):
            pass
    short = {"TORC_DASH_TOKEN": "short"}
    with pytest.raises(AssertionError, match="at least"), running_dash(tmp_path, environment=short):
        pass
