"""Tests of the page on workflow views: examples have the shapes that the server sends, tables have all parameters."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torc_framework.server.routes.workflow_views import VIEW_ENDPOINTS

PAGE = Path(__file__).parents[2] / "docs/reference/workflow-views.md"
SECTIONS = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8")))


def fields_of(value: Any) -> Any:
    """Return the names of all fields of JSON objects within lists and objects, without their values."""
    if isinstance(value, dict):
        return {name: fields_of(inner) for name, inner in value.items()}
    return [fields_of(value[0])] if isinstance(value, list) and value else None


@pytest.mark.parametrize("endpoint", VIEW_ENDPOINTS, ids=lambda each: str(each.path.rsplit("/", 1)[1]))
def test_the_example_of_a_view_has_its_shape(endpoint: Any) -> None:
    section = SECTIONS[endpoint.path.rsplit("/", 1)[1]]
    (example,) = re.findall(r"(?s)```json\n(.*?)```", section)
    given = json.loads(example)
    read = msgspec.convert(given, endpoint.response, strict=True)
    names = {field.name for field in msgspec.structs.fields(endpoint.response)}
    assert set(given) == names
    sent = json.loads(msgspec.json.encode(read))
    for name in set(given) - {"overview"}:
        assert fields_of(sent[name]) == fields_of(given[name]), name


@pytest.mark.parametrize("endpoint", VIEW_ENDPOINTS, ids=lambda each: str(each.path.rsplit("/", 1)[1]))
def test_every_parameter_of_a_view_is_described(endpoint: Any) -> None:
    section = SECTIONS[endpoint.path.rsplit("/", 1)[1]]
    for name in endpoint.query:
        assert re.search(rf"`{name}`|[?&]{name}=", section), name
