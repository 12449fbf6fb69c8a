"""The order of the tests on clusters, which several processes run."""

from pathlib import Path

import pytest

SLURM = Path(__file__).parents[1] / "slurm"
ALONE_ON_SLURM = "quiet_cluster"
ALONE_ON_KUBERNETES = "quiet_namespace"
"""Fixtures that hold a cluster alone: no other test of this cluster runs meanwhile."""


def beside_other_cluster(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return tests so that those which hold Kubernetes alone are spread over those of Slurm, in front of all others.

    Those which hold Slurm alone are the last ones of Slurm. So most tests that share a cluster need not wait for it.
    """
    alone = [item for item in items if _uses(item, ALONE_ON_KUBERNETES)]
    found = sorted((item for item in items if item.path.parent == SLURM), key=lambda item: _uses(item, ALONE_ON_SLURM))
    others = [item for item in items if item.path.parent != SLURM and not _uses(item, ALONE_ON_KUBERNETES)]
    size = len(found)
    for number, item in reversed([*enumerate(alone)]):
        found.insert(number * size // len(alone), item)
    return [*found, *others]


def _uses(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())
