"""The table of tiers in tests/all.py: it names every folder of tests once."""

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    """The names of tests/all.py."""
    return runpy.run_path(str(ROOT / "tests" / "all.py"))


def test_every_folder_of_tests_is_in_one_tier(program: dict[str, Any]) -> None:
    files = [*(ROOT / "tests").glob("*/test_*.py"), *(ROOT / "plugins").glob("*/tests/test_*.py")]
    named = Counter(program["folder_of"](room) for tier in program["TIERS"].values() for room in tier.rooms)
    assert named == Counter({str(path.parent.relative_to(ROOT)) for path in files})


def test_quick_tiers_are_tiers_that_need_no_service(program: dict[str, Any]) -> None:
    assert {*program["QUICK"]} < {*program["TIERS"]}
    assert sum(program["TIERS"][name].seconds for name in program["QUICK"]) <= 120


def test_a_change_is_tested_by_the_files_that_import_it(program: dict[str, Any]) -> None:
    assert program["module_name"]("torc_framework/store/claims.py") == "torc_framework.store.claims"
    assert program["module_name"]("torc_framework/store/__init__.py") == "torc_framework.store"
    assert program["module_name"]("plugins/local/torc_local/launcher.py") == "torc_local.launcher"
    assert program["module_name"]("tests/helpers/programs.py") == "programs"
    found = {*program["imported"](ROOT / "tests" / "conftest.py")}
    assert {"programs", "programs.running_server", "pytest"} <= found
