"""The dashboard behind Apache with the two kinds of addresses that Open OnDemand's proxy of compute nodes has.

This is Debian's Apache with rules of the same effect, not Open OnDemand: the name in the ``Host`` header is that of the
node, and the scheme comes in ``X-Forwarded-Proto``.
"""

from pathlib import Path

import pytest
from dash_bench import TOKEN, DashReader, Listener, running_dash
from proxies import free_port, running_apache

pytestmark = pytest.mark.e2e
RULES = r"""
RequestHeader set X-Forwarded-Proto https
RewriteEngine On
RewriteRule "^/rnode/([^/]+)/([0-9]+)(/.*)?$" "http://$1:$2$3" [P]
RewriteRule "^/node/([^/]+)/([0-9]+)(?:/.*)?$" "http://$1:$2$0" [P]
"""


@pytest.mark.parametrize("kind", ["node", "rnode"])
def test_the_page_is_live_at_the_address_of_a_node(server: str, tmp_path: Path, kind: str) -> None:
    """``/node/HOST/PORT/`` keeps its prefix, which ``--base-path`` names; ``/rnode/HOST/PORT/`` removes it."""
    port = free_port()
    prefix = f"/{kind}/127.0.0.1/{port}"
    flags = ("--port", str(port), *(("--base-path", prefix) if kind == "node" else ()))
    with running_apache(tmp_path, RULES) as apache, running_dash(tmp_path, "--api-url", server, *flags) as dash:
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
