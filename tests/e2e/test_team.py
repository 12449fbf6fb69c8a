"""Two teams on one server: Alice and Bob train models, Carol and Dave process data."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from people import password_of, write_users
from server_child import ServerChild

PEOPLE = ("alice", "bob", "carol", "dave")
SPEC = """
name: {name}
description: {name}
jobs:
  - name: hello
    command: "{command}"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerChild]:
    """A server with access control; Alice is its administrator."""
    users = write_users(tmp_path / "htpasswd", PEOPLE)
    flags = ("--auth-file", str(users), "--require-auth", "--enforce-access-control", "--admin-user", "alice")
    with ServerChild(tmp_path, *flags, "--log-level", "warning") as child:
        yield child


@pytest.fixture
def as_(server: ServerChild, torc: Any) -> Callable[..., Any]:
    """Run ``torc`` as one of the users, whose login name is the one on the server."""

    def call(name: str, *arguments: Any, code: int = 0, **variables: str) -> Any:
        done = torc(
            *("-f", "json", *arguments),
            env={"TORC_API_URL": server.url, "USER": name, "TORC_PASSWORD": password_of(name), **variables},
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return json.loads(done.stdout if code == 0 else done.stderr)

    return call


def test_teams_see_their_own_and_what_is_shared_with_them(as_: Callable[..., Any], work: Path) -> None:
    """Groups are made, workflows created, shared and taken back; each step changes who sees what."""
    assert as_("alice", "ping")["status"] == "ok"
    groups = [as_("alice", "access-groups", "create", name)["id"] for name in ("ml-team", "data-team")]
    assert groups == [1, 2]
    for group, name in ((1, "alice"), (1, "bob"), (2, "carol"), (2, "dave")):
        as_("alice", "access-groups", "add-user", group, name)
    members = as_("bob", "access-groups", "list-members", 1)["members"]
    assert [(member["user_name"], member["role"]) for member in members] == [("alice", "member"), ("bob", "member")]
    assert [group["name"] for group in as_("bob", "access-groups", "list")["groups"]] == ["ml-team", "data-team"]
    assert [group["id"] for group in as_("dave", "access-groups", "list-user-groups", "alice")["groups"]] == [1]

    for name in ("ml_training", "data_pipeline"):
        (work / f"{name}.yaml").write_text(SPEC.format(name=name, command="echo hello"))
    carols = as_("carol", "workflows", "create", "data_pipeline.yaml")["id"]
    bobs = as_("bob", "workflows", "create", "ml_training.yaml")["id"]

    refused = as_("carol", "workflows", "get", bobs, code=1)
    assert refused["error"]["message"] == f"User 'carol' does not have access to workflow {bobs}"
    assert [w["id"] for w in as_("carol", "workflows", "list", "--all-users")] == [carols]
    assert "system administrator" in as_("carol", "access-groups", "create", "x", code=1)["error"]["message"]
    assert "neither the owner" not in as_("carol", "access-groups", "add-workflow", bobs, 2, code=1)["error"]["message"]

    as_("bob", "access-groups", "add-workflow", bobs, 2)
    assert [group["id"] for group in as_("carol", "access-groups", "list-workflow-groups", bobs)["groups"]] == [2]
    assert as_("carol", "workflows", "get", bobs)["user"] == "bob"
    assert [w["id"] for w in as_("dave", "workflows", "list", "--all-users")] == [carols + 1] == [bobs]
    assert as_("dave", "access-groups", "check", bobs, "dave")["has_access"] is True

    as_("bob", "access-groups", "remove-workflow", bobs, 2)
    as_("carol", "workflows", "get", bobs, code=1)
    assert [w["id"] for w in as_("alice", "workflows", "list", "--all-users")] == [carols, bobs]


def test_an_owner_runs_and_jobs_call_back_as_the_owner(
    as_: Callable[..., Any], server: ServerChild, work: Path
) -> None:
    """The runner logs in; a job has the credentials in its environment; other users may not run the workflow."""
    (work / "flow.yaml").write_text(SPEC.format(name="flow", command="torc -f json workflows list --all-users > seen"))
    assert as_("bob", "run", "flow.yaml")["workflow_id"] == 1
    assert [workflow["user"] for workflow in json.loads((work / "seen").read_text())] == ["bob"]
    as_("carol", "run", 1, code=1)
    assert as_("bob", "--username", "bob", "--password", password_of("bob"), "jobs", "list", 1, TORC_PASSWORD="no")


def test_a_password_file_reaches_jobs_as_a_path(as_: Callable[..., Any], work: Path) -> None:
    """The runner and a job log in with the file; the password itself stands in no environment."""
    (work / "password").write_text(password_of("bob") + "\n")
    (work / "password").chmod(0o600)
    (work / "flow.yaml").write_text(SPEC.format(name="flow", command="torc jobs list 1 > seen; env > environment"))
    variables = {"TORC_PASSWORD": "", "TORC_PASSWORD_FILE": "password"}
    assert as_("bob", "run", "flow.yaml", **variables)["workflow_id"] == 1
    assert (work / "seen").read_text()
    environment = (work / "environment").read_text().splitlines()
    assert f"TORC_PASSWORD_FILE={work / 'password'}" in environment
    assert not [line for line in environment if password_of("bob") in line]
    (work / "password").chmod(0o644)
    refused = as_("bob", "workflows", "list", code=2, **variables)
    assert "is open to other users (mode 0644)" in refused["error"]["message"]


def test_without_the_right_password_nothing_is_told(as_: Callable[..., Any], torc: Any, server: ServerChild) -> None:
    """The message names the refused user."""
    refused = as_("bob", "workflows", "list", code=1, TORC_PASSWORD="wrong")
    assert refused["error"]["message"] == "Authentication failed for user 'bob'"
    done = torc("workflows", "list", env={"TORC_API_URL": server.url})
    assert (done.returncode, done.stderr) == (1, "Error: Authentication required but no credentials provided\n")
