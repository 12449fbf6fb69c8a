"""The Role in the manifests gives exactly the rights of the table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torc_k8s
import yaml
from torc_k8s.cluster.rights import CLUSTER_RIGHTS, RIGHTS, AccessRight

MANIFESTS = Path(torc_k8s.__file__).with_name("manifests")


def rules(path: str) -> dict[str, list[str]]:
    """Return the verbs of a Role by resource."""
    role: dict[str, Any] = yaml.safe_load((MANIFESTS / path).read_text())
    assert all(rule["apiGroups"] == [""] for rule in role["rules"])
    return {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}


@pytest.mark.parametrize(
    ("path", "rights"), [("role/role.yaml", RIGHTS), ("nodes-role/cluster-role.yaml", CLUSTER_RIGHTS)]
)
def test_the_role_has_the_verbs_of_the_table(path: str, rights: Sequence[AccessRight]) -> None:
    """A verb more would be a right that torc does not use, a verb fewer an error in the middle of a run."""
    assert rules(path) == {each.resource: [*each.verbs] for each in rights}
    assert all(each.namespaced == path.startswith("role/") for each in rights)
