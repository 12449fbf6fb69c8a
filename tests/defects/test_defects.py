"""Every planted defect fails its suite within a minute, with the broken promise named; correct plugins pass.

Each class in `planted` is the suite of a plugin with one defect. ``promise`` is part of the clause that the suite has
to name, and ``only`` the one test that is run, where the whole suite would take long. Each class in `unusual` is the
suite of a correct plugin of an uncommon kind.
"""

import ast
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import pytest
from attrs import define, field

FOLDER: Final = Path(__file__).parent
LIMIT_S: Final = 60.0
PATIENCE_S: Final = 900.0
"""How long the suites of one test may take: a call that no suite interrupts fails the test here."""
PORTION: Final = 10
"""How many suites are one test, in one process: their start takes a second, and other workers run other portions."""
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


class Suite(NamedTuple):
    """The suite of a plugin: its class, the promise that is broken, and the only test that is run; "" is all."""

    name: str
    promise: str
    only: str


def suites_of(module: Path) -> list[Suite]:
    """Return the suites of a module."""
    found = []
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            assigned = [each for each in node.body if isinstance(each, ast.Assign)]
            values = {ast.unparse(each.targets[0]): each.value for each in assigned}
            promise, only = (ast.literal_eval(values[name]) if name in values else "" for name in ("promise", "only"))
            found.append(Suite(node.name, promise, only))
    return found


def portions(folder: str) -> Iterator[object]:
    """Yield each module of a folder several times, each time with some of its suites, which take less than a minute."""
    for module in sorted((FOLDER / folder).glob("*.py")):
        suites = suites_of(module)
        count = math.ceil(len(suites) / PORTION)
        for number in range(count):
            yield pytest.param(module, suites[number::count], id=f"{module.stem}-{number + 1}")


def outcomes(module: Path, suites: Sequence[Suite]) -> dict[str, SuiteOutcome]:
    """Run suites of a module in a process of its own; return their outcomes by class."""
    tests = [f"{module}::{name}" + (f"::{only}" if only else "") for name, _, only in suites]
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


def complaint(suite: Suite, outcome: SuiteOutcome) -> str:
    """Return what is wrong with the outcome of a suite whose plugin has a defect; "" is nothing."""
    if not outcome.failures:
        return f"passes {outcome.tests} tests"
    if others := [message for message in outcome.failures if NAMED not in message]:
        return f"names no promise: {others}"
    if not any(suite.promise in message for message in outcome.failures):
        return f"names other promises than {suite.promise!r}: {outcome.failures}"
    return f"takes {outcome.seconds:.0f} s" if outcome.seconds >= LIMIT_S else ""


@pytest.mark.parametrize(("module", "suites"), [*portions("planted")])
def test_defects_are_named(module: Path, suites: list[Suite]) -> None:
    """Each suite fails, names the promise and nothing but promises, and ends in time."""
    found = outcomes(module, suites)
    complaints = {suite.name: complaint(suite, found[suite.name]) for suite in suites}
    assert {name: text for name, text in complaints.items() if text} == {}


@pytest.mark.parametrize(("module", "suites"), [*portions("unusual")])
def test_correct_plugins_pass(module: Path, suites: list[Suite]) -> None:
    """A correct plugin raises no false alarm."""
    found = outcomes(module, suites)
    assert {name: found[name].failures for name, _, _ in suites if found[name].failures} == {}
