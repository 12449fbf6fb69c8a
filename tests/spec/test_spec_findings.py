"""Findings in a spec: position, what was found, and what was expected."""

import time
from pathlib import Path
from textwrap import dedent

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import JSON_VALUES

from torc_framework.spec import LoadOptions, SpecError, dry_run, inspect, load_plan
from torc_framework.spec.checking.fast_check import compile_check
from torc_framework.spec.language.findings import (
    MAX_KEPT,
    MAX_SHOWN,
    Problems,
    SpecFinding,
    describe_findings,
    show_path,
)
from torc_framework.spec.language.schema import VARIANTS, workflow_schema

PLAIN = LoadOptions()
HEAD = "name: w\n"


def findings(folder: Path, text: str, options: LoadOptions = PLAIN, name: str = "w.yaml") -> list[SpecFinding]:
    path = folder / name
    path.write_text(dedent(text))
    return inspect(path, options=options).findings


def jobs(*lines: str, rest: str = "") -> str:
    return HEAD + "jobs:\n" + "".join(f"- {line}\n" for line in lines) + rest


GOOD = "{name: a, command: c}"

# text, then what each finding's "path: message" must contain, in the order of the file
BAD: dict[str, tuple[str, list[str]]] = {
    "no name": ("jobs: []\n", ["'name' is missing; name: Name of the workflow."]),
    "no jobs": (HEAD, ["'jobs' is missing"]),
    "name of the wrong type": ("name: 5\njobs: []\n", ["name: the number 5; expected text; put it in quotes"]),
    "name is empty": ("name: ''\njobs: []\n", ["name: ''; expected text that is not empty"]),
    "jobs no list": (HEAD + "jobs: {a: b}\n", ["jobs: a mapping of 1; expected a list"]),
    "job no mapping": (jobs("x"), ["jobs[0]: 'x'; expected a mapping"]),
    "unknown key at the top": (
        HEAD + "jobs: []\nfile: []\n",
        ["file: unknown key 'file'; did you mean 'files'?"],
    ),
    "unknown key of a job": (
        jobs("{name: a, comand: c}"),
        [
            "jobs[0]: 'command' is missing; command: Command line",
            "comand: unknown key 'comand'; did you mean 'command'?",
        ],
    ),
    "unknown key, nothing near": (jobs("{name: a, command: c, zzz: 1}"), ["unknown key 'zzz'; known: name, command"]),
    "no shells": (
        "shell: bash -c\n" + jobs("{name: a, command: c, shell: 'bash \"x'}", "{name: b, command: c}"),
        [
            "shell: shell 'bash -c' has '-c', which is added to it; write a program and its options",
            "jobs[0].shell: shell 'bash \"x': no closing quotation; write a program",
        ],
    ),
    "truth as text": (
        jobs("{name: a, command: c, supports_termination: 'true'}"),
        ["supports_termination: 'true'; expected true or false"],
    ),
    "null for a needed text": (jobs("{name: a, command: null}"), ["command: nothing (null); expected text"]),
    "text for a list": (
        jobs("{name: a, command: c, depends_on: b}"),
        ["depends_on: 'b'; expected a list; write [b] or a list of one entry"],
    ),
    "number in a list": (
        jobs("{name: a, command: c, depends_on: [1]}"),
        ["depends_on[0]: the number 1; expected text"],
    ),
    "unknown mode": (
        jobs("{name: a, command: c, parameter_mode: zipp}"),
        ["'zipp'; expected one of 'product', 'zip'; did you mean 'zip'?"],
    ),
    "list as parameter": (
        jobs("{name: 'a{i}', command: c, parameters: {i: [1, 2]}}"),
        ['parameters.i: a list of 2; expected text; write the list as text: "[1,2,3]"'],
    ),
    "number as parameter": (
        jobs("{name: 'a{i}', command: c, parameters: {i: 5}}"),
        ["parameters.i: the number 5; expected text; put it in quotes"],
    ),
    "unknown job": (
        jobs("{name: build, command: c}", "{name: b, command: c, depends_on: [biuld]}"),
        ["jobs[1].depends_on[0]: unknown job 'biuld' in job 'b'; did you mean 'build'?"],
    ),
    "unknown file": (
        jobs("{name: a, command: c, input_files: [x], output_files: [y]}"),
        ["input_files[0]: unknown file 'x' in job 'a'; none are defined", "output_files[0]: unknown file 'y'"],
    ),
    "unknown user data": (
        jobs("{name: a, command: c, input_user_data: [x], output_user_data: [y]}"),
        ["unknown user data 'x'", "unknown user data 'y'"],
    ),
    "unknown things by name": (
        jobs("{name: a, command: c, resource_requirements: r, failure_handler: h, scheduler: s}"),
        ["unknown resource requirements 'r'", "unknown failure handler 'h'", "unknown scheduler 's'"],
    ),
    "unknown in a reference": (
        jobs(
            "{name: a, command: 'cat ${files.input.x} ${user_data.output.y}', invocation_script: '${files.output.z}'}"
        ),
        ["command: unknown file 'x'", "command: unknown user data 'y'", "invocation_script: unknown file 'z'"],
    ),
    "reference without direction": (
        jobs("{name: a, command: 'cat ${files.inptu.x}'}"),
        ["unknown reference '${files.inptu.x}'; expected input or output; did you mean 'input'?"],
    ),
    "pattern without match": (
        jobs("{name: a, command: c, depends_on_regexes: ['^x']}"),
        ["depends_on_regexes[0]: pattern '^x' matches none of the 1 job names (in job 'a'); among them: a"],
    ),
    "bad patterns": (
        jobs("{name: a, command: c, depends_on_regexes: ['('], input_file_regexes: ['[']}"),
        ["'(' is no regular expression", "'[' is no regular expression"],
    ),
    "waits for itself": (jobs("{name: a, command: c, depends_on: [a]}"), ["depends_on: job 'a' waits for itself"]),
    "job twice": (
        jobs(GOOD, GOOD),
        ["jobs[1].name: job name 'a' is given twice; jobs[0] has it already"],
    ),
    "job made twice": (
        jobs("{name: 'a{i:.1f}', command: c, parameters: {i: '[0.01, 0.02]'}}"),
        ["jobs[0].name: the parameters make job name 'a0.0' twice; put every parameter into the name"],
    ),
    "others twice": (
        jobs(
            GOOD,
            rest="files: [{name: f, path: p}, {name: f, path: q}]\n"
            "user_data: [{name: u}, {name: u}]\n"
            "resource_requirements: [{name: r, num_cpus: 1, memory: 1m}, {name: r, num_cpus: 1, memory: 1m}]\n"
            "failure_handlers: [{name: h, rules: [{}]}, {name: h, rules: [{}]}]\n"
            "slurm_schedulers: [{name: s, account: x}, {name: s, account: x}, {account: x}, {account: x}]\n",
        ),
        ["file name 'f'", "user data name 'u'", "resource requirements name 'r'", "failure handler name 'h'", "'s'"],
    ),
    "bad amounts": (
        jobs(
            GOOD,
            rest="resource_requirements:\n- {name: r, num_cpus: 0, memory: 4gb, num_gpus: -1, num_nodes: 1.0}\n"
            "- {name: s, num_cpus: 1, memory: 1m, runtime: 1h}\n- {name: t, num_cpus: 1, memory: 1m, runtime: PT0S}\n",
        ),
        [
            "num_cpus: the number 0; expected 1 or more",
            "memory: '4gb' is not a memory size",
            "num_gpus: the number -1; expected 0 or more",
            "num_nodes: the number 1.0; expected a whole number",
            "runtime: '1h' is not an ISO 8601 duration",
            "runtime: 'PT0S' is less than a second",
        ],
    ),
    "requirements named default": (
        jobs(GOOD, rest="resource_requirements: [{name: default, num_cpus: 1, memory: 1m}]\n"),
        ["'default' names what every workflow has already; choose another name"],
    ),
    "unknown rule key": (
        jobs(GOOD, rest="failure_handlers: [{name: h, rules: [{exit_code: [1]}]}]\n"),
        ["failure_handlers[0].rules[0].exit_code: unknown key 'exit_code'; did you mean 'exit_codes'?"],
    ),
    "no rules": (
        jobs(GOOD, rest="failure_handlers: [{name: h, rules: []}]\n"),
        ["rules: a list of 0; expected a list that is not empty"],
    ),
    "bad walltime": (
        jobs(GOOD, rest="slurm_schedulers: [{account: x, walltime: 4h}]\n"),
        ["walltime: '4h'; expected a time such as 04:00:00"],
    ),
    "managed default": (
        jobs(GOOD, rest="slurm_defaults: {qos: high, job-name: x, mem: 4g}\n"),
        ["slurm_defaults.job-name: 'job-name' cannot be a default", "slurm_defaults.mem: 'mem'"],
    ),
    "unknown words": (
        jobs(GOOD, rest="jobs_sort_method: fast\nresource_monitor: {granularity: fine}\n"),
        ["jobs_sort_method: 'fast'; expected one of", "resource_monitor.granularity: 'fine'; expected one of"],
    ),
    "numbers that JSON cannot hold": (
        jobs(GOOD, rest="user_data: [{name: u, data: {a: [.inf]}}, {name: v, data: 36893488147419103232}]\n"),
        [
            "user_data[0].data.a[0]: the number inf; expected a number that JSON can hold",
            "user_data[1].data: a number of",
        ],
    ),
    "user data nested too deeply": (
        jobs(GOOD, rest="metadata: " + "[" * 120 + "]" * 120 + "\n"),
        ["metadata: nested too deeply; expected at most 100 levels"],
    ),
    "two spellings of the scheduler": (
        jobs(
            "{name: a, command: c, scheduler: s, slurm_scheduler: t}",
            rest="slurm_schedulers: [{name: s, account: x}, {name: t, account: x}]\n",
        ),
        ["slurm_scheduler: 't', while scheduler is 's'; keep one of them"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_each_mistake_is_told_in_full(tmp_path: Path, case: str) -> None:
    """All of a file's findings, no others, in its order, with line and column."""
    text, expected = BAD[case]
    found = findings(tmp_path, text)
    told = [f"{show_path(finding.path)}: {finding.message}" for finding in found]
    assert len(found) == len(expected), told
    for one, part in zip(told, expected, strict=True):
        assert part in one
    assert all(finding.line and finding.column and finding.file for finding in found)


def test_all_findings_of_all_stages_come_at_once(tmp_path: Path) -> None:
    """A wrong type, an unknown key, a bad parameter, an unknown name and a cycle in one file."""
    found = findings(
        tmp_path,
        """\
        name: w
        jobs:
          - name: a
            command: 7
          - name: b
            command: c
            dependson: [a]
          - {name: "p{i}", command: c, parameters: {i: "1:x"}}
          - {name: d, command: c, resource_requirements: smal}
          - {name: e, command: c, depends_on: [f]}
          - {name: f, command: c, depends_on: [e]}
        resource_requirements:
          - {name: small, num_cpus: 1, memory: 4q}
        """,
    )
    lines = (tmp_path / "w.yaml").read_text().splitlines()
    assert [(finding.line, lines[(finding.line or 0) - 1][(finding.column or 0) - 1 :]) for finding in found] == [
        (4, "7"),
        (7, "dependson: [a]"),
        (8, '"1:x"}}'),
        (9, "smal}"),
        (10, "{name: e, command: c, depends_on: [f]}"),
        (13, "4q}"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        (
            "w.json",
            '{\n  "name": 5,\n  "jobs": [\n    {"name": "a", "command": "c",\n     "depnds_on": []},\n    7\n  ]\n}',
            [(2, 11), (5, 6), (6, 5)],
        ),
        (
            "w.json5",
            "{\n  name: 5, // name: 5\n  /* x */ 'jobs': [\n    {name: 'a', command: 'c',\n"
            "     depnds_on: []},\n    7,\n  ],\n}",
            [(2, 9), (5, 6), (6, 5)],
        ),
        (
            "w.kdl",
            'name 5\njob "a" {\n  command "c"\n  depnds_on "b"\n}\njob "b" command="c" {\n  depends_on "a" "zz"\n}\n',
            [(1, 1), (4, 3), (7, 3)],
        ),
        ("w.yaml", "name: 5\njobs:\n- name: a\n  command: c\n  depnds_on: []\n- 7\n", [(1, 7), (5, 3), (6, 3)]),
    ],
)
def test_places_in_every_format(tmp_path: Path, name: str, text: str, places: list[tuple[int, int]]) -> None:
    assert [(found.line, found.column) for found in findings(tmp_path, text, name=name)] == places


def test_kdl_nodes_that_fit_nowhere_are_never_dropped(tmp_path: Path) -> None:
    found = findings(
        tmp_path,
        """\
        name "w"
        name "again"
        nonsense 1
        job "a" "b" {
          command "c" "d"
          supports_termination
          depends_on "x" y=1 { z; }
          invocation_script "s" { q; }
        }
        job "b" command="c" colour="red"
        user_data "u" { data "no json"; }
        resource_monitor 1
        action { trigger_type "on_workflow_start"; action_type "run_commands"; commnd "x"; }
        """,
        name="w.kdl",
    )
    told = "\n".join(map(str, found))
    for part in (
        "'name' is given twice",
        "unknown node or property 'nonsense'",
        "'job' has the argument 'b'; expected one argument, its name",
        "'command' has 2 arguments; expected one argument",
        "'supports_termination' has 0 arguments",
        "'y' within 'depends_on'; expected nothing but arguments",
        "'z' within 'depends_on'",
        "'q' within 'invocation_script'",
        "unknown node or property 'colour'",
        "'data' has the argument 'no json'; expected JSON text",
        "'resource_monitor' has the argument 1; expected no argument",
        "unknown node or property 'commnd'; did you mean 'command'?",
    ):
        assert part in told


def test_escapes_that_no_command_line_can_hold(tmp_path: Path) -> None:
    nul = findings(tmp_path, '{"name": "w", "jobs": [{"name": "a", "command": "x\\u0000y"}]}', name="w.json")
    half = findings(tmp_path, '{"name": "w", "jobs": [{"name": "\\ud800", "command": "x"}]}', name="w.json")
    assert "NUL character" in nul[0].message
    assert nul[0].path == ("jobs", 0, "command")
    assert "surrogate" in half[0].message


def test_many_findings_are_capped(tmp_path: Path) -> None:
    """Fifty are shown, a thousand kept; the text says how many are left out, and it stays quick."""
    text = jobs(*["{name: a, comand: c}"] * 3000)
    began = time.monotonic()
    (tmp_path / "w.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load_plan(tmp_path / "w.yaml")
    assert time.monotonic() - began < 30
    assert len(caught.value.findings) == MAX_KEPT
    lines = str(caught.value).splitlines()
    assert len(lines) == MAX_SHOWN + 1
    assert lines[-1] == f"... and {MAX_KEPT - MAX_SHOWN} more"


def test_unknown_names_among_very_many_are_still_found_and_quick(tmp_path: Path) -> None:
    """The nearest name is looked for among those that sort beside it."""
    text = jobs(
        "{name: 'job_{i:05d}', command: c, parameters: {i: '0:49999'}}",
        "{name: 'x{i}', command: c, depends_on: ['job_{i}'], parameters: {i: '0:300'}}",
    )
    (found,) = findings(tmp_path, text)
    assert "unknown job 'job_0' in job 'x0'; did you mean 'job_" in found.message
    assert found.message.endswith("and 300 more like it")


def test_a_finding_stands_for_all_jobs_of_its_place() -> None:
    problems = Problems()
    for number in range(5):
        problems.add(SpecFinding(f"unknown {number}", path=("jobs", 0)), "unknown")
    problems.add(SpecFinding("other", path=("jobs", 0)), "twice")
    assert [finding.message for finding in problems.findings()] == ["unknown 0; and 4 more like it", "other"]
    assert describe_findings(problems.findings(), more=3).endswith("... and 3 more")


def test_the_dry_run_of_a_wrong_file(tmp_path: Path) -> None:
    """Not valid, with every finding; what could be counted is counted."""
    path = tmp_path / "w.yaml"
    path.write_text(
        jobs("{name: 'a{i}', command: c, parameters: {i: '1:3'}}", "{name: b, command: c, depends_on: [x]}")
    )
    values, text = dry_run(path)
    assert values["valid"] is False
    assert len(values["errors"]) == 1
    assert values["summary"]["job_count"] == 4
    assert "Errors (1):\n  - " in text
    assert text.endswith("Validation: FAILED")


GATE_SCHEMA = {key: value for key, value in workflow_schema(LoadOptions())["properties"].items() if key != "actions"}


def _matching(schema: dict[str, object]) -> st.SearchStrategy[object]:
    """Values that may fit a part of the schema."""
    inner = st.lists(JSON_VALUES, max_size=2) | st.dictionaries(
        st.sampled_from(["name", "command", "path", "depends_on", "parameters", "num_cpus", "memory", "rules", "data"]),
        JSON_VALUES | st.lists(st.text(max_size=2), max_size=2),
        max_size=4,
    )
    return JSON_VALUES | inner | st.lists(inner, max_size=2)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_gate_never_passes_what_the_schema_refuses(data: st.DataObject) -> None:
    """Its yes can be relied on: nothing that it lets through has an error for `jsonschema`."""
    key = data.draw(st.sampled_from(sorted(GATE_SCHEMA)))
    value = data.draw(_matching(GATE_SCHEMA[key]))
    if compile_check(GATE_SCHEMA[key])(value):
        assert jsonschema.Draft202012Validator(GATE_SCHEMA[key]).is_valid(value)


def test_the_gate_passes_what_is_right_and_stops_what_it_does_not_know() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
    passes = compile_check(schema)
    assert passes({"a": 1, "b": None})
    assert not any(map(passes, ({}, {"a": 0}, {"a": True}, {"a": 1.0}, [], None)))
    assert not compile_check({"type": "string", "pattern": "x"})("x")
    assert VARIANTS not in GATE_SCHEMA
