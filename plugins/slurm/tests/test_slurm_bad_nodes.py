"""The file of nodes that failed."""

from pathlib import Path

import pytest
from torc_slurm.cluster import bad_nodes
from torc_slurm.cluster.bad_nodes import BadNodes


def test_nodes_are_recorded_and_removed(tmp_path: Path) -> None:
    """A node that fails again gets a new time."""
    memory = BadNodes(tmp_path / "a" / "nodes.json")
    assert memory.failed_within(1e9) == {}
    memory.remember(["n3", "n1"], "NODE_FAIL of job 7")
    memory.remember(["n3"], "NODE_FAIL of job 8")
    assert {node: facts["reason"] for node, facts in memory.failed_within(60).items()} == {
        "n1": "NODE_FAIL of job 7",
        "n3": "NODE_FAIL of job 8",
    }
    assert memory.failed_within(-1) == {}
    assert memory.forget(["n3", "n9"]) == ["n3"]
    assert memory.forget() == ["n1"]
    assert memory.failed_within(1e9) == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"n1": 3}', '{"n1": {"at": "x", "reason": "y"}}'])
def test_a_broken_file_is_an_empty_one(tmp_path: Path, text: str) -> None:
    """Broken content raises no error."""
    (tmp_path / "nodes.json").write_text(text)
    memory = BadNodes(tmp_path / "nodes.json")
    assert memory.failed_within(1e9) == {}
    memory.remember(["n2"], "r")
    assert list(memory.failed_within(60)) == ["n2"]


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    """The oldest failures are dropped."""
    memory = BadNodes(tmp_path / "nodes.json")
    memory.remember([f"n{number}" for number in range(bad_nodes.MAX_NODES)], "r")
    memory.remember(["late"], "r")
    known = memory.failed_within(60)
    assert len(known) == bad_nodes.MAX_NODES
    assert "late" in known
