"""Parameters multiply items by their names, and gather in lists what the names do not mention."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import parameter_texts

from torc_framework.spec.expansion.expand import expand
from torc_framework.spec.language.findings import Problems
from torc_framework.spec.language.model import FileSpec, JobSpec, UserDataSpec, WorkflowSpec


def jobs_of(*jobs: JobSpec, parameters: dict[str, str] | None = None) -> list[JobSpec]:
    problems = Problems()
    expanded = expand(WorkflowSpec(name="w", jobs=list(jobs), parameters=parameters), problems)
    assert problems.findings() == []
    return expanded.jobs.items


def findings_of(*jobs: JobSpec, parameters: dict[str, str] | None = None) -> list[str]:
    problems = Problems()
    expand(WorkflowSpec(name="w", jobs=list(jobs), parameters=parameters), problems)
    return [str(finding) for finding in problems.findings()]


def job(name: str, command: str = "true", **rest: Any) -> JobSpec:
    return JobSpec(name=name, command=command, **rest)


def test_every_field_is_filled() -> None:
    (first, second) = jobs_of(
        job(
            "a{i}",
            "run {i:02d} {i}",
            invocation_script="nice -n {i}",
            resource_requirements="r{i}",
            depends_on=["b{i}", "c"],
            depends_on_regexes=["^d{i}_\\d{2}$"],
            output_files=["f{i}"],
            parameters={"i": "1:2"},
        )
    )
    assert (first.name, first.command, first.invocation_script) == ("a1", "run 01 1", "nice -n 1")
    assert (second.name, second.resource_requirements) == ("a2", "r2")
    assert second.depends_on == ["b2", "c"]
    assert second.depends_on_regexes == ["^d2_\\d{2}$"]
    assert second.output_files == ["f2"]
    assert second.parameters is None


def test_the_first_parameter_changes_slowest() -> None:
    names = [made.name for made in jobs_of(job("{a}{b}", parameters={"b": "[x,y]", "a": "1:2"}))]
    assert names == ["1x", "2x", "1y", "2y"]


def test_zip_takes_values_in_pairs() -> None:
    made = jobs_of(job("{a}{b}", parameters={"a": "1:3", "b": "[x,y,z]"}, parameter_mode="zip"))
    assert [one.name for one in made] == ["1x", "2y", "3z"]


def test_zip_wants_equal_counts() -> None:
    (text,) = findings_of(job("{a}{b}", parameters={"a": "1:3", "b": "[x,y]"}, parameter_mode="zip"))
    assert "All parameters must have the same number of values when using 'zip' mode." in text
    assert "Parameter 'a' has 3 values, but 'b' has 2 values." in text


@pytest.mark.parametrize(
    "text",
    ["${HOME}", "${i}", "awk '{print $1}'", "find . -exec rm {} +", "{j}", "{i", "i}", "%s %d 100%", "{ i }", "{i!r}"],
)
def test_other_braces_stay_untouched(text: str) -> None:
    """Those of the shell and of awk, unknown names, and ``${name}`` even if a parameter has that name."""
    assert [one.command for one in jobs_of(job("a{i}", text + " {i}%", parameters={"i": "1:2"}))] == [
        text + " 1%",
        text + " 2%",
    ]
    assert jobs_of(job("plain", text))[0].command == text


def test_places_within_references_are_filled() -> None:
    (made,) = jobs_of(job("a{i}", "cat ${files.input.part_{i}}", parameters={"i": "7"}))
    assert made.command == "cat ${files.input.part_7}"


def test_a_name_without_parameters_is_one_job_that_gathers() -> None:
    """Its lists hold an entry for every combination, each once, in order."""
    (made,) = jobs_of(
        job("all", input_files=["m_{a}_{b}", "x", "n_{a}"], parameters={"a": "1:2", "b": "[p,q]", "c": "1:3"})
    )
    assert made.input_files == ["m_1_p", "m_1_q", "m_2_p", "m_2_q", "x", "n_1", "n_2"]


def test_parameters_in_the_name_multiply_and_the_others_gather() -> None:
    made = jobs_of(job("per_{a}", input_files=["m_{a}_{b}"], parameters={"a": "1:2", "b": "[p,q]"}))
    assert [(one.name, one.input_files) for one in made] == [
        ("per_1", ["m_1_p", "m_1_q"]),
        ("per_2", ["m_2_p", "m_2_q"]),
    ]


def test_zipped_parameters_gather_by_what_the_name_mentions() -> None:
    made = jobs_of(job("k{a}", depends_on=["d{b}"], parameters={"a": "[1,1,2]", "b": "[x,y,z]"}, parameter_mode="zip"))
    assert [(one.name, one.depends_on) for one in made] == [("k1", ["dx", "dy"]), ("k2", ["dz"])]


@pytest.mark.parametrize("field", ["command", "invocation_script", "resource_requirements"])
def test_a_single_field_cannot_gather(field: str) -> None:
    made = job("all", parameters={"i": "1:3"})
    setattr(made, field, "x{i}")
    (text,) = findings_of(made)
    assert text == f"jobs[0].{field}: {{i}} has 3 values here; expected one; put {{i}} into the name too, to have " + (
        "one for each value"
    )


def test_a_parameter_of_one_value_needs_no_place_in_the_name() -> None:
    (made,) = jobs_of(job("only", "run {i}", parameters={"i": "5"}))
    assert made.command == "run 5"


def test_shared_parameters_are_chosen_and_overridden() -> None:
    problems = Problems()
    spec = WorkflowSpec(
        name="w",
        parameters={"a": "1:3", "b": "[x,y]"},
        jobs=[
            job("one_{a}", use_parameters=["a"]),
            job("two_{a}_{b}", use_parameters=["b", "a"], parameters={"a": "9"}),
            job("none_{a}"),
        ],
    )
    names = [made.name for made in expand(spec, problems).jobs.items]
    assert names == ["one_1", "one_2", "one_3", "two_9_x", "two_9_y", "none_{a}"]
    assert not problems.warnings


def test_files_and_user_data_expand_too() -> None:
    """Also the texts deep within data."""
    spec = WorkflowSpec(
        name="w",
        jobs=[],
        files=[FileSpec(name="f{i}", path="/x/{i:03d}", parameters={"i": "1:2"})],
        user_data=[
            UserDataSpec(name="c_{e}", data={"e": ["{e}", 1, {"k": "x{e}"}]}, parameters={"e": "[p,q]"}),
        ],
    )
    expanded = expand(spec, Problems())
    assert [(file.name, file.path) for file in expanded.files.items] == [("f1", "/x/001"), ("f2", "/x/002")]
    assert expanded.user_data.items[1].data == {"e": ["q", 1, {"k": "xq"}]}
    assert expanded.user_data.origins == [0, 0]


def test_a_file_that_mentions_a_parameter_in_its_path_alone_is_refused() -> None:
    problems = Problems()
    expand(WorkflowSpec(name="w", jobs=[], files=[FileSpec(name="f", path="{i}", parameters={"i": "1:2"})]), problems)
    assert "put {i} into the name too" in problems.findings()[0].hint


def test_a_listed_value_keeps_its_spelling() -> None:
    made = jobs_of(job("lr{lr:.4f}", "train --lr {lr}", parameters={"lr": "[0.0001,1e-3,0.010]"}))
    assert [one.command for one in made] == ["train --lr 0.0001", "train --lr 1e-3", "train --lr 0.010"]
    assert [one.name for one in made] == ["lr0.0001", "lr0.0010", "lr0.0100"]


def test_a_specifier_that_does_not_go_is_a_finding() -> None:
    (text,) = findings_of(job("a{s:03d}", parameters={"s": "[x]"}))
    assert "jobs[0].name" in text
    assert "'x' is text" in text


def test_bad_parameters_are_found_where_they_stand() -> None:
    found = findings_of(job("a{i}", parameters={"i": "1:x"}), parameters={"k": "5:1"})
    assert found[0].startswith("parameters.k: the range 5:1 is empty")
    assert found[1].startswith("jobs[0].parameters.i: '1:x' is no range")


@pytest.mark.parametrize("name", ["1x", "a.b", "a b", "a:b"])
def test_parameters_have_names_that_can_be_mentioned(name: str) -> None:
    (text,) = findings_of(job("a{i}", parameters={name: "1:2"}))
    assert f"{name!r} is no name for a parameter; expected letters" in text


def test_absurd_sizes_are_refused_before_anything_is_made() -> None:
    (text,) = findings_of(job("a{i}_{j}_{k}", parameters={"i": "1:10000", "j": "1:10000", "k": "1:10000"}))
    assert "1,000,000,000,000 entries" in text
    (text,) = findings_of(job("a{i}", depends_on=["b{j}_{k}"], parameters={"i": "1:2000", "j": "1:2000", "k": "1:9"}))
    assert "at most" in text


def test_an_unused_parameter_is_a_warning() -> None:
    problems = Problems()
    expand(WorkflowSpec(name="w", jobs=[job("a{i}", parameters={"i": "1:2", "seed": "1:3"})]), problems)
    assert problems.warnings == ["Parameter 'seed' of jobs[0] ('a{i}') is used nowhere in it."]


@given(st.lists(parameter_texts(), min_size=1, max_size=3))
def test_counts_multiply(parameters: list[tuple[str, int]]) -> None:
    """As many jobs as the product of the counts, all different; and one job that gathers as many entries."""
    names = {f"p{n}": text for n, (text, _) in enumerate(parameters)}
    mark = "_".join(f"{{{name}}}" for name in names)
    made = jobs_of(
        job(f"each_{mark}", f"run {mark}", parameters=names), job("all", depends_on=[mark], parameters=names)
    )
    expected = math.prod(count for _, count in parameters)
    assert len({one.name for one in made[:-1]}) == expected
    assert len(made) == expected + 1
    assert made[-1].depends_on == [one.name.removeprefix("each_") for one in made[:-1]]


@given(st.lists(parameter_texts(), min_size=1, max_size=3))
def test_expansion_is_the_same_every_time(parameters: list[tuple[str, int]]) -> None:
    names = {f"p{n}": text for n, (text, _) in enumerate(parameters)}
    spec = job("".join(f"{{{name}}}" for name in names), parameters=names)
    assert jobs_of(spec) == jobs_of(spec)
