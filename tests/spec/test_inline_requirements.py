"""Resource requirements that are written in a job."""

from pathlib import Path
from textwrap import dedent

import pytest

from torc_framework.models.plan import Plan
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.spec import dump_spec, inspect, load_plan, load_spec

VALUES = "num_cpus: 4, memory: 16g, runtime: PT2H"


def plan_of(folder: Path, text: str, suffix: str = "yaml") -> Plan:
    path = folder / f"w.{suffix}"
    path.write_text(dedent(text))
    return load_plan(path).plan


def findings_of(folder: Path, *jobs: str, rest: str = "") -> list[str]:
    path = folder / "w.yaml"
    path.write_text("name: w\njobs:\n" + "".join(f"- {job}\n" for job in jobs) + rest)
    return [str(finding).removeprefix(f"{path}:") for finding in inspect(path).findings]


def used(plan: Plan) -> dict[str, ResourceRequirementsRecord | None]:
    records = plan.resource_requirements
    return {
        job.name: None if job.resource_requirements is None else records[job.resource_requirements] for job in plan.jobs
    }


FORMATS = {
    "yaml": "name: w\njobs:\n- name: a\n  command: c\n  resource_requirements:\n"
    "    num_cpus: 4\n    memory: 16g\n    runtime: PT2H\n",
    "json": '{"name": "w", "jobs": [{"name": "a", "command": "c", "resource_requirements":'
    ' {"num_cpus": 4, "memory": "16g", "runtime": "PT2H"}}]}',
    "json5": "{name: 'w', jobs: [{name: 'a', command: 'c', resource_requirements:"
    " {num_cpus: 4, memory: '16g', runtime: 'PT2H'}}]}",
    "kdl": 'name "w"\njob "a" {\n  command "c"\n  resource_requirements {\n'
    '    num_cpus 4\n    memory "16g"\n    runtime "PT2H"\n  }\n}\n',
    "kdl properties": 'name "w"\njob "a" {\n  command "c"\n'
    '  resource_requirements num_cpus=4 memory="16g" runtime="PT2H"\n}\n',
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_job_may_contain_its_requirements_in_every_format(tmp_path: Path, form: str) -> None:
    record = used(plan_of(tmp_path, FORMATS[form], form.split(maxsplit=1)[0]))["a"]
    assert record is not None
    assert (record.name, record.num_cpus, record.memory, record.runtime) == ("4cpu-16g-PT2H", 4, "16g", "PT2H")
    assert (record.num_gpus, record.num_nodes) == (0, 1)


def test_equal_requirements_are_one_record_and_different_ones_are_not(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        f"""
        name: w
        jobs:
        - {{name: "a_{{i}}", command: c, resource_requirements: {{{VALUES}}}, parameters: {{i: "1:3"}}}}
        - {{name: b, command: c, resource_requirements: {{{VALUES}}}}}
        - {{name: c, command: c, resource_requirements: {{{VALUES}, num_gpus: 1, num_nodes: 2}}}}
        - {{name: d, command: c}}
        """,
    )
    assert [record.name for record in plan.resource_requirements] == ["4cpu-16g-PT2H", "4cpu-1gpu-2node-16g-PT2H"]
    assert [job.resource_requirements for job in plan.jobs] == [0, 0, 0, 0, 1, None]


def test_a_name_serves_other_jobs_too(tmp_path: Path) -> None:
    text = f"""
        name: w
        jobs:
        - {{name: a, command: c, resource_requirements: big}}
        - {{name: b, command: c, resource_requirements: {{name: big, {VALUES}}}}}
        - {{name: c, command: c, resource_requirements: {{name: big, {VALUES}}}}}
        """
    plan = plan_of(tmp_path, text)
    assert [record.name for record in plan.resource_requirements] == ["big"]
    assert [job.resource_requirements for job in plan.jobs] == [0, 0, 0]
    kdl = 'name "w"\njob "b" {\n  command "c"\n  resource_requirements "big" { num_cpus 4; memory "16g" }\n}\n'
    assert [record.name for record in plan_of(tmp_path, kdl, "kdl").resource_requirements] == ["big"]


def test_the_workflow_s_own_list_has_precedence(tmp_path: Path) -> None:
    """An entry with the made name and other values keeps its name; the job's record gets another one."""
    text = f"""
        name: w
        resource_requirements:
        - {{name: "4cpu-16g-PT2H", num_cpus: 1, memory: 1g}}
        jobs:
        - {{name: a, command: c, resource_requirements: {{{VALUES}}}}}
        - {{name: b, command: c, resource_requirements: "4cpu-16g-PT2H"}}
        """
    records = used(plan_of(tmp_path, text))
    assert [(r.name, r.num_cpus) for r in records.values() if r] == [("4cpu-16g-PT2H-2", 4), ("4cpu-16g-PT2H", 1)]


def test_parameters_fill_the_texts(tmp_path: Path) -> None:
    text = """
        name: w
        jobs:
        - name: "a_{gb}"
          command: c
          resource_requirements: {num_cpus: 1, memory: "{gb}g"}
          parameters: {gb: "[1,2]"}
        """
    assert [record.memory for record in plan_of(tmp_path, text).resource_requirements] == ["1g", "2g"]


def test_errors_name_line_and_job(tmp_path: Path) -> None:
    good = f"{{name: big, {VALUES}}}"
    other = "{name: big, num_cpus: 8, memory: 16g}"
    assert findings_of(
        tmp_path,
        f"{{name: a, command: c, resource_requirements: {good}}}",
        f"{{name: b, command: c, resource_requirements: {other}}}",
        "{name: d, command: c, resource_requirements: {num_cpus: 1, memory: 1gb}}",
        "{name: e, command: c, resource_requirements: {num_cpus: 1, memory: 1g, runtime: P1M}}",
        "{name: f, command: c, resource_requirements: {name: default, num_cpus: 1, memory: 1g}}",
    ) == [
        "4:48: jobs[1].resource_requirements: resource requirements 'big' of job 'b' differ from those of that name in "
        "job 'a'; give one of them another name",
        "5:70: jobs[2].resource_requirements.memory: '1gb' is not a memory size: write digits and one of k, m, g, t, "
        "such as '512m' or '16g', or '1.5 GiB' (in job 'd')",
        "6:83: jobs[3].resource_requirements.runtime: 'P1M' has years or months, which have no fixed length: write "
        "'P30D' for 30 days, 'PT1M' for a minute (in job 'e')",
        "7:55: jobs[4].resource_requirements.name: 'default' names what every workflow has already (in job 'f'); "
        "choose another name",
    ]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{memory: 1g}", "jobs[0].resource_requirements: 'num_cpus' is missing"),
        ("{num_cpus: 1, memory: 1g, cpus: 2}", "unknown key 'cpus'; did you mean 'num_cpus'?"),
        ("{num_cpus: 0, memory: 1g}", "num_cpus: the number 0; expected 1 or more"),
        ("[small]", "a list of 1; expected text or a mapping"),
        ("4", "the number 4; expected text or a mapping"),
    ],
)
def test_mistakes_within_a_job_are_found(tmp_path: Path, written: str, message: str) -> None:
    (finding,) = findings_of(tmp_path, f"{{name: a, command: c, resource_requirements: {written}}}")
    assert message in finding


def test_a_mistake_in_kdl_is_found(tmp_path: Path) -> None:
    path = tmp_path / "w.kdl"
    path.write_text(
        'name "w"\njob "a" {\n  command "c"\n  resource_requirements {\n    num_cpus 1\n    memory "1x"\n  }\n}\n'
    )
    (finding,) = inspect(path).findings
    assert ":6:5: jobs[0].resource_requirements.memory: '1x' is not a memory size" in str(finding)


@pytest.mark.parametrize("suffix", ["yaml", "json", "json5", "kdl"])
def test_a_written_spec_reads_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(f"name: w\njobs:\n- {{name: a, command: c, resource_requirements: {{name: big, {VALUES}}}}}\n")
    spec = load_spec(path)
    again = tmp_path / f"again.{suffix}"
    again.write_text(dump_spec(spec, suffix))
    assert load_spec(again) == spec
