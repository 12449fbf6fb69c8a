"""Test that the client has a method for every operation in the server's OpenAPI document."""

import importlib.util
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECOND_WAYS = {("GET", "/failure_handlers")}
"""Operations that do the same as another one: that below a workflow is the contract's."""
FOR_OPERATORS = {("GET", "/health"), ("GET", "/metrics")}
"""Operations that load balancers and scrapers ask for, not programs."""


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[str, str]]:
    """The request of every method."""
    spec = importlib.util.spec_from_file_location("client_calls", ROOT / "docs" / "client_calls.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    requests: dict[str, tuple[str, str]] = module.requests()
    return requests


@pytest.fixture(scope="module")
def published(server: str) -> set[tuple[str, str]]:
    """Every operation of the server's document; each variable part of a path is ``{}``."""
    with urllib.request.urlopen(f"{server}/openapi.json", timeout=60) as answer:
        paths = json.load(answer)["paths"]
    return {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path.removeprefix("/torc-service/v1")))
        for path, methods in paths.items()
        for method in methods
    }


def test_every_operation_is_reachable(made: dict[str, tuple[str, str]], published: set[tuple[str, str]]) -> None:
    assert len(published) > 60
    assert published - set(made.values()) == SECOND_WAYS | FOR_OPERATORS


def test_every_method_asks_for_an_operation_that_is_there(
    made: dict[str, tuple[str, str]], published: set[tuple[str, str]]
) -> None:
    assert {name: request for name, request in made.items() if request not in published} == {}
