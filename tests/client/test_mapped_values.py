"""Tests of the conversion of Python values to JSON and back."""

import dataclasses
import enum
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.client.mapped_functions.values import annotation_of, from_json_values, to_json_values
from torc_framework.errors import UserError


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Dataclass:
    x: int
    when: datetime


@attrs.define
class Attrs:
    x: int
    inner: Dataclass | None = None


class Pydantic(pydantic.BaseModel):
    x: int
    path: Path
    color: Color = Color.RED


class Strict(pydantic.BaseModel, extra="forbid"):
    from_: int = pydantic.Field(alias="from")

    @pydantic.computed_field
    def double(self) -> int:
        return 2 * self.from_


DATACLASS = Dataclass(1, datetime(2026, 1, 2, tzinfo=UTC))
PAIRS: list[tuple[Any, Any, Any]] = [
    (DATACLASS, Dataclass, {"x": 1, "when": "2026-01-02T00:00:00Z"}),
    (Attrs(2, DATACLASS), Attrs, {"x": 2, "inner": {"x": 1, "when": "2026-01-02T00:00:00Z"}}),
    (Pydantic(x=3, path=Path("a/b")), Pydantic, {"x": 3, "path": "a/b", "color": "red"}),
    ([Attrs(1)], list[Attrs], [{"x": 1, "inner": None}]),
    ({"a": Pydantic(x=1, path=Path("p"))}, dict[str, Pydantic], {"a": {"x": 1, "path": "p", "color": "red"}}),
    (None, Attrs | None, None),
    (Color.RED, Color, "red"),
    (Strict.model_validate({"from": 2}), Strict, {"from": 2}),
]
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(("value", "annotation", "plain"), PAIRS)
def test_classes_go_out_as_json_and_come_back(value: Any, annotation: Any, plain: Any) -> None:
    assert to_json_values(value, "it") == plain
    assert from_json_values(plain, annotation, "it") == value


@given(PLAIN)
def test_plain_values_stay_as_they_are(value: Any) -> None:
    """Whatever the annotation says, unless it names a class: the function is called as Python would call it."""
    assert to_json_values(value, "it") == value
    for annotation in (None, Any, dict, list[int], "str", float | None):
        assert from_json_values(value, annotation, "it") is value


@pytest.mark.parametrize(
    "value", [math.inf, [math.nan], {"a": -math.inf}, object(), {1: {2: lambda: 0}}, print, "\ud800"]
)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match="the result cannot be stored as JSON"):
        to_json_values(value, "the result")


def test_a_list_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UserError, match="cannot be stored as JSON"):
        to_json_values(value, "it")


@pytest.mark.parametrize(
    ("plain", "annotation"),
    [({"x": "1"}, Attrs), ({}, Pydantic), ([{"x": 1.5}], list[Attrs]), ("blue", Color), (3, Attrs | None)],
)
def test_what_does_not_fit_is_refused(plain: Any, annotation: Any) -> None:
    with pytest.raises(UserError, match="it does not fit"):
        from_json_values(plain, annotation, "it")


def test_numpy_like_values_are_what_they_hold() -> None:
    class Array:
        def tolist(self) -> list[float]:
            return [1.0, 2.0]

    assert to_json_values({"a": Array()}, "it") == {"a": [1.0, 2.0]}


def test_annotations_are_read_where_there_are_any() -> None:
    def annotated(name: str, params: "Attrs") -> None: ...
    def bare(name, params): ...  # type: ignore[no-untyped-def]  # a function without annotations is a case
    def broken(name: str, params: "Absent") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - a case, too

    assert annotation_of(annotated, 1) is Attrs
    assert [annotation_of(function, 1) for function in (bare, broken, print, math.pow)] == [None] * 4
