"""Large specs in slices: the same plan, warnings and errors as when all is in memory at once."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from torc_framework.models.plan import Plan
from torc_framework.models.plan_inputs import PlanInputs
from torc_framework.models.plan_parts import PlanParts, PlanSlice
from torc_framework.spec import LoadOptions, SpecError, load_parts, load_plan
from torc_framework.spec.expansion import expand, parameters
from torc_framework.spec.language.options import KnownExecutor
from torc_framework.spec.reading import json_slices

OPTIONS = LoadOptions(user="u", executors=["local"], known_executors={"local": KnownExecutor()})
NAMES = [f"job_{n}" for n in range(8)]
"""Names of jobs; with so few of them, jobs refer to jobs before, to jobs after, to themselves, and to none."""


@contextmanager
def small_slices(length: int = 2, size: int = 256) -> Iterator[None]:
    """Make slices of few jobs and bytes, and values of parameters at each use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_slices, "SLICE_BYTES", size)
        patch.setattr(expand, "SLICE_LENGTH", length)
        patch.setattr("torc_framework.spec.pipeline.SLICE_LENGTH", length)
        for module in (expand, parameters):
            patch.setattr(module, "MAX_KEPT_VALUES", length)
        yield


def whole_of(parts: PlanParts) -> Plan:
    """Return the plan of parts."""
    slices = list(parts.slices)
    positions = [*chain.from_iterable(part.dependencies for part in slices)]
    jobs = [*chain.from_iterable(part.jobs.jobs() for part in slices if part.jobs is not None)]
    head = parts.head
    assert (head.job_count, head.dependency_count) == (len(jobs), len(positions) // 2)
    same = {name: getattr(head, name) for name in ("workflow", "barriers", "files", "user_data", "actions")}
    records = ("resource_requirements", "failure_handlers", "slurm_schedulers", "local_schedulers")
    pairs = list(zip(positions[0::2], positions[1::2], strict=True))
    return Plan(jobs=jobs, dependencies=pairs, **same, **{name: getattr(head, name) for name in records})


def in_slices(path: Path) -> Any:
    """Return plan, warnings and inputs of a file that is read in slices, or its errors."""
    with small_slices():
        try:
            loaded = load_parts(path, options=OPTIONS)
        except SpecError as error:
            return list(map(str, error.findings))
        if isinstance(loaded.plan, PlanParts):
            return whole_of(loaded.plan), loaded.warnings, loaded.inputs
        return loaded.plan, loaded.warnings, loaded.inputs


def at_once(path: Path) -> Any:
    """Return the same of a file that is read as a whole."""
    try:
        loaded = load_plan(path, options=OPTIONS)
    except SpecError as error:
        return list(map(str, error.findings))
    return loaded.plan, loaded.warnings, PlanInputs.of(loaded.plan.jobs)


def seldom(good: Any, *wrong: Any, times: int = 12) -> st.SearchStrategy[Any]:
    """Return a value about once in ``times`` times, else None, which leaves the key out; a wrong one more seldom."""
    values = st.integers(0, 9).flatmap(lambda n: st.sampled_from(wrong) if wrong and n == 0 else st.sampled_from(good))
    return st.integers(1, times).flatmap(lambda n: values if n == times else st.none())


COMMANDS = ["true", "echo é", 'echo "a": b', "echo a :b", "}, {", "}]", "a\\u0041", "${HOME}", "{i}", '"jobs": [{']
REFERENCES = ["cat ${files.input.in}", "x > ${files.output.out}"]
JOB_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "depends_on_regexes": seldom([["^job_[01]$"], ["job_2", "^job_0"]], ["none"], ["("]),
    "resource_requirements": seldom(
        ["small", {"num_cpus": 2, "memory": "1g"}, {"num_cpus": 1, "memory": "2g", "name": "own"}],
        *("none", {"num_cpus": 0, "memory": "1g"}),
    ),
    "failure_handler": seldom(["again"], "none"),
    "scheduler": seldom(["gpu"], "none"),
    "executor": seldom(["local"], "none"),
    "shell": seldom(["sh", "sh -e"], "sh -c 'x"),
    "stdio": seldom(["none", "combined"], "some"),
    "supports_termination": seldom([True, False], 1),
    "input_files": seldom([["in"], ["in", "out"]], ["none"]),
    "output_files": seldom([["out"]]),
    "input_user_data": seldom([["data"]]),
    "executor_options": seldom([{"local": {}}], {"other": {}}),
    "parameters": seldom([{"i": "1:5"}, {"i": "[a,$]"}, {"j": "0.5:3.0:0.5"}], {"i": "2:1"}, times=4),
    "colour": seldom([None], "red"),
}


def without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


@st.composite
def jobs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Jobs, many of which are plain; most wait for jobs before them in another order than that of the list."""
    made: list[dict[str, Any]] = []
    for position, name in enumerate(NAMES):
        before = NAMES[:position] if draw(st.integers(0, 30)) else [*NAMES, "none"]
        fields: dict[str, Any] = {"name": name, "command": draw(st.sampled_from(COMMANDS))}
        waits = draw(st.booleans())
        if before and waits:
            key = draw(st.sampled_from(["depends_on", "depends_on", "blocked_by"]))
            fields[key] = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2))
        if draw(st.integers(0, 4)) == 0:
            fields |= without_none(draw(st.fixed_dictionaries(JOB_FIELDS)))
            fields["command"] = draw(st.sampled_from([*COMMANDS, *REFERENCES]))
        for parameter in fields.get("parameters", ()):
            fields["name"] += f"_{{{parameter}}}"
        made.append(fields)
    if draw(st.integers(0, 30)) == 0:
        made.append({"name": draw(st.sampled_from(NAMES)), "command": "x"})
    order: list[dict[str, Any]] = draw(st.permutations(made))
    return order if draw(st.booleans()) else made


ACTION = {"trigger_type": "on_jobs_ready", "action_type": "run_commands", "commands": ["x"]}
HEADS = st.fixed_dictionaries(
    {
        "name": st.just("w"),
        "shell": seldom(["sh"]),
        "container": seldom(["image"]),
        "resource_requirements": st.just([{"name": "small", "num_cpus": 1, "memory": "1g", "runtime": "PT9H"}]),
        "failure_handlers": st.just([{"name": "again", "rules": [{"exit_codes": [1], "max_retries": 1}]}]),
        "slurm_schedulers": st.none() | st.just([{"name": "gpu", "account": "a"}, {"account": "b", "mem": "1g"}]),
        "files": st.just([{"name": "in", "path": "i.txt"}, {"name": "out", "path": "o_{n}", "parameters": {"n": "1"}}]),
        "user_data": st.none() | st.just([{"name": "data", "data": {"a": [1, 2]}}]),
        "actions": seldom([[{**ACTION, "jobs": ["job_1"]}], [{**ACTION, "job_name_regexes": ["job_[12]"]}]]),
        "enable_ro_crate": seldom([True]),
    }
).map(without_none)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """The text of a JSON spec, which may have errors."""
    head, entries = draw(HEADS), draw(jobs())
    data = {**head, "jobs": entries} if draw(st.booleans()) else {"jobs": entries, **head}
    text = json.dumps(
        data,
        indent=draw(st.sampled_from([None, 1])),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")])),
        ensure_ascii=draw(st.booleans()),
    )
    if draw(st.integers(0, 19)) == 0:
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(["", ",", "}", "]", '"', "\0", '"name": "x",'])) + text[place + 1 :]
    return text


@settings(deadline=None, max_examples=100)
@given(text=documents())
def test_a_spec_in_slices_is_the_same_as_at_once(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.json"
        path.write_text(text, encoding="utf-8")
        found = in_slices(path)
        assert found == at_once(path)
        event("has errors" if isinstance(found, list) else "is in slices" if is_in_slices(path) else "is whole")


def is_in_slices(path: Path) -> bool:
    with small_slices():
        return isinstance(load_parts(path, options=OPTIONS).plan, PlanParts)


def spec_file(folder: Path, *entries: dict[str, Any], **head: Any) -> Path:
    path = folder / "spec.json"
    path.write_text(json.dumps({"name": "w", "jobs": entries, **head}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"depends_on": ["job_0"]},
        {"depends_on": ["job_7", "job_8"]},
        {"depends_on_regexes": ["job_[89]"]},
        {"executor_options": {"local": {}}},
        {"input_files": ["in"], "command": "cat ${files.input.in} é"},
        {"resource_requirements": {"num_cpus": 1, "memory": "1g"}},
        {"name": "more_{i}", "parameters": {"i": "1:3"}},
    ],
)
def test_jobs_of_all_kinds_are_read_in_slices(tmp_path: Path, more: dict[str, Any]) -> None:
    entries = [{"name": f"job_{n}", "command": f"run {n}"} for n in range(20)]
    path = spec_file(tmp_path, *entries, {"name": "last", "command": "x"} | more, files=[{"name": "in", "path": "i"}])
    assert is_in_slices(path)
    assert in_slices(path) == at_once(path)


@pytest.mark.parametrize("parameter", ["1:9", "9:1:-2", "0.0:1.0:0.25", "0.1:10:9"])
@pytest.mark.parametrize("place", ["{i}", "{i}{i}", "$ {i}"])
def test_a_sweep_is_made_in_slices(tmp_path: Path, parameter: str, place: str) -> None:
    after = {"name": "after_{i}", "command": "x", "depends_on": ["job_{i}"], "parameters": {"i": parameter}}
    entry = {"name": f"job_{{i}}_{place}", "command": place, "parameters": {"i": parameter}}
    path = spec_file(tmp_path, {**entry, "name": "job_{i}"}, entry, after, {"name": "one", "command": "x"})
    assert is_in_slices(path)
    assert in_slices(path) == at_once(path)


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
@pytest.mark.parametrize("mode", ["product", "zip"])
def test_two_parameters_are_made_in_the_same_order_in_slices(tmp_path: Path, names: tuple[str, str], mode: str) -> None:
    values = {names[0]: "1:5", names[1]: "3:7"}
    entry = {"name": "job_{i}_{j:03d}", "command": "x", "parameters": values, "parameter_mode": mode}
    path = spec_file(tmp_path, entry)
    assert in_slices(path) == at_once(path)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    entries = [{"name": f"job_{n}", "command": "run"} for n in range(20)]
    path = spec_file(tmp_path, *entries)
    with small_slices():
        loaded = load_parts(path, options=OPTIONS)
        path.write_text(path.read_text().replace("job_5", "job_6"))
        assert isinstance(loaded.plan, PlanParts)
        with pytest.raises(SpecError, match="the file was changed while it was read"):
            list(loaded.plan.slices)


def test_a_job_with_a_key_twice_is_an_error_in_a_slice(tmp_path: Path) -> None:
    path = spec_file(tmp_path, *({"name": f"job_{n}", "command": "run"} for n in range(20)))
    path.write_text(path.read_text().replace('"name": "job_5"', '"name": "job_5", "name": "job_30"'))
    found = in_slices(path)
    assert found == at_once(path)
    assert "key 'name' is given twice" in found[0]


def test_slices_of_a_plan_have_whole_pairs(tmp_path: Path) -> None:
    entries = [
        {"name": f"job_{n}", "command": "run"} | ({"depends_on": [f"job_{n - 1}"]} if n else {}) for n in range(20)
    ]
    with small_slices():
        loaded = load_parts(spec_file(tmp_path, *entries), options=OPTIONS)
        assert isinstance(loaded.plan, PlanParts)
        slices = list(loaded.plan.slices)
    assert slices[0] == PlanSlice(dependencies=[*chain.from_iterable((n, n - 1) for n in range(1, 20))])
    assert len(slices) > 3
