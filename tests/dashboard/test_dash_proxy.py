"""The dashboard behind nginx at a prefix, with nginx's own settings for buffers and host names."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dash_bench import TOKEN, DashProgram, DashReader, Listener

pytestmark = pytest.mark.e2e
_CONFIG = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    {temporary}
    server {{ listen 127.0.0.1:{port}; location /torc/ {{ proxy_pass {base}; }} }}
}}
"""
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@pytest.fixture
def proxied(dash: DashProgram, tmp_path: Path) -> Iterator[str]:
    """The URL of the page behind nginx."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        assert os.environ.get("CI") != "true", "nginx is missing: install the package nginx-light"
        pytest.skip("nginx is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    temporary = " ".join(f"{name}_temp_path {tmp_path}/{name};" for name in _TEMPORARY)
    config = tmp_path / "nginx.conf"
    config.write_text(_CONFIG.format(folder=tmp_path, temporary=temporary, port=port, base=dash.base))
    process = subprocess.Popen([nginx, "-c", str(config), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not _listens(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/torc/"
    finally:
        process.terminate()
        process.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_the_page_is_live_below_a_prefix(dash: DashProgram, owner: DashReader, proxied: str) -> None:
    reader = DashReader(proxied)
    dash.readers.append(reader)
    answer = reader.http.get("", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "./")
    assert {cookie.path.rstrip("/") for cookie in reader.http.cookies.jar} == {"/torc"}
    as_browsers_send = {"Origin": proxied.removesuffix("/torc/"), "Sec-Fetch-Site": "same-origin"}
    reader.http.headers.update(as_browsers_send)
    id_ = reader.take_csrf().create({"name": "w", "jobs": [{"name": "a", "command": "sleep 1"}]})
    listener = Listener(reader, id_)
    listener.wait_for_state("live")
    assert reader.run_to_its_end(id_)["state"] == "succeeded"
    kinds = {event["event_type"] for event in listener.wait_for("message", 3)}
    assert "compute_node_started" in kinds
    assert owner.get(f"api/workflows/{id_}")["name"] == "w"
