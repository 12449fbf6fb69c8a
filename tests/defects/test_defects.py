"""Every planted defect fails its suite within a minute, with the broken promise named; correct plugins pass.

Each class in `planted` is the suite of a plugin with one defect. ``promise`` is part of the clause that the suite has
to name, and ``only`` the one test that is run, where the whole suite would take long. Each class in `unusual` is the
suite of a correct plugin of an uncommon kind.
"""

import ast
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest
from attrs import define, field

FOLDER: Final = Path(__file__).parent
LIMIT_S: Final = 60.0
PATIENCE_S: Final = 900.0
"""How long all suites of a module may take: a call that no suite interrupts fails the tests here."""
NAMED: Final = "the contract says: "
OPTIONS: Final = (
    "-q",
    "-o",
    "addopts=",
    "-p",
    "no:cacheprovider",
    "--tb=line",
    "--import-mode=importlib",
    "-p",
    "no:unraisableexception",
)


@define
class SuiteOutcome:
    """What pytest reported of one suite: seconds, number of tests, and the messages of failures."""

    seconds: float = 0.0
    tests: int = 0
    failures: list[str] = field(factory=list)


def suites_of(module: Path) -> list[tuple[str, str, str]]:
    """Return the class, the promise and the only test of each suite of a module."""
    found = []
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            assigned = [each for each in node.body if isinstance(each, ast.Assign)]
            values = {ast.unparse(each.targets[0]): each.value for each in assigned}
            promise, only = (ast.literal_eval(values[name]) if name in values else "" for name in ("promise", "only"))
            found.append((node.name, promise, only))
    return found


def suites(folder: str) -> list[tuple[Path, str, str]]:
    """Return module, class and promise of each suite in a folder."""
    modules = sorted((FOLDER / folder).glob("*.py"))
    return [(module, name, promise) for module in modules for name, promise, _ in suites_of(module)]


@cache
def outcomes(module: Path) -> dict[str, SuiteOutcome]:
    """Run the suites of a module in a process of its own; return their outcomes by class."""
    tests = [f"{module}::{name}" + (f"::{only}" if only else "") for name, _, only in suites_of(module)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"--junitxml={report}", *tests]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        cases = list(ElementTree.parse(report).iter("testcase"))
    found: dict[str, SuiteOutcome] = {}
    for case in cases:
        outcome = found.setdefault(case.attrib["classname"].rpartition(".")[2], SuiteOutcome())
        outcome.seconds += float(case.attrib["time"])
        outcome.tests += 1
        outcome.failures += [each.attrib["message"] for kind in ("failure", "error") for each in case.iter(kind)]
    return found


@pytest.mark.parametrize(("module", "name", "promise"), suites("planted"), ids=lambda each: getattr(each, "stem", each))
def test_a_defect_is_named(module: Path, name: str, promise: str) -> None:
    """The suite fails, names the promise, and ends in time."""
    outcome = outcomes(module)[name]
    assert outcome.failures, f"{name} passes {outcome.tests} tests"
    assert any(promise in message for message in outcome.failures), outcome.failures
    assert [message for message in outcome.failures if NAMED not in message] == []
    assert outcome.seconds < LIMIT_S


@pytest.mark.parametrize(("module", "name", "promise"), suites("unusual"), ids=lambda each: getattr(each, "stem", each))
def test_a_correct_plugin_passes(module: Path, name: str, promise: str) -> None:
    """A correct plugin raises no false alarm."""
    assert promise == ""
    outcome = outcomes(module)[name]
    assert outcome.tests
    assert outcome.failures == []
