"""The dashboard behind Apache with the two kinds of addresses that Open OnDemand's proxy of compute nodes has.

This is Debian's Apache with rules of the same effect, not Open OnDemand: the name in the ``Host`` header is that of the
node, and the scheme comes in ``X-Forwarded-Proto``.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dash_bench import TOKEN, DashReader, Listener, running_dash
from waiting import eventually

pytestmark = pytest.mark.e2e
MODULES = Path("/usr/lib/apache2/modules")
_LOADED = ("mpm_event", "authz_core", "headers", "rewrite", "proxy", "proxy_http")
_CONFIG = """
ServerRoot {folder}
PidFile {folder}/pid
ErrorLog {folder}/error.log
Listen 127.0.0.1:{port}
ServerName ondemand.example.org
User #65534
Group #65534
{modules}
RequestHeader set X-Forwarded-Proto https
RewriteEngine On
RewriteRule "^/rnode/([^/]+)/([0-9]+)(/.*)?$" "http://$1:$2$3" [P]
RewriteRule "^/node/([^/]+)/([0-9]+)(?:/.*)?$" "http://$1:$2$0" [P]
"""


def free_port() -> int:
    """Return a port that no program has now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running_apache(folder: Path) -> Iterator[str]:
    """Run Apache; give its URL. Where there is none the test is skipped, except in CI."""
    program = shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or not MODULES.is_dir():
        assert os.environ.get("CI") != "true", "Apache is missing: install the package apache2-bin"
        pytest.skip("Apache is not installed")
    port = free_port()
    modules = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in _LOADED)
    config = folder / "apache.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port, modules=modules))
    process = subprocess.Popen([program, "-f", str(config), "-DFOREGROUND"], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(process, port), "Apache does not listen")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _listens(process: "subprocess.Popen[bytes]", port: int) -> bool:
    assert process.poll() is None, "Apache has ended"
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("kind", ["node", "rnode"])
def test_the_page_is_live_at_the_address_of_a_node(server: str, tmp_path: Path, kind: str) -> None:
    """``/node/HOST/PORT/`` keeps its prefix, which ``--base-path`` names; ``/rnode/HOST/PORT/`` removes it."""
    port = free_port()
    prefix = f"/{kind}/127.0.0.1/{port}"
    flags = ("--port", str(port), *(("--base-path", prefix) if kind == "node" else ()))
    with running_apache(tmp_path) as apache, running_dash(tmp_path, "--api-url", server, *flags) as dash:
        reader = DashReader(f"{apache}{prefix}/")
        dash.readers.append(reader)
        bare = reader.http.get(f"{apache}{prefix}", params={"token": TOKEN})
        assert bare.headers["location"] in ("./", f"{port}/?token={TOKEN}")
        answer = reader.http.get("", params={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "./")
        assert "secure" in answer.headers["set-cookie"].lower()
        reader.http.cookies.jar.clear()  # this client sends no cookies of HTTPS to the test's HTTP
        reader.http.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
        reader.http.headers.update({"Origin": "https://ondemand.example.org", "Sec-Fetch-Site": "same-origin"})
        id_ = reader.take_csrf().create({"name": "w", "jobs": [{"name": "a", "command": "sleep 1"}]})
        listener = Listener(reader, id_)
        listener.wait_for_state("live")
        assert reader.run_to_its_end(id_)["state"] == "succeeded"
        kinds = {event["event_type"] for event in listener.wait_for("message", 3)}
        assert "compute_node_started" in kinds
