"""Tests of the public names: each exists, and is imported when it is first used."""

import subprocess
import sys

import pytest

from torc_framework import api


def test_everything_that_is_exported_is_there() -> None:
    assert {name for name in api.__all__ if getattr(api, name, None) is None} == set()
    with pytest.raises(AttributeError, match="has no attribute 'Absent'"):
        api.Absent  # noqa: B018 - looking it up is the test


@pytest.mark.parametrize("name", ["JobRecord", "make_api"])
def test_the_client_is_imported_by_whoever_asks_for_it(name: str) -> None:
    """A plugin that only classifies exits does not pay for it."""
    code = (
        "import sys, torc_framework.api as api; "
        "heavy = {'torc_framework.client', 'torc_framework.models.records', 'msgspec', 'httptools'}; "
        f"print(sorted(heavy & sys.modules.keys())); api.{name}; print(bool(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nTrue\n"
