"""The dashboard behind nginx at a prefix, with nginx's own settings for buffers and host names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dash_bench import TOKEN, DashProgram, DashReader, Listener
from proxies import running_nginx

pytestmark = pytest.mark.e2e


@pytest.fixture
def proxied(dash: DashProgram, tmp_path: Path) -> Iterator[str]:
    """The URL of the page behind nginx."""
    with running_nginx(tmp_path, dash.base) as url:
        yield url


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
