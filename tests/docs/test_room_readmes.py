"""Each folder of tests has a README: what belongs there, its border, how to run it, what it starts, its duration."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from doc_pages import DOCS

ROOT = DOCS.parent
ROOMS = sorted({path.parent for path in (ROOT / "tests").glob("*/test_*.py")})
PARTS = ["What belongs here", "Border", "Run", "Starts"]


@pytest.fixture(scope="module")
def tiers() -> dict[str, Any]:
    """The tiers by the names of their rooms."""
    table = runpy.run_path(str(ROOT / "tests" / "all.py"))["TIERS"]
    return {room: (name, tier.seconds) for name, tier in table.items() for room in tier.rooms}


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_a_room_has_a_readme(room: Path, tiers: dict[str, Any]) -> None:
    text = " ".join((room / "README.md").read_text(encoding="utf-8").split())
    assert re.findall(r"- \*\*([^*]+)\*\*:", text) == PARTS
    assert f"`python3 tests/all.py {room.name}`" in text
    tier, seconds = tiers[room.name]
    assert f"tier `{tier}`, which takes about {seconds} seconds on 2 cores" in text
