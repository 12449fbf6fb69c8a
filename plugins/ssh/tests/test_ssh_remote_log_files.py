"""Names of files that a host tells: those that would leave the local folder are left out."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from torc_ssh.remote_runners.log_files import OutputFolder, list_logs, local_path, partial_path
from torc_ssh.remote_runners.runner_process import RunnerFiles, check_output_dir
from torc_ssh.session import HelperError

from torc_framework.api import UserError

FILES = RunnerFiles("torc_output", 7)


class Told:
    """A session whose host tells these rows."""

    def __init__(self, *rows: Any) -> None:
        self.rows = list(rows)

    async def request(self, do: str, **arguments: Any) -> list[Any]:
        assert (do, arguments) == ("list", {"path": "torc_output"})
        return self.rows


def names(target: Path, *rows: Any) -> tuple[list[str], list[str]]:
    session: Any = Told(*rows)
    found = asyncio.run(list_logs(session, FILES, target))
    return [file.path for file in found.files], found.left_out


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a//b", ".", "..", "", "a\0b", "link/x", "link"])
def test_names_that_leave_the_folder_are_left_out(tmp_path: Path, path: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path)
    assert local_path(tmp_path / "here", path) is None
    assert names(tmp_path / "here", [path, "file", 1, 1, 0o600], ["good", "file", 1, 1, 0o600]) == (["good"], [path])


def test_links_and_devices_are_left_out(tmp_path: Path) -> None:
    rows = [
        ["a", "link", 1, 1, 0o777],
        ["b", "other", 0, 1, 0o666],
        ["c", "dir", 1, 1, 0o755],
        ["c/d", "file", 1, 1, 0o644],
    ]
    assert names(tmp_path, *rows) == (["c/d"], ["a", "b"])


def test_files_of_other_workflows_and_state_stay(tmp_path: Path) -> None:
    mine = [
        "job_stdio/job_wf7_j1_r1_a1.o",
        "job_runner_h1_wf7_r1.log",
        "resource_utilization/resource_metrics_h_1_7_2.db",
        "torc_worker_7.log",
        "torc_worker_7.json",
        "action_wf7_a1.log",
        "notes.txt",
    ]
    others = [
        "job_stdio/job_wf77_j1_r1_a1.o",
        "job_runner_wf7_wf8_r1.log",
        "resource_utilization/resource_metrics_h_7_8_2.db",
        "torc_worker_8.log",
        "torc_worker_7.tunnel",
        "torc_worker_7.ca.pem",
        ".torc_runner/runner_h1_p1_00.lock",
    ]
    assert names(tmp_path, *([name, "file", 0, 0, 0o644] for name in mine + others)) == (mine, [])


@pytest.mark.parametrize(
    "row", [None, [], ["a"], ["a", "file", -1, 1, 0], [1, "file", 1, 1, 0], ["a", "file", "1", 1, 0]]
)
def test_a_wrong_answer_is_an_error(tmp_path: Path, row: Any) -> None:
    with pytest.raises(HelperError, match="list of files"):
        names(tmp_path, row)


def test_partial_copies_are_found_again(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 255)
    assert partial_path(long) == partial_path(long) != partial_path(tmp_path / "y")
    partial_path(long).touch()


@pytest.mark.parametrize("text", ["", ".", "/", "~", "~/", "..", "../x", "a/../..", "~other/x", "//", "/..", "a\0b"])
def test_output_directories_that_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--output-dir"):
        check_output_dir(text, "--output-dir")


@pytest.mark.parametrize(("text", "path"), [("~/a/b/", "a/b"), ("/data/torc//x", "/data/torc/x"), (" a ", "a")])
def test_output_directories(text: str, path: str) -> None:
    assert check_output_dir(text, "--output-dir") == path


def test_what_torc_did_not_make_is_seen() -> None:
    def read(*names: str) -> OutputFolder:
        session: Any = Told(*([name, "file", 0, 0, 0o644] for name in names))
        return asyncio.run(OutputFolder.read(session, "torc_output"))

    own = read("job_stdio", "job_stdio/a", "torc_worker_7.json", "torc_worker_12.json", ".torc_runner")
    assert (own.foreign, own.workflow_ids, own.is_torc) == ([], [7, 12], True)
    assert read("job_stdio", "thesis.tex").foreign == ["thesis.tex"]
    assert not read().is_torc
