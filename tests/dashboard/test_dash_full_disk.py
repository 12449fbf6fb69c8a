"""Disks that fill while the dashboard runs: it says so, stores nothing in part, and goes on when there is room."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from dash_bench import DashProgram, DashReader, running_dash
from small_disk import MISSING, mounted

pytestmark = pytest.mark.e2e
SPEC: Final = {"name": "w", "jobs": [{"name": "a", "command": "true"}]}
ORDER: Final = {"command": "create", "workflow_id": None, "options": {"text": "jobs: []", "format": "yaml"}}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of a few MiB."""
    with mounted(tmp_path / "disk", "8m") as folder:
        yield folder or pytest.skip(MISSING)


@pytest.fixture
def full(disk: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DashProgram]:
    """A dashboard with its database or its temporary files on that file system."""
    is_database = request.param == "database"
    flags = ("--standalone", "--database", str((disk if is_database else tmp_path) / "torc.db"))
    with running_dash(tmp_path, *flags, environment={} if is_database else {"TMPDIR": str(disk)}) as program:
        yield program


def fill(disk: Path, left: int = 0) -> Path:
    """Fill a file system, but for some bytes; return the file that fills it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - left))
    return filler


def names(reader: DashReader) -> list[str]:
    """Return the names of all workflows."""
    return [each["name"] for each in reader.get("api/workflows")["items"]]


@pytest.mark.parametrize("full", ["temporary files"], indirect=True)
@pytest.mark.parametrize("left", [0, 4096, 65536])
def test_no_room_for_temporary_files(full: DashProgram, disk: Path, left: int) -> None:
    """Commands are refused with the reason; what needs no files goes on."""
    owner = full.owner()
    owner.create(SPEC)
    filler = fill(disk, left)
    answer = owner.http.post("dash/commands", json={**ORDER, "wait": 30})
    assert answer.status_code == 507
    message = answer.json()["error"]["message"]
    assert (
        message == f"the disk of {disk} is full: make room there, or start torc-dash with TMPDIR set to another folder"
    )
    assert names(owner) == ["w"]
    assert owner.get("dash/workflows/1/overview")["headline"]
    assert [each for each in disk.iterdir() if each != filler] == []
    filler.unlink()
    owner.create(SPEC)
    assert len(names(owner)) == 2
    assert "Traceback" not in (full.folder / "dash.err").read_text()


@pytest.mark.parametrize("full", ["temporary files"], indirect=True)
def test_the_room_for_output_ends_while_a_command_runs(full: DashProgram, disk: Path) -> None:
    owner = full.owner()
    id_ = owner.create({"name": "w", "jobs": [{"name": "a", "command": f"head -c 16m /dev/zero > {disk}/filler"}]})
    run = owner.run_to_its_end(id_)
    assert (disk / "filler").exists(), run
    summary = owner.http.post("dash/commands", json={"command": "utilization", "workflow_id": id_, "wait": 30})
    assert summary.status_code == 507
    (disk / "filler").unlink()
    assert owner.order("utilization", id_)["state"] in ("succeeded", "failed")
    assert "Traceback" not in (full.folder / "dash.err").read_text()


@pytest.mark.parametrize("full", ["database"], indirect=True)
def test_no_room_for_the_database(full: DashProgram, disk: Path) -> None:
    """A change is refused with the reason, reading goes on, and later changes succeed."""
    owner = full.owner()
    owner.create(SPEC)
    filler = fill(disk)
    jobs = [{"name": f"j{number}", "command": "true" * 90} for number in range(3000)]
    order = {"text": json.dumps({"name": "large", "jobs": jobs}), "format": "json"}
    stored = ["w"]
    while (run := owner.order("create", options=order))["state"] == "succeeded":
        stored.append("large")  # the log of SQLite had room for it
        assert len(stored) < 10
    assert run["state"] == "failed"
    assert "database or disk is full; nothing of this request was stored; make room" in run["error"]
    assert "Traceback" not in run["error"]
    refused = owner.http.post("api/workflows", json={"name": "x", "user": "u", "description": "x" * (1 << 20)})
    assert refused.status_code == 507
    assert sorted(names(owner), reverse=True) == stored
    filler.unlink()
    assert owner.run_to_its_end(1)["state"] == "succeeded"
    owner.create(SPEC)
    assert len(names(owner)) == len(stored) + 1
    assert "Traceback" not in (full.folder / "dash.err").read_text()
