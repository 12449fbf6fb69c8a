"""Hypothesis strategies for the domain, in one place."""

from typing import Any

from hypothesis import strategies as st

from torc_framework.spec.language.model import (
    ActionSpec,
    FailureHandlerSpec,
    FileSpec,
    JobSpec,
    ResourceMonitorSpec,
    ResourceRequirementsSpec,
    SlurmSchedulerSpec,
    UserDataSpec,
    WorkflowSpec,
)

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
"""Names as people choose them."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
"""Any text that a file or command line can hold."""
COUNTS = st.integers(1, 2**31 - 1)
AMOUNTS = st.integers(0, 2**31 - 1)
MEMORY = st.from_regex(r"[1-9][0-9]{0,3}[kmgtKMGT]?", fullmatch=True)
DURATIONS = st.from_regex(r"P([1-9]D)?T[1-9][0-9]?[HMS]", fullmatch=True)
FRACTIONS = st.integers(0, 4000).map(lambda quarters: quarters / 4)
"""Numbers that every format reads exactly; ckdl reads others one bit off at times."""


def json_values(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    """Any JSON value with these numbers besides whole ones."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | numbers | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    )


JSON_VALUES = json_values(st.floats(allow_nan=False, allow_infinity=False))
WRITTEN_VALUES = json_values(FRACTIONS)
"""JSON values that every format writes and reads without a change."""


@st.composite
def whole_ranges(draw: st.DrawFn, most: int = 40) -> tuple[str, list[int]]:
    """A range of whole numbers as text, and its values."""
    start = draw(st.integers(-1000, 1000))
    step = draw(st.integers(-50, 50).filter(bool))
    count = draw(st.integers(1, most))
    values = [start + k * step for k in range(count)]
    beyond = draw(st.integers(0, abs(step) - 1)) * (1 if step > 0 else -1)
    text = f"{start}:{values[-1] + beyond}"
    return (text if step == 1 and draw(st.booleans()) else f"{text}:{step}"), values


@st.composite
def parameter_texts(draw: st.DrawFn) -> tuple[str, int]:
    """A parameter as text, and how many values it has."""
    if draw(st.booleans()):
        text, values = draw(whole_ranges(most=6))
        return text, len(values)
    entries = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    return "[" + ", ".join(f"'{entry}'" for entry in entries) + "]", len(entries)


def graphs(most: int = 12) -> st.SearchStrategy[tuple[int, list[tuple[int, int]]]]:
    """An acyclic graph: a number of jobs, and pairs (job, earlier job that it waits for)."""
    return st.integers(1, most).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).map(sorted).map(lambda p: (p[1], p[0])),
                max_size=30,
            ).map(lambda pairs: sorted({pair for pair in pairs if pair[0] != pair[1]})),
        )
    )


OPTIONS: st.SearchStrategy[Any] = st.dictionaries(
    NAMES, st.dictionaries(TEXTS, WRITTEN_VALUES, max_size=3), min_size=1, max_size=2
)
"""What a job sets for executors."""


def _optional(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | inner


def _many(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _optional(st.lists(inner, min_size=1, max_size=3))


_PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "parameters": _optional(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2)),
    "parameter_mode": st.sampled_from(["product", "zip"]),
    "use_parameters": _many(NAMES),
}
_JOBS = st.builds(
    JobSpec,
    name=TEXTS,
    command=TEXTS,
    invocation_script=_optional(TEXTS),
    resource_requirements=_optional(NAMES),
    failure_handler=_optional(NAMES),
    scheduler=_optional(NAMES),
    slurm_scheduler=_optional(NAMES),
    executor=_optional(NAMES),
    shell=_optional(st.sampled_from(["sh", "bash -e -o pipefail"])),
    container=_optional(TEXTS),
    executor_options=_optional(OPTIONS),
    cancel_on_blocking_job_failure=st.booleans(),
    supports_termination=st.booleans(),
    depends_on=_many(TEXTS),
    depends_on_regexes=_many(TEXTS),
    input_files=_many(NAMES),
    input_file_regexes=_many(TEXTS),
    output_files=_many(NAMES),
    output_file_regexes=_many(TEXTS),
    input_user_data=_many(NAMES),
    input_user_data_regexes=_many(TEXTS),
    output_user_data=_many(NAMES),
    output_user_data_regexes=_many(TEXTS),
    **_PARAMETERS,
)
_RULES = st.fixed_dictionaries(
    {},
    optional={
        "exit_codes": st.lists(st.integers(0, 255), min_size=1, max_size=3),
        "match_all_exit_codes": st.booleans(),
        "recovery_script": TEXTS,
        "max_retries": st.integers(0, 9),
    },
)
_SCHEDULERS = st.builds(
    SlurmSchedulerSpec,
    account=TEXTS,
    name=_optional(TEXTS),
    partition=_optional(TEXTS),
    nodes=COUNTS,
    walltime=TEXTS,
    mem=_optional(TEXTS),
    gres=_optional(TEXTS),
    qos=_optional(TEXTS),
    ntasks_per_node=_optional(COUNTS),
    tmp=_optional(TEXTS),
    extra=_optional(TEXTS),
)
_ACTIONS = st.builds(
    ActionSpec,
    trigger_type=st.sampled_from(["on_workflow_start", "on_jobs_ready", "on_worker_complete"]),
    action_type=st.sampled_from(["run_commands", "schedule_nodes"]),
    jobs=_many(TEXTS),
    job_name_regexes=_many(TEXTS),
    commands=_many(TEXTS),
    scheduler=_optional(TEXTS),
    scheduler_type=_optional(TEXTS),
    num_allocations=_optional(COUNTS),
    start_one_worker_per_node=_optional(st.booleans()),
    max_parallel_jobs=_optional(COUNTS),
    persistent=_optional(st.booleans()),
)
_REQUIREMENTS = st.builds(
    ResourceRequirementsSpec,
    name=TEXTS,
    num_cpus=COUNTS,
    memory=MEMORY,
    num_gpus=AMOUNTS,
    num_nodes=COUNTS,
    runtime=DURATIONS,
)
_MONITORS = st.builds(
    ResourceMonitorSpec,
    enabled=st.booleans(),
    granularity=st.sampled_from(["summary", "time_series", "Summary", "TimeSeries"]),
    sample_interval_seconds=COUNTS,
    generate_plots=st.booleans(),
)

workflow_specs = st.builds(
    WorkflowSpec,
    name=TEXTS,
    jobs=st.lists(_JOBS, min_size=1, max_size=3),
    user=_optional(TEXTS),
    description=_optional(TEXTS),
    project=_optional(TEXTS),
    container=_optional(TEXTS),
    executor_options=_optional(OPTIONS),
    metadata=WRITTEN_VALUES,
    parameters=_optional(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2)),
    files=_many(st.builds(FileSpec, name=TEXTS, path=TEXTS, **_PARAMETERS)),
    user_data=_many(
        st.builds(UserDataSpec, name=_optional(TEXTS), data=WRITTEN_VALUES, is_ephemeral=st.booleans(), **_PARAMETERS)
    ),
    resource_requirements=_many(_REQUIREMENTS),
    failure_handlers=_many(st.builds(FailureHandlerSpec, name=TEXTS, rules=st.lists(_RULES, min_size=1, max_size=2))),
    slurm_schedulers=_many(_SCHEDULERS),
    slurm_defaults=_optional(
        st.dictionaries(
            st.from_regex(r"[a-z][a-z0-9]*(-[a-z0-9]+){0,2}", fullmatch=True),
            TEXTS | st.integers(0, 99) | st.booleans() | FRACTIONS,
            min_size=1,
            max_size=3,
        )
    ),
    resource_monitor=_optional(_MONITORS),
    actions=_many(_ACTIONS),
    use_pending_failed=_optional(st.booleans()),
    compute_node_expiration_buffer_seconds=_optional(AMOUNTS),
    compute_node_wait_for_new_jobs_seconds=_optional(AMOUNTS),
    compute_node_ignore_workflow_completion=_optional(st.booleans()),
    compute_node_wait_for_healthy_database_minutes=_optional(AMOUNTS),
    compute_node_min_time_for_new_jobs_seconds=_optional(AMOUNTS),
    jobs_sort_method=_optional(st.sampled_from(["none", "gpus_runtime_memory", "gpus_memory_runtime"])),
)
"""Specs of the right shape, in every field; what they name need not exist."""
