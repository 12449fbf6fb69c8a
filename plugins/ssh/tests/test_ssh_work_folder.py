"""Where files of this machine are on a host."""

import pytest
from torc_ssh.executor.work_folder import UnmappedPathError, WorkFolder, work_folder

from torc_framework.api import RunnerContext


def folder_for(working_dir: str, output_dir: str = "/out", *, is_shared: bool = False) -> WorkFolder:
    context = RunnerContext(7, 1, output_dir, working_dir, "http://127.0.0.1:1", hostname="here")
    return work_folder(context, "torc_work", "/users/w", is_shared=is_shared)


def test_relative_paths_stay_below_the_root() -> None:
    folder = folder_for("/users/u/projects/p/run")
    assert folder.root.startswith("/users/w/torc_work/wf7_")
    assert folder.remote == f"{folder.root}/projects/p/run"
    assert folder.paths("data/x") == ("/users/u/projects/p/run/data/x", f"{folder.remote}/data/x")
    assert folder.paths("../../shared/x") == ("/users/u/projects/shared/x", f"{folder.root}/projects/shared/x")
    with pytest.raises(UnmappedPathError, match="write it as an absolute path"):
        folder.paths("../../../../x")


def test_absolute_paths_are_the_same_on_both() -> None:
    assert folder_for("/users/u").paths("/data/x/../y") == ("/data/y", "/data/y")


@pytest.mark.parametrize("path", ["..", "../../..", "x\0y"])
def test_paths_that_cannot_be_are_refused(path: str) -> None:
    with pytest.raises(UnmappedPathError):
        folder_for("/u").paths(path)


def test_workflows_of_different_folders_have_different_roots() -> None:
    assert folder_for("/u/a").root != folder_for("/u/b").root
    assert folder_for("/u/a").root != folder_for("/u/a", "/other").root
    assert folder_for("/u/a") == folder_for("/u/a")


def test_a_shared_folder_changes_nothing() -> None:
    folder = folder_for("/u/a", is_shared=True)
    assert folder.paths("../x") == ("/u/x", "/u/x")
    assert folder.log("/out/job_stdio/j.o") == "/out/job_stdio/j.o"
    assert folder.environment({"TORC_OUTPUT_DIR": "/out"}) == {"TORC_OUTPUT_DIR": "/out"}


def test_the_environment_names_folders_of_the_host() -> None:
    folder = folder_for("/u/a")
    assert folder.environment({"TORC_OUTPUT_DIR": "/out", "A": "1"}) == {
        "TORC_OUTPUT_DIR": f"{folder.remote}/torc_output",
        "A": "1",
    }
