"""The setting ``stdio`` of workflow and job in all formats, and what is wrong with it."""

from pathlib import Path

import pytest

from torc_framework.spec import inspect, load_plan, load_spec
from torc_framework.spec.write import write

YAML = """
name: w
stdio: combined
delete_stdio_on_success: true
jobs:
- {name: a, command: c}
- {name: b, command: c, stdio: none, delete_stdio_on_success: false}
"""
FORMATS = {
    "w.yaml": YAML,
    "w.json": """{"name": "w", "stdio": "combined", "delete_stdio_on_success": true, "jobs": [
        {"name": "a", "command": "c"},
        {"name": "b", "command": "c", "stdio": "none", "delete_stdio_on_success": false}]}""",
    "w.json5": """{name: 'w', stdio: 'combined', delete_stdio_on_success: true, jobs: [
        {name: 'a', command: 'c'},
        {name: 'b', command: 'c', stdio: 'none', delete_stdio_on_success: false}]}""",
    "w.kdl": """name "w"
        stdio "combined"
        delete_stdio_on_success #true
        job "a" { command "c"; }
        job "b" { command "c"; stdio "none"; delete_stdio_on_success #false; }
        """,
}


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_read_from_each_format(tmp_path: Path, name: str) -> None:
    """The plan keeps what the workflow and each job set; a file that is written again says the same."""
    path = tmp_path / name
    path.write_text(FORMATS[name])
    plan = load_plan(path).plan
    assert (plan.workflow.stdio, plan.workflow.delete_stdio_on_success) == ("combined", True)
    found = [(job.stdio, job.delete_stdio_on_success) for job in plan.jobs]
    assert found == [(None, None), ("none", False)]
    again = tmp_path / f"again{path.suffix}"
    again.write_text(write(load_spec(path), path.suffix[1:]))
    assert load_plan(again).plan == plan


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stdio: merged", "stdio: 'merged'"),
        ("stdio: [none]", "stdio: a list"),
        ("delete_stdio_on_success: sometimes", "delete_stdio_on_success: 'sometimes'; expected true or false"),
    ],
)
def test_other_values_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(f"name: w\n{line}\njobs:\n- {{name: a, command: c, {line}}}\n")
    found = [str(finding) for finding in inspect(path).findings]
    assert len(found) == 2
    assert all(message in text for text in found), found


def test_rules_that_search_what_is_not_kept_are_warned_of(tmp_path: Path) -> None:
    """Only jobs of that handler whose standard error goes to no file."""
    path = tmp_path / "w.yaml"
    jobs = "".join(
        f"- {{name: {name}, command: c, failure_handler: {handler}, stdio: {mode}}}\n"
        for name, handler, mode in [
            ("a", "h", "no_stdout"),
            ("b", "h", "no_stderr"),
            ("c", "h", "none"),
            ("d", "other", "none"),
            ("e", "h", "combined"),
        ]
    )
    handlers = "[{name: h, rules: [{stderr_regex: x}]}, {name: other, rules: [{exit_codes: [1]}]}]"
    path.write_text(f"name: w\nfailure_handlers: {handlers}\njobs:\n{jobs}")
    warnings = load_plan(path).warnings
    assert list(warnings) == [
        "stderr_regex fits nothing in job 'b' and 1 more: standard error is not kept (stdio: no_stderr)"
    ]
