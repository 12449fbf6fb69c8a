"""Specs that are wrong: one clear message each, exit code 2, nothing created."""

import json
from pathlib import Path
from typing import Any

import pytest

from torc_framework.client import TorcClient
from torc_framework.models.records import WorkflowRecord

pytestmark = pytest.mark.e2e

JOB = "jobs: [{name: a, command: 'true'}]"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

BAD: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("x.yaml", "", ""),
    "only comments": ("x.yaml", "# nothing\n", ""),
    "a list": ("x.yaml", "- 1\n- 2\n", ""),
    "a text": ("x.json", '"hello"', ""),
    "no name": ("x.yaml", JOB, "name"),
    "no jobs": ("x.yaml", "name: x\n", "jobs"),
    "wrong type": ("x.yaml", "name: x\njobs: [{name: a, command: 5}]", "command"),
    "wrong shape": ("x.yaml", "name: x\njobs: {a: b}", "jobs"),
    "unknown key": ("x.yaml", f"name: x\nnonsense: 1\n{JOB}", "nonsense"),
    "unknown key of a job": ("x.yaml", "name: x\njobs: [{name: a, comand: 'true'}]", "comand"),
    "unknown reference": ("x.yaml", "name: x\njobs: [{name: a, command: 'true', depends_on: [b]}]", "b"),
    "unknown file": ("x.yaml", "name: x\njobs: [{name: a, command: 'cat ${files.input.nope}'}]", "nope"),
    "cycle": (
        "x.yaml",
        "name: x\njobs: [{name: a, command: b, depends_on: [b]}, {name: b, command: b, depends_on: [a]}]",
        "a",
    ),
    "cycle through files": (
        "x.yaml",
        "name: x\nfiles: [{name: f, path: f}, {name: g, path: g}]\njobs:\n"
        "  - {name: a, command: 'cat ${files.input.f} > ${files.output.g}'}\n"
        "  - {name: b, command: 'cat ${files.input.g} > ${files.output.f}'}",
        "a",
    ),
    "duplicate job": ("x.yaml", "name: x\njobs: [{name: a, command: b}, {name: a, command: c}]", "a"),
    "duplicate key": ("x.yaml", f"name: x\nname: y\n{JOB}", "name"),
    "bad regex": ("x.yaml", "name: x\njobs: [{name: a, command: b, depends_on_regexes: ['(']}]", "("),
    "bad range": ("x.yaml", "name: x\njobs: [{name: 'a{i}', command: b, parameters: {i: '1:x'}}]", "1:x"),
    "bad yaml": ("x.yaml", "name: x\njobs: [", ""),
    "bad json": ("x.json", '{"name": "x",', ""),
    "bad json5": ("x.json5", "{name: 'x', jobs: [", ""),
    "bad kdl": ("x.kdl", 'name "x\njob "a" {', ""),
    "unknown kdl node": ("x.kdl", 'name "x"\njob "a" {\n  command "true"\n}\nnonsense 1\n', "nonsense"),
    "deep nesting, yaml": ("x.yaml", "name: x\njobs: " + "[" * 100_000, ""),
    "deep nesting, json": ("x.json", '{"name": "x", "jobs": ' + "[" * 5_000_000 + "]" * 5_000_000 + "}", ""),
    "deep nesting, json5": ("x.json5", "{name: 'x', jobs: " + "[" * 1_000_000 + "]" * 1_000_000 + "}", ""),
    "deep nesting, kdl": ("x.kdl", "a {" * 200_000, ""),
    "alias bomb": ("x.yaml", f"{BOMB}name: x\njobs: *i\n", ""),
    "not utf-8": ("x.yaml", b"name: \xff\xfe\njobs: []\n", ""),
    "binary": ("x.json", bytes(range(256)), ""),
    "null bytes": ("x.yaml", b"name: x\x00\n", ""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_spec_is_refused(torc: Any, server: str, work: Path, name: str) -> None:
    """For every kind of error: one message, exit code 2, nothing created."""
    env = {"TORC_API_URL": server}
    file, content, mention = BAD[name]
    path = work / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = torc("run", file, env=env)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr[:2000]
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("Error: ") == 1
    assert file in done.stderr
    assert mention in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 5000
    with TorcClient(server) as client:
        assert client.find(WorkflowRecord) == []


def test_a_folder_and_a_missing_file_are_refused(torc: Any, work: Path) -> None:
    """Both say what they are; a missing file is not taken for an id."""
    (work / "folder").mkdir()
    folder, missing = torc("run", "folder"), torc("run", "missing.yaml")
    assert (folder.returncode, missing.returncode) == (2, 2)
    assert "folder" in folder.stderr
    assert "missing.yaml" in missing.stderr
    assert len(folder.stderr.splitlines()) == len(missing.stderr.splitlines()) == 1


def test_all_findings_come_at_once_with_their_places(torc: Any, work: Path) -> None:
    """Line and column of each, and what was meant."""
    (work / "x.yaml").write_text(
        "name: x\njobs:\n  - name: a\n    comand: b\n  - name: b\n    command: c\n    depends_on: [z]\n"
    )
    done = torc("workflows", "create", "x.yaml")
    assert done.returncode == 2
    assert "x.yaml:4:" in done.stderr
    assert "x.yaml:7:" in done.stderr
    assert "'command'" in done.stderr


def test_findings_are_data_where_json_is_wanted(torc: Any, work: Path) -> None:
    """The same findings, for a program."""
    (work / "x.yaml").write_text("name: x\nnonsense: 1\njobs: [{name: a, command: b}]\n")
    done = torc("-f", "json", "workflows", "create", "x.yaml")
    error = json.loads(done.stderr)["error"]
    assert done.returncode == error["exit_status"] == 2
    assert error["findings"][0]["line"] == 2


def test_a_dry_run_reports_and_creates_nothing(torc: Any, work: Path) -> None:
    """Valid: exit code 0 and the summary. Not valid: exit code 1 and the findings."""
    (work / "good.yaml").write_text("name: x\njobs: [{name: 'a{i}', command: b, parameters: {i: '1:5'}}]\n")
    (work / "bad.yaml").write_text("name: x\nnonsense: 1\njobs: [{name: a, command: b}]\n")
    good, bad = (torc("workflows", "create", "--dry-run", f"{name}.yaml", "-f", "json") for name in ("good", "bad"))
    assert (good.returncode, bad.returncode) == (0, 1)
    summary = json.loads(good.stdout)["summary"]
    assert (summary["job_count"], summary["job_count_before_expansion"]) == (5, 1)
    document = json.loads(bad.stdout)
    assert document["valid"] is False
    assert "nonsense" in document["errors"][0]
    text = torc("workflows", "create", "--dry-run", "good.yaml").stdout
    assert "Jobs: 5 (expanded from 1 parameterized job specs)" in text
    assert text.rstrip().endswith("Validation: PASSED")
    assert torc("workflows", "create", "--dry-run", "bad.yaml").stdout.rstrip().endswith("Validation: FAILED")
    assert json.loads(torc("workflows", "list", "-f", "json").stdout) == []
