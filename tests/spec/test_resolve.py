"""Names become positions; dependencies come from lists, patterns, files and user data."""

import itertools
import json
import tracemalloc
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

from torc_framework.models.plan import USER_DATA_REFERENCE, Plan
from torc_framework.spec import LoadOptions, inspect, load_plan
from torc_framework.spec.resolution.dependencies import DependencyBuilder

PLAIN = LoadOptions()


def plan_of(folder: Path, text: str, options: LoadOptions = PLAIN) -> Plan:
    path = folder / "w.yaml"
    path.write_text("name: w\n" + dedent(text))
    return load_plan(path, options=options).plan


def findings_of(folder: Path, text: str, options: LoadOptions = PLAIN) -> list[str]:
    path = folder / "w.yaml"
    path.write_text("name: w\n" + dedent(text))
    return [finding.message for finding in inspect(path, options=options).findings]


def waits(plan: Plan) -> dict[str, list[str]]:
    """Return the dependencies of each job by name; each dependency must occur only once."""
    names = [job.name for job in plan.jobs]
    pairs = [(job, on) for job, on in plan.dependencies]
    for barrier in plan.barriers:
        assert len(barrier.upstream) > 1
        assert len(barrier.downstream) > 1
        pairs += itertools.product(barrier.downstream, barrier.upstream)
    assert len(set(pairs)) == len(pairs)
    found: dict[str, list[str]] = {}
    for job, on in sorted(pairs):
        found.setdefault(names[job], []).append(names[on])
    return found


def test_explicit_names_and_patterns_unite(tmp_path: Path) -> None:
    """A pattern is found anywhere in a name; a job in its own pattern's matches waits for the others."""
    plan = plan_of(
        tmp_path,
        """
        jobs:
        - {name: pre_1, command: c}
        - {name: pre_2, command: c}
        - {name: my_pre, command: c, depends_on_regexes: [pre]}
        - {name: last, command: c, depends_on: [my_pre, pre_1, pre_1], depends_on_regexes: ["^pre_", "_[12]$"]}
        """,
    )
    assert waits(plan) == {"my_pre": ["pre_1", "pre_2"], "last": ["pre_1", "pre_2", "my_pre"]}


def test_dependencies_follow_from_files(tmp_path: Path) -> None:
    """By lists, by patterns and by references in command and script, which give way to paths."""
    plan = plan_of(
        tmp_path,
        """
        files:
        - {name: raw, path: in/raw.csv}
        - {name: clean, path: out/clean.csv}
        - {name: extra, path: out/extra.csv}
        jobs:
        - {name: make, command: "gen > ${files.output.raw}"}
        - {name: tidy, command: "tidy ${files.input.raw} -o ${files.output.clean}", output_files: [extra]}
        - {name: read, command: c, input_file_regexes: ["clean|extra"]}
        - {name: script, command: c, invocation_script: "wrap ${files.input.clean}", input_files: [raw]}
        """,
    )
    assert plan.jobs[1].command == "tidy in/raw.csv -o out/clean.csv"
    assert plan.jobs[1].output_files == [2, 1]
    assert plan.jobs[3].invocation_script == "wrap out/clean.csv"
    assert plan.jobs[3].input_files == [0, 1]
    assert waits(plan) == {"tidy": ["make"], "read": ["tidy"], "script": ["make", "tidy"]}


def test_all_writers_of_a_file_are_waited_for_and_its_own_reader_is_no_cycle(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        files: [{name: f, path: f}]
        jobs:
        - {name: first, command: c, output_files: [f]}
        - {name: append, command: c, input_files: [f], output_files: [f]}
        - {name: read, command: c, input_files: [f]}
        """,
    )
    assert waits(plan) == {"append": ["first"], "read": ["first", "append"]}


def test_user_data_keeps_its_reference_until_it_has_an_id(tmp_path: Path) -> None:
    """The reference stays in the planned command, and gives way to the record's id in the store."""
    plan = plan_of(
        tmp_path,
        """
        user_data: [{name: config, data: null}, {name: "r_{i}", parameters: {i: "1:2"}}, {data: [1]}]
        jobs:
        - {name: make, command: "torc user-data update ${user_data.output.config} --data 1"}
        - {name: use, command: "torc user-data get ${user_data.input.config}", output_user_data: ["r_{i}"],
           parameters: {i: "1:2"}}
        - {name: all, command: c, input_user_data_regexes: ["^r_"]}
        """,
    )
    assert [record.name for record in plan.user_data] == ["config", "r_1", "r_2", "user_data_4"]
    assert plan.jobs[1].command == "torc user-data get ${user_data.input.config}"
    assert USER_DATA_REFERENCE.findall(plan.jobs[1].command) == ["config"]
    assert (plan.jobs[1].input_user_data, plan.jobs[1].output_user_data) == ([0], [1, 2])
    assert waits(plan) == {"use": ["make"], "all": ["use"]}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "jobs: [{name: a, command: c, depends_on: [b]}, {name: b, command: c, depends_on_regexes: ['^a$']}]",
            ["2 jobs: a → b → a", "a waits for b: depends_on;", "b waits for a: depends_on_regexes '^a$'"],
        ),
        (
            "files: [{name: f, path: f}]\nuser_data: [{name: u}]\njobs:\n"
            "- {name: a, command: '${files.input.f}', output_user_data: [u]}\n"
            "- {name: b, command: '${files.output.f}', depends_on: [c]}\n"
            "- {name: c, command: x, input_user_data: [u]}",
            [
                "3 jobs: a → b → c → a",
                "a waits for b: file 'f', which b writes",
                "b waits for c: depends_on",
                "c waits for a: user data 'u', which a writes",
            ],
        ),
        (
            "jobs: [{name: 'a{i}', command: c, depends_on_regexes: [a], parameters: {i: '1:2000'}}]",
            ["2 jobs: a1 → a2 → a1"],
        ),
        (
            "jobs:\n- {name: 'a{i}', command: c, depends_on_regexes: [^b], parameters: {i: '1:2000'}}\n"
            "- {name: 'b{i}', command: c, depends_on_regexes: [^a], parameters: {i: '1:2000'}}",
            ["a1 → b", " → a1"],
        ),
    ],
)
def test_a_cycle_is_shown_with_the_reason_of_each_step(tmp_path: Path, text: str, parts: list[str]) -> None:
    messages = findings_of(tmp_path, text)
    assert messages[0].startswith("circular dependency of ")
    for part in parts:
        assert part in messages[0]


def test_every_separate_cycle_is_told(tmp_path: Path) -> None:
    text = "jobs:\n" + "".join(
        f"- {{name: a{n}, command: c, depends_on: [b{n}]}}\n- {{name: b{n}, command: c, depends_on: [a{n}]}}\n"
        for n in range(4)
    )
    assert len(findings_of(tmp_path, text)) == 4


def test_a_long_cycle_is_shortened(tmp_path: Path) -> None:
    text = "jobs:\n" + "".join(f"- {{name: j{n}, command: c, depends_on: [j{(n + 1) % 500}]}}\n" for n in range(500))
    (message,) = findings_of(tmp_path, text)
    assert "circular dependency of 500 jobs: j0 → j1" in message
    assert "476 more" in message
    assert len(message) < 1500


def test_what_jobs_name_becomes_positions(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        jobs:
        - {name: a, command: c, resource_requirements: big, failure_handler: h, scheduler: s2, executor: local,
           cancel_on_blocking_job_failure: false, supports_termination: true, shell: bash -e}
        - {name: b, command: c, slurm_scheduler: s1}
        resource_requirements:
        - {name: small, num_cpus: 1, memory: 1m}
        - {name: big, num_cpus: 4, memory: 8g, runtime: PT2H, num_gpus: 1}
        failure_handlers: [{name: h, rules: [{exit_codes: [1], recovery_script: fix}, {match_all_exit_codes: true}]}]
        slurm_schedulers: [{name: s1, account: x}, {name: s2, account: y, nodes: 4, walltime: "1-00:00:00"}]
        """,
    )
    first, second = plan.jobs
    assert (first.resource_requirements, first.failure_handler, first.scheduler, first.executor) == (1, 0, 1, "local")
    assert (first.shell, second.shell) == ("bash -e", None)
    assert (first.cancel_on_blocking_job_failure, first.supports_termination) == (False, True)
    assert (second.scheduler, second.resource_requirements, second.cancel_on_blocking_job_failure) == (0, None, True)
    assert plan.resource_requirements[0].runtime == "PT1H"
    assert json.loads(plan.failure_handlers[0].rules) == [
        {"max_retries": 3, "exit_codes": [1], "recovery_script": "fix"},
        {"max_retries": 3, "match_all_exit_codes": True},
    ]
    assert plan.slurm_schedulers[0].walltime == "01:00:00"


def test_the_workflow_record_has_what_the_spec_says_and_defaults_else(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        jobs: []
        description: text
        project: p
        metadata: {a: 1}
        slurm_defaults: {qos: high}
        resource_monitor: {enabled: true, granularity: TimeSeries}
        compute_node_wait_for_new_jobs_seconds: 7
        """,
        LoadOptions(user="ann"),
    )
    workflow = plan.workflow
    assert (workflow.name, workflow.user, workflow.description, workflow.project) == ("w", "ann", "text", "p")
    assert (workflow.compute_node_wait_for_new_jobs_seconds, workflow.compute_node_expiration_buffer_seconds) == (7, 60)
    assert workflow.jobs_sort_method == "gpus_runtime_memory"
    assert json.loads(workflow.metadata or "") == {"a": 1}
    assert json.loads(workflow.slurm_defaults or "") == {"qos": "high"}
    assert json.loads(workflow.resource_monitor_config or "") == {
        "enabled": True,
        "granularity": "time_series",
        "sample_interval_seconds": 5,
        "generate_plots": False,
    }
    assert plan_of(tmp_path, "jobs: []\nuser: bob\n", LoadOptions(user="ann")).workflow.user == "bob"
    asked = LoadOptions(user="ann", owner="eve")
    assert plan_of(tmp_path, "jobs: []\nuser: bob\n", asked).workflow.user == "eve"


def test_rule_keys_of_plugins_are_checked_and_kept(tmp_path: Path) -> None:
    """A key is known when a plugin offers it, with its own schema and default."""
    options = LoadOptions(
        rule_keys={"log_matches": {"type": "string"}, "weight": {"type": "integer", "default": 5, "pattern": "x"}}
    )
    text = "jobs: []\nfailure_handlers: [{name: h, rules: [{log_matches: OOM}]}]\n"
    assert json.loads(plan_of(tmp_path, text, options).failure_handlers[0].rules) == [
        {"weight": 5, "max_retries": 3, "log_matches": "OOM"}
    ]
    assert "unknown key 'log_matches'" in findings_of(tmp_path, text)[0]
    assert "expected text" in findings_of(tmp_path, text.replace("OOM", "5"), options)[0]
    (refused,) = findings_of(tmp_path, text.replace("log_matches: OOM", "exit_codes: [1]"), options)
    assert "unknown key 'exit_codes'" in refused


def test_executors_are_checked_when_known(tmp_path: Path) -> None:
    text = "jobs: [{name: a, command: c, executor: locl}]"
    assert plan_of(tmp_path, text).jobs[0].executor == "locl"
    (message,) = findings_of(tmp_path, text, LoadOptions(executors=["local", "slurm"]))
    assert message == "unknown executor 'locl' in job 'a'; did you mean 'local'?"


def test_jobs_on_jobs_by_a_pattern_cost_their_sum(tmp_path: Path) -> None:
    """1000 jobs that wait for 1000 jobs are one barrier, in little memory."""
    text = """
        jobs:
        - {name: "first_{i:03d}", command: "a {i}", parameters: {i: "0:999"}}
        - {name: "second_{i:03d}", command: "b {i}", depends_on_regexes: ["^first_.*"], parameters: {i: "0:999"}}
        - {name: report, command: r, depends_on_regexes: ["^second_.*"]}
        """
    tracemalloc.start()
    plan = plan_of(tmp_path, text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (barrier,) = plan.barriers
    assert (len(barrier.upstream), len(barrier.downstream), len(plan.dependencies)) == (1000, 1000, 1000)
    assert peak < 20 * 1024**2


@pytest.mark.parametrize(
    "reader",
    [
        "depends_on: ['a{j}']",
        "depends_on_regexes: ['^a']",
        "input_files: ['f{j}']",
        "input_file_regexes: ['^f']",
        "input_files: [shared]",
        "input_user_data_regexes: ['^u']",
    ],
)
def test_every_way_to_wait_for_many_shares_a_barrier(tmp_path: Path, reader: str) -> None:
    plan = plan_of(
        tmp_path,
        f"""
        files: [{{name: "f{{i}}", path: "f{{i}}", parameters: {{i: "1:30"}}}}, {{name: shared, path: s}}]
        user_data: [{{name: "u{{i}}", parameters: {{i: "1:30"}}}}]
        jobs:
        - {{name: "a{{i}}", command: c, output_files: ["f{{i}}", shared], output_user_data: ["u{{i}}"],
           parameters: {{i: "1:30"}}}}
        - {{name: "b{{i}}", command: c, {reader}, parameters: {{i: "1:40", j: "1:30"}}}}
        """,
    )
    assert [(len(b.upstream), len(b.downstream)) for b in plan.barriers] == [(30, 40)]
    assert plan.dependencies == []


def test_a_barrier_and_a_job_of_its_own_go_together(tmp_path: Path) -> None:
    """M jobs that share N and have one more each cost M + N + M, with any overlap."""
    plan = plan_of(
        tmp_path,
        """
        jobs:
        - {name: "a{i}", command: c, parameters: {i: "1:50"}}
        - {name: "own{i}", command: c, parameters: {i: "1:60"}}
        - {name: "b{i}", command: c, depends_on: ["own{i}", a7], depends_on_regexes: ["^a", "^a1"],
           parameters: {i: "1:60"}}
        """,
    )
    assert [(len(b.upstream), len(b.downstream)) for b in plan.barriers] == [(50, 60)]
    assert len(plan.dependencies) == 60
    assert waits(plan)["b3"] == [f"a{n}" for n in range(1, 51)] + ["own3"]


def test_a_diamond_of_two_by_two_stays_pairs(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        """
        jobs:
        - {name: "a{i}", command: c, parameters: {i: "1:2"}}
        - {name: "b{i}", command: c, depends_on: [a1, a2], parameters: {i: "1:2"}}
        """,
    )
    assert (len(plan.dependencies), plan.barriers) == (4, [])


@settings(deadline=None)
@given(graph=graphs(), parts=st.data())
def test_pairs_and_barriers_say_exactly_what_was_added(
    graph: tuple[int, list[tuple[int, int]]], parts: st.DataObject
) -> None:
    """However a job's dependencies are cut into sequences, overlapping or not, each comes out once."""
    count, pairs = graph
    builder = DependencyBuilder()
    wanted = set()
    for job in range(count):
        upstream = [on for one, on in pairs if one == job]
        if upstream:
            cut = parts.draw(
                st.lists(st.lists(st.sampled_from(upstream), unique=True, max_size=8).map(sorted), max_size=4)
            )
            builder.add(job, cut)
            wanted |= {(job, on) for sequence in cut for on in sequence if on != job}
    found, barriers = builder.result()
    said = [*zip(found[0::2], found[1::2], strict=True)] + [
        pair for b in barriers for pair in itertools.product(b.downstream, b.upstream)
    ]
    assert sorted(said) == sorted(wanted)


def test_patterns_that_each_job_has_of_its_own_stay_quick(tmp_path: Path) -> None:
    """20,000 anchored patterns over 40,000 names do not look at every name each."""
    plan = plan_of(
        tmp_path,
        """
        jobs:
        - {name: "a_{i:05d}_x", command: c, parameters: {i: "0:19999"}}
        - {name: "b_{i:05d}", command: c, depends_on_regexes: ["^a_{i:05d}_.*"], parameters: {i: "0:19999"}}
        """,
    )
    assert len(plan.dependencies) == 20_000


@pytest.mark.parametrize("pattern", ["^ab?", "^ab*c", "^ab{0}", "^(ab|x)", "^ab|x", "^a.", "^abc$", "ab"])
def test_a_pattern_means_the_same_with_and_without_the_short_cut(tmp_path: Path, pattern: str) -> None:
    import re

    names = ["a", "ab", "abc", "ac", "ax", "b", "x", "xab", "aab"]
    text = "jobs:\n" + "".join(f"- {{name: {name}, command: c}}\n" for name in names)
    plan = plan_of(tmp_path, text + f"- {{name: zz, command: c, depends_on_regexes: ['{pattern}']}}\n")
    assert waits(plan)["zz"] == [name for name in names if re.search(pattern, name)]


def test_amounts_may_be_written_as_output_shows_them(tmp_path: Path) -> None:
    """Records have the forms of the HTTP contract."""
    plan = plan_of(
        tmp_path,
        """
        resource_requirements:
        - {name: shown, num_cpus: 1, memory: 8.8 MiB, runtime: 3 min 20 s}
        - {name: usual, num_cpus: 1, memory: 8G, runtime: P0DT1H}
        jobs: [{name: j, command: c, resource_requirements: shown}]
        """,
    )
    wanted = {each.name: (each.memory, each.runtime) for each in plan.resource_requirements}
    assert (wanted["shown"], wanted["usual"]) == (("9012k", "PT3M20S"), ("8G", "P0DT1H"))
