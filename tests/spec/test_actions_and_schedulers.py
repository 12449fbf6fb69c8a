"""Actions and schedulers: what they need, what they mean together."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
from attrs import evolve

from torc_framework.models.plan import PlannedAction
from torc_framework.models.resources import parse_duration
from torc_framework.spec import LoadOptions, SpecError, dry_run, dump_spec, inspect, load_plan, load_spec

PLAIN = LoadOptions()
BASE = """\
name: w
jobs:
- {name: "a{i}", command: c, parameters: {i: "1:3"}}
- {name: b, command: c}
slurm_schedulers: [{name: s, account: x}]
"""


def action_of(folder: Path, action: str, options: LoadOptions = PLAIN) -> PlannedAction:
    path = folder / "w.yaml"
    path.write_text(BASE + f"actions: [{action}]\n")
    return load_plan(path, options=options).plan.actions[0]


def test_commands(tmp_path: Path) -> None:
    made = action_of(tmp_path, "{trigger_type: on_workflow_start, action_type: run_commands, commands: [x, y]}")
    assert made == PlannedAction("on_workflow_start", "run_commands", {"commands": ["x", "y"]})


def test_allocations(tmp_path: Path) -> None:
    """The scheduler is a position; the store makes an id of it."""
    made = action_of(
        tmp_path,
        "{trigger_type: on_jobs_ready, jobs: [b], job_name_regexes: [^a], action_type: schedule_nodes, scheduler: s,"
        " scheduler_type: slurm, max_parallel_jobs: 4, start_one_worker_per_node: true}",
    )
    config = {
        "scheduler_type": "slurm",
        "start_one_worker_per_node": True,
        "max_parallel_jobs": 4,
        "num_allocations": 1,
    }
    assert made == PlannedAction("on_jobs_ready", "schedule_nodes", config, [0, 1, 2, 3], 0)


@pytest.mark.parametrize(
    ("trigger", "given", "expected"),
    [
        ("on_worker_start", "", True),
        ("on_worker_complete", "", True),
        ("on_worker_start", ", persistent: false", False),
        ("on_workflow_complete", "", False),
        ("on_workflow_complete", ", persistent: true", True),
    ],
)
def test_actions_of_workers_are_persistent_unless_said_otherwise(
    tmp_path: Path, trigger: str, given: str, expected: bool
) -> None:
    made = action_of(tmp_path, f"{{trigger_type: {trigger}, action_type: run_commands, commands: [x]{given}}}")
    assert made.persistent is expected


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("{trigger_type: on_workflow_start, action_type: run_commands}", "'commands' is missing"),
        ("{trigger_type: on_workflow_start, action_type: run_commands, commands: []}", "'commands' is missing"),
        ("{trigger_type: on_workflow_start, action_type: schedule_nodes}", "'scheduler' is missing"),
        (
            "{trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s}",
            "'scheduler_type' is missing",
        ),
        (
            "{trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: t, scheduler_type: slurm}",
            "unknown scheduler 't'",
        ),
        ("{trigger_type: on_jobs_ready, action_type: run_commands, commands: [x]}", "watches no job"),
        ("{trigger_type: on_jobs_ready, action_type: run_commands, commands: [x], jobs: [zz]}", "unknown job 'zz'"),
        (
            "{trigger_type: on_jobs_ready, action_type: run_commands, commands: [x], job_name_regexes: [zz]}",
            "matches none",
        ),
        ("{trigger_type: on_start, action_type: run_commands, commands: [x]}", "expected one of 'on_jobs_complete'"),
        ("{trigger_type: on_workflow_start, action_type: run_comands, commands: [x]}", "did you mean 'run_commands'?"),
        ("{trigger_type: on_workflow_start, action_type: run_commands, commands: [x], job: [a]}", "unknown key 'job'"),
    ],
)
def test_actions_that_cannot_be(tmp_path: Path, action: str, message: str) -> None:
    with pytest.raises(SpecError, match="actions") as caught:
        action_of(tmp_path, action)
    assert message in str(caught.value)


def test_keys_of_another_type_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        BASE + "actions: [{trigger_type: on_workflow_start, action_type: run_commands, commands: [x], "
        "scheduler: s, jobs: [b]}]\n"
    )
    assert load_plan(path).warnings == [
        "'scheduler' means nothing in a run_commands action (actions[0]).",
        "Jobs mean nothing to trigger on_workflow_start (actions[0]).",
    ]


NOTIFY = {
    "notify": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "loud": {"type": "boolean"}},
        "required": ["to"],
    }
}


@pytest.mark.parametrize("suffix", ["yaml", "kdl"])
def test_action_types_of_plugins_have_their_own_keys(tmp_path: Path, suffix: str) -> None:
    text = {
        "yaml": "name: w\njobs: [{name: a, command: c}]\nactions: [{trigger_type: on_jobs_complete, jobs: [a], "
        "action_type: notify, to: me, loud: true}]\n",
        "kdl": 'name "w"\njob "a" command="c"\naction {\n  trigger_type "on_jobs_complete"\n  jobs "a"\n'
        '  action_type "notify"\n  to "me"\n  loud true\n}\n',
    }[suffix]
    path = tmp_path / f"w.{suffix}"
    path.write_text(text)
    (made,) = load_plan(path, options=LoadOptions(action_types=NOTIFY)).plan.actions
    assert made == PlannedAction("on_jobs_complete", "notify", {"to": "me", "loud": True}, [0])
    path.write_text(text.replace("to: me", "to: 5") if suffix == "yaml" else text.replace('"me"', "5"))
    (wrong,) = inspect(path, options=LoadOptions(action_types=NOTIFY)).findings
    assert "actions[0].to" in str(wrong)
    path.write_text(text)
    assert "notify" in str(inspect(path).findings[0])


SETTINGS = {
    "yaml": "name: w\njobs: [{name: a, command: c}]\nactions: [{trigger_type: on_workflow_start, "
    "action_type: notify, settings: {to: me, loud: true}}]\n",
    "json5": "{name: 'w', jobs: [{name: 'a', command: 'c'}], actions: [{trigger_type: 'on_workflow_start', "
    "action_type: 'notify', settings: {to: 'me', loud: true}}]}",
    "kdl": 'name "w"\njob "a" command="c"\naction {\n  trigger_type "on_workflow_start"\n  action_type "notify"\n'
    '  settings {\n    to "me"\n    loud true\n  }\n}\n',
}


@pytest.mark.parametrize("suffix", SETTINGS)
def test_settings_of_an_action_are_a_mapping(tmp_path: Path, suffix: str) -> None:
    """The mapping is the configuration, and an error names the field within it."""
    path, options = tmp_path / f"w.{suffix}", LoadOptions(action_types=NOTIFY)
    path.write_text(SETTINGS[suffix])
    (made,) = load_plan(path, options=options).plan.actions
    assert made.config == {"to": "me", "loud": True}
    for right, wrong, told in (
        ("true", "3", "actions[0].settings.loud"),
        ("loud", "lout", "unknown key 'lout'" if suffix != "kdl" else "lout"),
    ):
        path.write_text(SETTINGS[suffix].replace(right, wrong))
        (finding,) = inspect(path, options=options).findings
        assert told in str(finding), finding


def test_an_unknown_action_type_is_one_error(tmp_path: Path) -> None:
    """Keys of a type that no plugin offers cannot be checked."""
    path = tmp_path / "w.yaml"
    path.write_text(SETTINGS["yaml"])
    (finding,) = inspect(path).findings
    assert "actions[0].action_type: 'notify'" in str(finding)


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("settings: {}", "'to' is missing"),
        ("settings: [to]", "actions[0].settings"),
        ("settings: {to: me}, loud: true", "unknown key 'loud'"),
        ("loud: true", "'to' is missing"),
    ],
)
def test_wrong_settings_name_the_field(tmp_path: Path, action: str, told: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "name: w\njobs: [{name: a, command: c}]\n"
        f"actions: [{{trigger_type: on_workflow_start, action_type: notify, {action}}}]\n"
    )
    (finding,) = inspect(path, options=LoadOptions(action_types=NOTIFY)).findings
    assert told in str(finding)


def test_settings_may_have_the_names_of_common_keys(tmp_path: Path) -> None:
    """Within ``settings`` a plugin may name its keys as it likes, and the written spec is read back."""
    options = LoadOptions(action_types={"call": {"type": "object", "properties": {"jobs": {"type": "integer"}}}})
    path = tmp_path / "w.yaml"
    path.write_text(
        "name: w\njobs: [{name: a, command: c}]\n"
        "actions: [{trigger_type: on_workflow_start, action_type: call, settings: {jobs: 3}}]\n"
    )
    assert load_plan(path, options=options).plan.actions[0].config == {"jobs": 3}
    path.write_text(dump_spec(load_spec(path, options=options), "yaml"))
    assert load_plan(path, options=options).plan.actions[0].config == {"jobs": 3}


NODES = """\
name: w
jobs: [{{name: a, command: c, scheduler: s, resource_requirements: {requirements}}}]
resource_requirements: [{{name: one, num_cpus: 1, memory: 1m}}, {{name: four, num_cpus: 1, memory: 1m, num_nodes: 4}}]
slurm_schedulers: [{{name: s, account: x, nodes: 4, walltime: '02:00:00'}}]
actions: [{{trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s, scheduler_type: slurm{more}}}]
"""


def test_allocations_of_several_nodes_need_someone_to_use_them(tmp_path: Path) -> None:
    """A job that asks for all of them, or a runner on each; the check can be left out."""
    path = tmp_path / "w.yaml"
    path.write_text(NODES.format(requirements="one", more=""))
    with pytest.raises(SpecError, match="allocates 4 nodes"):
        load_plan(path)
    assert load_plan(path, options=LoadOptions(skip_checks=True)).plan.actions
    path.write_text(NODES.format(requirements="four", more=""))
    assert load_plan(path).plan.actions
    path.write_text(NODES.format(requirements="one", more=", start_one_worker_per_node: true"))
    assert load_plan(path).plan.actions


WALLTIMES = """\
name: w
{workflow}
jobs: [{{name: "a{{i}}", command: c, {bound}resource_requirements: r, parameters: {{i: "1:3"}}}}]
resource_requirements: [{{name: r, num_cpus: 1, memory: 1m, runtime: {runtime}}}]
slurm_schedulers: [{{name: s, account: x, walltime: '{walltime}'}}, {{name: t, account: x, walltime: '00:04:00'}}]
"""


@pytest.mark.parametrize(
    ("walltime", "runtime", "more", "is_refused"),
    [
        ("00:05:00", "PT5M", {}, True),
        ("00:05:00", "PT4M", {}, True),  # less than a second is left to begin
        ("00:05:00", "PT3M59S", {}, False),
        ("00:05:00", "PT4M", {"workflow": "compute_node_expiration_buffer_seconds: 30"}, False),
        ("00:02:00", "PT1M", {}, True),
        ("00:02:00", "PT1M", {"workflow": "compute_node_expiration_buffer_seconds: 30"}, False),
        ("00:02:00", "PT59S", {}, False),
        ("2-00:00:00", "P2D", {}, True),
        ("00:05:00", "PT5M", {"bound": ""}, True),
        ("00:10:00", "PT5M", {"bound": ""}, False),
    ],
)
def test_a_walltime_without_room_for_its_jobs_is_refused_where_nodes_will_be_requested(
    tmp_path: Path, walltime: str, runtime: str, more: dict[str, str], is_refused: bool
) -> None:
    """Nodes would be obtained in vain; elsewhere it is a warning. It names the walltime that would do, once."""
    path = tmp_path / "w.yaml"
    values = {"workflow": "description: d", "bound": "scheduler: s, ", **more}
    path.write_text(WALLTIMES.format(walltime=walltime, runtime=runtime, **values))
    warnings = load_plan(path).warnings
    findings = inspect(path, options=LoadOptions(to_submit=True)).findings
    assert len(findings) == len([each for each in warnings if "would never start" in each]) == is_refused, findings
    if is_refused:
        assert "slurm_schedulers[0].walltime" in str(findings[0])
        assert "job 'a1' asks for" in str(findings[0])
        enough = re.search(r"ask for (.+) or more", str(findings[0]))
        assert enough is not None
        path.write_text(WALLTIMES.format(walltime=f"{parse_duration(enough[1]) // 60}", runtime=runtime, **values))
        assert not inspect(path, options=LoadOptions(to_submit=True)).findings
    left_out = inspect(path, options=LoadOptions(to_submit=True, skip_checks=True))
    assert not left_out.findings
    assert "would never start" not in str(left_out.warnings)


MIXED = """\
name: w
jobs: [{name: "a{i}", command: c, parameters: {i: "1:10"}}, {name: b, command: c, scheduler: s1}]
slurm_schedulers:
- {name: s1, account: x, mem: 8g}
- {name: s2, account: x, mem: 64g, walltime: "04:00:00"}
- {name: s3, account: x, mem: 64g}
"""


def test_unlike_schedulers_without_an_order_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(MIXED)
    assert load_plan(path).warnings == [
        "Workflow has 3 schedulers with different memory (mem), walltime but 10 job(s) have no explicit scheduler "
        "assignment and jobs_sort_method is not set. The default sort method 'gpus_runtime_memory' will be used (jobs "
        "sorted by GPUs, then runtime, then memory). If this doesn't match your workload, consider setting "
        "jobs_sort_method explicitly to 'gpus_memory_runtime' (prioritize memory over runtime) or 'none' (no sorting)."
    ]
    path.write_text(MIXED + "jobs_sort_method: none\n")
    assert load_plan(path).warnings == []


def test_the_dry_run_of_a_right_file(tmp_path: Path) -> None:
    """The counts before and after expansion, for people and for scripts."""
    path = tmp_path / "w.yaml"
    path.write_text(
        dedent(
            """\
            name: my_workflow
            description: A sample
            jobs: [{name: "a{i}", command: c, parameters: {i: "1:100"}}]
            files: [{name: f, path: p}]
            user_data: [{name: u}]
            resource_requirements: [{name: r, num_cpus: 1, memory: 1m}]
            slurm_schedulers: [{name: s, account: x}]
            actions:
            - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s, scheduler_type: slurm}
            """
        )
    )
    values, text = dry_run(path)
    assert (values["valid"], values["errors"], values["warnings"]) == (True, [], [])
    names = values["summary"].pop("job_names")
    assert (len(names), names[0]) == (100, "a1")
    assert values["summary"] == {
        "workflow_name": "my_workflow",
        "workflow_description": "A sample",
        "job_count": 100,
        "job_count_before_expansion": 1,
        "file_count": 1,
        "file_count_before_expansion": 1,
        "user_data_count": 1,
        "resource_requirements_count": 1,
        "slurm_scheduler_count": 1,
        "action_count": 1,
        "has_schedule_nodes_action": True,
        "scheduler_names": ["s"],
    }
    assert text == dedent(
        """\
        Workflow Validation Results
        ===========================

        Workflow: my_workflow
        Description: A sample

        Components to be created:
          Jobs: 100 (expanded from 1 parameterized job specs)
          Files: 1
          User data records: 1
          Resource requirements: 1
          Slurm schedulers: 1
          Workflow actions: 1

        Submission: Ready for scheduler submission (has on_workflow_start schedule_nodes action)

        Validation: PASSED"""
    )


def test_an_executor_may_need_no_scheduler(tmp_path: Path) -> None:
    """The executor says it; without a plugin that does, the scheduler stays required."""
    action = "{trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler_type: pods, num_allocations: 3}"
    with pytest.raises(SpecError, match="'scheduler' is missing"):
        action_of(tmp_path, action)
    made = action_of(tmp_path, action, evolve(PLAIN, needs_scheduler=lambda name: name != "pods"))
    assert made.scheduler is None
    assert made.config == {"scheduler_type": "pods", "num_allocations": 3}
