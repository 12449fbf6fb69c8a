"""The package spec: cost of its import, the examples, and the largest specs."""

import subprocess
import sys
from pathlib import Path

import pytest

from torc_framework.models.plan import Plan
from torc_framework.models.resources import parse_memory
from torc_framework.spec import load_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path for path in EXAMPLES.iterdir() if path.suffix in {".yaml", ".json", ".json5", ".kdl"})
HEAVY = ("yaml", "jsonschema", "cattrs", "msgspec", "pyjson5", "ckdl", "torc_framework.models.plan")


def test_importing_the_room_loads_no_library() -> None:
    """The first load does."""
    code = f"import sys, torc_framework.spec; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_right_file_never_needs_the_validator(tmp_path: Path) -> None:
    """The gate is enough; `jsonschema` is for explaining what is wrong."""
    code = (
        "import sys; from torc_framework.spec import load_plan; "
        "load_plan(sys.argv[1]); print('jsonschema' in sys.modules)"
    )
    for name in ("diamond.yaml", "sweep.json5", "retry.kdl"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(EXAMPLES / name)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "False\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_is_right_small_and_explained(path: Path) -> None:
    """No findings, no warnings; every job fits on two CPUs and 1 GiB; the first line says what it shows."""
    loaded = load_plan(path)
    assert loaded.warnings == []
    assert 1 <= len(loaded.plan.jobs) <= 200
    for asked in loaded.plan.resource_requirements:
        assert asked.num_cpus <= 2
        assert parse_memory(asked.memory) <= 1024**3
        assert (asked.num_gpus, asked.num_nodes) == (0, 1)
    assert not any(Path(file.path).is_absolute() for file in loaded.plan.files)
    assert path.read_text().startswith("# " if path.suffix == ".yaml" else "// ")


@pytest.mark.parametrize("name", sorted({path.stem for path in FILES}))
def test_an_example_is_the_same_workflow_in_every_format(name: str) -> None:
    plans: list[Plan] = [load_plan(path).plan for path in FILES if path.stem == name]
    assert all(plan == plans[0] for plan in plans)


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert [path.name for path in FILES if f"({path.name})" not in listed] == []
