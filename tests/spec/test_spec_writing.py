"""A spec written to a file and read again is the same spec."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import workflow_specs

from torc_framework.errors import UnknownNameError
from torc_framework.spec import dump_spec, load_spec
from torc_framework.spec.language.model import JobSpec, WorkflowSpec

FORMATS = ("yaml", "json", "json5", "kdl")


@pytest.mark.parametrize("form", FORMATS)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(spec=workflow_specs)
def test_a_spec_written_back_reads_the_same(tmp_path: Path, form: str, spec: WorkflowSpec) -> None:
    """In every format, with any texts in it."""
    path = tmp_path / f"spec.{form}"
    path.write_text(dump_spec(spec, form), encoding="utf-8", newline="")
    assert load_spec(path) == spec


@pytest.mark.parametrize("form", FORMATS)
def test_what_has_its_default_is_left_out(form: str) -> None:
    text = dump_spec(WorkflowSpec(name="w", jobs=[JobSpec(name="a", command="true")]), form)
    assert "parameter_mode" not in text
    assert "cancel" not in text


def test_texts_that_look_like_other_values_are_quoted(tmp_path: Path) -> None:
    """Also for readers of YAML 1.1."""
    spec = WorkflowSpec(name="yes", jobs=[JobSpec(name="1e3", command="0o17"), JobSpec(name="on", command="~")])
    text = dump_spec(spec, "yaml")
    for word in ("yes", "1e3", "0o17", "on", "~"):
        assert f'"{word}"' in text
    (tmp_path / "w.yaml").write_text(text)
    assert load_spec(tmp_path / "w.yaml") == spec


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UnknownNameError, match="toml"):
        dump_spec(WorkflowSpec(name="w", jobs=[]), "toml")
