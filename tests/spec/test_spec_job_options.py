"""Containers and executor_options of a spec: formats, parameters, defaults of the workflow, and what is wrong."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from attrs import evolve, field, frozen
from hypothesis import given
from hypothesis import strategies as st
from strategies import OPTIONS

from torc_framework.api import ConfigError
from torc_framework.models.plan import PlannedJob
from torc_framework.spec import LoadOptions, inspect, load_plan
from torc_framework.spec.language.model import JobSpec, WorkflowSpec
from torc_framework.spec.language.options import KnownExecutor


@frozen(kw_only=True)
class Rope:
    """A part of `BoatOptions`."""

    length: int = 1


@frozen(kw_only=True)
class BoatOptions:
    """What a job may set for the executor ``boats``."""

    image: str = ""
    sails: int = 0
    ropes: list[Rope] = field(factory=list)
    labels: dict[str, str] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.sails and not self.image:
            raise ConfigError("sails need an image")


KNOWN = {"boats": KnownExecutor(True, BoatOptions, frozenset({"harbour_fee"})), "feet": KnownExecutor()}
HERE = LoadOptions(known_executors=KNOWN)
TO_RUN = evolve(HERE, executors=set(KNOWN))


def planned(folder: Path, text: str, name: str = "w.yaml", options: LoadOptions = HERE) -> list[PlannedJob]:
    path = folder / name
    path.write_text(dedent(text))
    return load_plan(path, options=options).plan.jobs


FORMATS = {
    "w.yaml": """
        name: w
        jobs:
        - name: "a_{i}"
          command: c
          container: "img:{i}"
          executor_options:
            boats: {image: "x{i:03d}", labels: {k: "v{i}", "{i}": w}, ropes: [{length: 2}, {}], sails: 3}
            other: {none: null, flag: true, list: [1], empty: [], deep: [[1, 2], [x]], share: 0.5}
          parameters: {i: "1:2"}
    """,
    "w.json5": """{
        name: "w",
        jobs: [{
            name: "a_{i}", command: "c", container: "img:{i}", parameters: {i: "1:2"},
            executor_options: {
                boats: {image: "x{i:03d}", labels: {k: "v{i}", "{i}": "w"}, ropes: [{length: 2}, {}], sails: 3},
                other: {none: null, flag: true, list: [1], empty: [], deep: [[1, 2], ["x"]], share: 0.5},
            },
        }],
    }""",
    "w.kdl": """
        name "w"
        job "a_{i}" {
            command "c"
            container "img:{i}"
            parameters { i "1:2" }
            executor_options {
                boats image="x{i:03d}" {
                    labels {
                        k "v{i}"
                        "{i}" "w"
                    }
                    ropes {
                        - length=2
                        -
                    }
                    sails 3
                }
                other {
                    none #null
                    flag #true
                    (array)list 1
                    (array)empty
                    deep {
                        - 1 2
                        (array)- "x"
                    }
                    share 0.5
                }
            }
        }
    """,
}
FORMATS["w.json"] = json.dumps(
    {
        "name": "w",
        "jobs": [
            {
                "name": "a_{i}", "command": "c", "container": "img:{i}", "parameters": {"i": "1:2"},
                "executor_options": {
                    "boats": {
                        "image": "x{i:03d}", "labels": {"k": "v{i}", "{i}": "w"}, "ropes": [{"length": 2}, {}],
                        "sails": 3,
                    },
                    "other": {
                        "none": None, "flag": True, "list": [1], "empty": [], "deep": [[1, 2], ["x"]], "share": 0.5,
                    },
                },
            }
        ],
    }
)  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_them_and_parameters_are_replaced_in_texts(tmp_path: Path, name: str) -> None:
    """Keys stay as they are."""
    jobs = planned(tmp_path, FORMATS[name], name)
    assert [job.container for job in jobs] == ["img:1", "img:2"]
    assert jobs[1].executor_options == {
        "boats": {
            "image": "x002",
            "labels": {"k": "v2", "{i}": "w"},
            "ropes": [{"length": 2}, {}],
            "sails": 3,
        },
        "other": {"none": None, "flag": True, "list": [1], "empty": [], "deep": [[1, 2], ["x"]], "share": 0.5},
    }


@given(OPTIONS, st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
def test_the_expansion_replaces_each_text_and_nothing_else(options: dict[str, Any], values: list[int]) -> None:
    """As a replacement in the JSON text would."""
    with_places = {name: {**part, "place": ["<{i}>", 1]} for name, part in options.items()}
    job = JobSpec(name="j{i}", command="c", executor_options=with_places, parameters={"i": str(values)})
    found = load_plan(WorkflowSpec(name="w", jobs=[job])).plan.jobs
    for value, each in zip(values, found, strict=True):
        assert each.executor_options == {name: {**part, "place": [f"<{value}>", 1]} for name, part in options.items()}


DEFAULTS = """
    name: w
    container: img:1
    executor_options: {boats: {image: a, labels: {x: "1"}}, other: {y: 1}}
    jobs:
    - {name: plain, command: c}
    - {name: own, command: c, container: img:2, executor_options: {boats: {labels: {z: "2"}, sails: 1}}}
    - {name: walks, command: c, executor: feet}
    - {name: elsewhere, command: c, executor: unknown}
"""


def test_the_workflow_has_defaults_and_the_keys_of_a_job_win(tmp_path: Path) -> None:
    """A job that names an executor without containers takes no default container; its own would be an error."""
    plain, own, walks, elsewhere = planned(tmp_path, DEFAULTS)
    default = {"boats": {"image": "a", "labels": {"x": "1"}}, "other": {"y": 1}}
    assert (plain.container, plain.executor_options) == ("img:1", default)
    assert own.container == "img:2"
    assert own.executor_options == {"boats": {"image": "a", "labels": {"z": "2"}, "sails": 1}, "other": {"y": 1}}
    assert (walks.container, elsewhere.container) == (None, "img:1")


def job(fields: str, top: str = "") -> str:
    return f"name: w\n{top}jobs:\n- name: a\n  command: c\n  {fields}\n"


BAD: dict[str, tuple[str, str]] = {
    "a typo": (
        job("executor_options: {boats: {imag: x}}"),
        "w.yaml:5:30: jobs[0].executor_options.boats.imag: unknown key 'imag'; did you mean 'image'?",
    ),
    "an option of the run": (
        job("executor_options: {boats: {harbour_fee: 3}}"),
        "w.yaml:5:30: jobs[0].executor_options.boats.harbour_fee: unknown key 'harbour_fee'; it holds for all jobs of "
        "a run: give --harbour-fee to 'torc run', or set harbour_fee under [executor.boats] in the configuration",
    ),
    "a wrong type within a list": (
        job("executor_options: {boats: {ropes: [{}, {length: far}]}}"),
        "w.yaml:5:51: jobs[0].executor_options.boats.ropes[1].length: 'far'; expected a whole number",
    ),
    "values that the executor refuses": (
        job("executor_options: {boats: {sails: 1}}"),
        "w.yaml:5:29: jobs[0].executor_options.boats: sails need an image",
    ),
    "a default of the workflow": (
        job("shell: sh", "executor_options: {boats: {imag: x}}\n"),
        "w.yaml:2:28: executor_options.boats.imag: unknown key 'imag'; did you mean 'image'?",
    ),
    "options for an executor without any": (
        job("executor_options: {feet: {a: 1}}"),
        "w.yaml:5:28: jobs[0].executor_options.feet: this executor has no options of jobs",
    ),
    "an executor that runs no containers": (
        job("container: i\n  executor: feet"),
        "w.yaml:5:14: jobs[0].container: job 'a' names a container, and executor 'feet' runs none; use "
        "--executor boats, or executor: boats in the job",
    ),
    "no mapping": (
        job("executor_options: {boats: 3}"),
        "w.yaml:5:29: jobs[0].executor_options.boats: the number 3; expected a mapping",
    ),
    "an empty container": (job("container: ''"), "w.yaml:5:14: jobs[0].container: ''; expected text that is not empty"),
    "too deep": (
        job("executor_options: {x: {a: " + "[" * 9 + "]" * 9 + "}}"),
        "w.yaml:5:21: jobs[0].executor_options: job 'a': executor_options is nested too deeply; at most 10 levels",
    ),
    "too large": (
        job("executor_options: {x: {a: " + "b" * 65536 + "}}"),
        "jobs[0].executor_options: job 'a': executor_options has 65,550 bytes as JSON; at most 65,536",
    ),
    "no number of JSON": (job("executor_options: {x: {a: .nan}}"), "expected a number that JSON can hold"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    """Once, also for a default of the workflow."""
    text, expected = BAD[name]
    path = tmp_path / "w.yaml"
    path.write_text(text)
    (finding,) = inspect(path, options=HERE).findings
    assert expected in str(finding).replace(f"{tmp_path}/", "")


def test_jobs_of_one_entry_are_one_finding(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    fields = 'parameters: {i: "1:9"}\n  executor_options: {boats: {sails: "{i}x"}}'
    path.write_text(job(fields).replace("name: a", 'name: "a{i}"'))
    (finding,) = inspect(path, options=HERE).findings
    assert "'1x'; expected a whole number; and 8 more like it" in str(finding)


def test_an_unknown_executor_is_an_error_where_the_jobs_run_and_else_a_warning(tmp_path: Path) -> None:
    """It may be installed where they run. One that a distribution of the project offers is known."""
    path = tmp_path / "w.yaml"
    path.write_text(job("executor_options: {boat: {a: 1}, k8s: {b: 2}}"))
    seen = inspect(path, options=HERE)
    assert seen.findings == []
    assert "executor 'boat' is not installed here, its options are not checked; did you mean 'boats'?" in str(
        seen.warnings
    )
    (finding,) = inspect(path, options=TO_RUN).findings
    assert "unknown executor 'boat'; did you mean 'boats'?" in str(finding)


def test_options_without_an_effect_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(job("executor_options: {boats: {}}\n  executor: feet"))
    assert inspect(path, options=HERE).warnings == [
        "executor_options of boats have no effect in jobs whose executor is 'feet', such as 'a'"
    ]


def test_without_known_executors_only_the_form_is_checked(tmp_path: Path) -> None:
    (found,) = planned(tmp_path, job("executor_options: {boats: {imag: x}}"), options=LoadOptions())
    assert found.executor_options == {"boats": {"imag": "x"}}


BAD_KDL = {
    "arguments and properties": ('x 1 a=2', "'a' within 'x'; expected arguments, or children and properties"),
    "arguments and children": ('x 1 { a 2 }', "'a' within 'x'; expected arguments, or children and properties"),
    "a key twice": ('x { a 1; a 2 }', "'a' is given twice; keep one of them"),
    "items and others": ('x { - 1; a 2 }', "'x' has children named '-' and others"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_KDL)
def test_a_node_of_kdl_without_a_meaning_is_named(tmp_path: Path, name: str) -> None:
    node, text = BAD_KDL[name]
    path = tmp_path / "w.kdl"
    text_of_job = f'command "c"\nexecutor_options {{\nb {{\n{node}\n}}\n}}'
    path.write_text(f'name "w"\njob "a" {{\n{text_of_job}\n}}\n')
    (finding,) = inspect(path).findings
    assert text in str(finding)
    assert finding.line == 6
