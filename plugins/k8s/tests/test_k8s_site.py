"""What a cluster offers to the runner."""

from pathlib import Path

import pytest
from scripted_api import ApiRequest, run, scripted_cluster
from torc_k8s.executor.site import find_site
from torc_k8s.pods.options import K8sOptions

from torc_framework.api import LaunchSite


@pytest.mark.parametrize(("max_pods", "nodes"), [(0, 32), (4, 4)])
def test_a_job_of_several_nodes_fits_where_nodes_are_not_known(tmp_path: Path, max_pods: int, nodes: int) -> None:
    """The Role of the manifests does not show nodes, and a job of four nodes runs under it."""

    async def refuse(request: ApiRequest) -> None:
        await request.answer({"reason": "Forbidden", "message": "nodes is forbidden"}, status=403)

    async def test() -> LaunchSite:
        async with scripted_cluster(tmp_path, refuse) as (cluster, _):
            return await find_site(cluster, K8sOptions(max_pods=max_pods))

    offered = run(test()).resources
    assert offered is not None
    assert offered.num_nodes == nodes
    assert offered.num_cpus >= 128
