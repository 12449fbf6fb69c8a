"""What published workflow files contain: other spellings, foreign keys, and placeholders without parameters.

``TORC_SPECS`` names a folder of workflow files that must all load, if there is one.
"""

import os
from pathlib import Path
from textwrap import dedent

import pytest

from torc_framework.models.plan import Plan
from torc_framework.spec import inspect
from torc_framework.spec.pipeline import Inspection

SAMPLES = os.environ.get("TORC_SPECS")


def seen(folder: Path, text: str, suffix: str = "yaml") -> Inspection:
    path = folder / f"w.{suffix}"
    path.write_text(dedent(text))
    inspection = inspect(path)
    inspection.warnings = [warning.removeprefix(f"{path}:") for warning in inspection.warnings]
    return inspection


def plan_of(folder: Path, text: str, suffix: str = "yaml") -> Plan:
    inspection = seen(folder, text, suffix)
    assert inspection.plan is not None, list(map(str, inspection.findings))
    return inspection.plan


def findings_of(folder: Path, text: str, suffix: str = "yaml") -> list[str]:
    prefix = f"{folder / f'w.{suffix}'}:"
    return [str(finding).removeprefix(prefix) for finding in seen(folder, text, suffix).findings]


# ---------------------------------------------------------------------------------------------- other spellings


SPELLED = {
    "yaml": """
        name: w
        job_sort_method: gpus_memory_runtime
        resource_monitor_config: {granularity: time_series}
        resource_requirements: [{name: small, num_cpus: 1, memory: 1g}]
        files: [{name: f, path: f.txt}]
        jobs:
        - {name: a, command: c, resource_requirements_name: small, output_file_names: [f]}
        - {name: b, command: c, blocked_by: [a], input_file_names: [f]}
        - {name: d, command: c, blocked_by_job_name_regexes: ["^[ab]$"]}
        """,
    "kdl": """
        name "w"
        job_sort_method "gpus_memory_runtime"
        resource_monitor_config { granularity "time_series"; }
        resource_requirements "small" { num_cpus 1; memory "1g"; }
        file "f" path="f.txt"
        job "a" { command "c"; resource_requirements_name "small"; output_file_name "f"; }
        job "b" { command "c"; blocked_by_job "a"; input_file_name "f"; }
        job "d" { command "c"; blocked_by_job_regex "^[ab]$"; }
        """,
}


@pytest.mark.parametrize("suffix", SPELLED)
def test_other_spellings_mean_the_same(tmp_path: Path, suffix: str) -> None:
    plan = plan_of(tmp_path, SPELLED[suffix], suffix)
    assert plan.workflow.jobs_sort_method == "gpus_memory_runtime"
    assert '"granularity":"time_series"' in str(plan.workflow.resource_monitor_config)
    assert sorted(plan.dependencies) == [(1, 0), (2, 0), (2, 1)]
    assert [job.resource_requirements for job in plan.jobs] == [0, None, None]
    assert (plan.jobs[0].output_files, plan.jobs[1].input_files) == ([0], [0])


def test_errors_have_the_spelling_and_the_place_of_the_file(tmp_path: Path) -> None:
    text = """\
        name: w
        job_sort_method: fast
        jobs:
        - {name: a, command: c}
        - name: b
          command: c
          blocked_by: [z]
        """
    assert findings_of(tmp_path, text) == [
        "2:18: job_sort_method: 'fast'; expected one of 'gpus_memory_runtime', 'gpus_runtime_memory', 'none'",
        "7:16: jobs[1].blocked_by[0]: unknown job 'z' in job 'b'; known: a, b",
    ]


def test_two_spellings_of_one_key_are_an_error(tmp_path: Path) -> None:
    text = """\
        name: w
        jobs:
        - {name: a, command: c}
        - {name: b, command: c, depends_on: [a], blocked_by: [a]}
        """
    assert findings_of(tmp_path, text) == [
        "4:42: jobs[1].blocked_by: 'blocked_by' and 'depends_on' are two spellings of one key; keep one of them"
    ]


@pytest.mark.parametrize("suffix", ["yaml", "kdl"])
def test_slurm_defaults_have_any_case(tmp_path: Path, suffix: str) -> None:
    texts = {
        "yaml": "name: w\njobs: [{name: a, command: c}]\nslurm_defaults: {QOS: high, Mail_Type: END, --account: x}\n",
        "kdl": 'name "w"\njob "a" { command "c"; }\nslurm_defaults { QOS "high"; Mail_Type "END"; account "x"; }\n',
    }
    plan = plan_of(tmp_path, texts[suffix], suffix)
    assert plan.workflow.slurm_defaults == '{"qos":"high","mail-type":"END","account":"x"}'


def test_slurm_defaults_are_checked_in_any_case(tmp_path: Path) -> None:
    text = "name: w\njobs: [{name: a, command: c}]\nslurm_defaults: {Partition: p, qos: a, QOS: b}\n"
    assert findings_of(tmp_path, text) == [
        "3:18: slurm_defaults.Partition: 'partition' cannot be a default; set it on each scheduler",
        "3:40: slurm_defaults.QOS: 'QOS' and 'qos' are two spellings of one key; keep one of them",
    ]


# ------------------------------------------------------------------------------------------------- foreign keys


FOREIGN = {
    "yaml": """\
        name: w
        resource_monitor:
          enabled: true
          metrics: [cpu, memory]
        files:
        - {name: f, path: f.txt, st_mtime: 1.5}
        jobs: [{name: a, command: c}]
        """,
    "json": """\
        {"name": "w",
         "resource_monitor": {"enabled": true,

           "metrics": ["cpu", "memory"]},
         "files": [
          {"name": "f", "path": "f.txt", "st_mtime": 1.5}],
         "jobs": [{"name": "a", "command": "c"}]}
        """,
    "kdl": """\
        name "w"
        resource_monitor {
          enabled true
          metrics "cpu" "memory"
        }
        file "f" path="f.txt" st_mtime=1.5
        job "a" { command "c"; }
        """,
}


@pytest.mark.parametrize("suffix", FOREIGN)
def test_keys_without_an_effect_are_warnings_with_their_place(tmp_path: Path, suffix: str) -> None:
    inspection = seen(tmp_path, FOREIGN[suffix], suffix)
    assert inspection.plan is not None
    metrics, st_mtime = inspection.warnings
    assert metrics.startswith("4:")
    assert metrics.endswith("resource_monitor.metrics: 'metrics' is ignored: it is no setting of the resource monitor")
    assert st_mtime.startswith("6:")
    assert st_mtime.endswith("files[0].st_mtime: 'st_mtime' is ignored: the time of the file on disk counts")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resource_monitor: {enable: true}\n", "unknown key 'enable'; did you mean 'enabled'?"),
        ("env: {A: b}\n", "unknown key 'env'"),
        ("files: [{name: f, paths: x, path: y}]\n", "unknown key 'paths'; did you mean 'path'?"),
    ],
)
def test_typing_errors_and_keys_with_an_effect_stay_errors(tmp_path: Path, text: str, message: str) -> None:
    (finding,) = findings_of(tmp_path, "name: w\njobs: [{name: a, command: c}]\n" + text)
    assert message in finding


def test_a_typing_error_in_kdl_stays_an_error(tmp_path: Path) -> None:
    text = 'name "w"\nresource_monitor { enable true; }\njob "a" { command "c"; }\n'
    (finding,) = findings_of(tmp_path, text, "kdl")
    assert "unknown node or property 'enable'; did you mean 'enabled'?" in finding


# --------------------------------------------------------------------------------- placeholders without parameters


def test_files_have_the_parameters_of_the_jobs_that_name_them(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        name: w
        files:
        - {name: "raw_{set}", path: "data/{set}.csv"}
        - {name: "out_{set}_{n:02d}", path: "out/{set}_{n}.json"}
        user_data:
        - {name: "best_{set}", data: {of: "{set}"}}
        parameters: {n: "1:2"}
        jobs:
        - name: "make_{set}"
          command: "make ${files.output.raw_{set}}"
          parameters: {set: "[a,b]"}
        - name: "use_{set}_{n}"
          command: "use ${files.input.raw_{set}}"
          output_files: ["out_{set}_{n:02d}"]
          output_user_data: ["best_{set}"]
          parameters: {set: "[a,b]"}
          use_parameters: [n]
        """,
    )
    assert [(f.name, f.path) for f in plan.files] == [
        ("raw_a", "data/a.csv"),
        ("raw_b", "data/b.csv"),
        *((f"out_{s}_0{n}", f"out/{s}_{n}.json") for n in "12" for s in "ab"),
    ]
    assert [(d.name, d.data) for d in plan.user_data] == [("best_a", {"of": "a"}), ("best_b", {"of": "b"})]
    names = [job.name for job in plan.jobs]
    assert names[:2] == ["make_a", "make_b"]
    assert all(names[on].endswith(names[job].split("_")[1]) for job, on in plan.dependencies)


def test_several_jobs_need_the_files_of_all_their_values(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        name: w
        files: [{name: "f_{i}", path: "{i}.txt"}]
        jobs:
        - {name: "a_{i}", command: c, output_files: ["f_{i}"], parameters: {i: "1:2"}}
        - {name: b, command: c, output_files: ["f_{i}"], parameters: {i: "3:4"}}
        - {name: c, command: c, input_files: [f_1, f_4]}
        """,
    )
    assert [f.name for f in plan.files] == ["f_1", "f_2", "f_3", "f_4"]
    assert sorted(plan.dependencies) == [(3, 0), (3, 2)]


def test_zipped_parameters_make_the_files_of_their_pairs(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        name: w
        files: [{name: "f_{d}_{m}", path: "{d}_{m}"}, {name: "g_{m}", path: "{m}"}]
        jobs:
        - name: "a_{d}_{m}"
          command: c
          output_files: ["f_{d}_{m}", "g_{m}"]
          parameters: {d: "[x,y,z]", m: "[1,2,2]"}
          parameter_mode: zip
        """,
    )
    assert [f.name for f in plan.files] == ["f_x_1", "f_y_2", "f_z_2", "g_1", "g_2"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            '- {name: "g_{i}", path: "{i}"}',
            "files[0]: {i} has no values: this file has no parameters, and no job names it and has them; "
            "give it parameters",
        ),
        (
            '- {name: "g_{n}", path: "{n}"}',
            "files[0]: {n} has no values: this file has no parameters, and no job names it and has them; "
            "give it use_parameters: [n]",
        ),
        (
            '- {name: f, path: "{i}"}',
            "files[0].path: {i} has 3 values here; expected one; put {i} into the name too, to have one for each value",
        ),
    ],
)
def test_what_no_job_can_lend_is_named(tmp_path: Path, files: str, message: str) -> None:
    head = "name: w\nparameters: {n: '1:2'}\nfiles:\n" + files
    text = f"""{head}
jobs:
- {{name: "a_{{i}}", command: c, input_files: [f], parameters: {{i: "1:3"}}}}
"""
    found = [finding for finding in findings_of(tmp_path, text) if "unknown file" not in finding]
    assert [finding.partition(": ")[2] for finding in found] == [message]


def test_braces_that_no_parameter_has_are_text(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        name: w
        files: [{name: "f_{x}", path: "{x}.txt"}]
        jobs: [{name: a, command: c, input_files: ["f_{x}"]}, {name: "b_{i}", command: c, parameters: {i: "1:2"}}]
        """,
    )
    assert [(f.name, f.path) for f in plan.files] == [("f_{x}", "{x}.txt")]


def test_an_unknown_parameter_is_an_error_with_its_place(tmp_path: Path) -> None:
    text = """\
        name: w
        parameters: {rate: "1:2"}
        jobs:
        - name: "a_{rate}"
          command: c
          use_parameters:
          - rate
          - rtae
        """
    assert findings_of(tmp_path, text) == [
        "8:5: jobs[0].use_parameters[1]: unknown parameter 'rtae': the workflow's parameters lack it; "
        "did you mean 'rate'?"
    ]


@pytest.mark.parametrize("text", ["P1M", "P1Y", "P1Y2M3D", "P2MT1H", "PT0S"])
def test_months_and_years_are_no_run_time(tmp_path: Path, text: str) -> None:
    (finding,) = findings_of(
        tmp_path,
        f"name: w\nresource_requirements:\n- {{name: r, num_cpus: 1, memory: 1g, runtime: {text}}}\n"
        "jobs: [{name: a, command: c, resource_requirements: r}]\n",
    )
    assert finding.startswith(f"3:47: resource_requirements[0].runtime: '{text}' ")


@pytest.mark.parametrize("text", ["PT1M", "P1D", "P2W", "P1DT12H", "P0DT1M"])
def test_other_durations_stay_run_times(tmp_path: Path, text: str) -> None:
    plan_of(
        tmp_path,
        f"name: w\nresource_requirements:\n- {{name: r, num_cpus: 1, memory: 1g, runtime: {text}}}\n"
        "jobs: [{name: a, command: c, resource_requirements: r}]\n",
    )


def test_braces_in_a_list_of_yaml_get_advice(tmp_path: Path) -> None:
    (finding,) = findings_of(tmp_path, "name: w\njobs:\n- {name: a, command: c}\nfiles: [f_{i}]\n")
    assert "put a text with braces in quotes, such as ['model_{i}']" in finding


@pytest.mark.skipif(not SAMPLES, reason="TORC_SPECS names no folder of workflow files")
def test_samples_load() -> None:
    for path in sorted(Path(SAMPLES or "").rglob("*.*")):
        assert not inspect(path).findings, path
