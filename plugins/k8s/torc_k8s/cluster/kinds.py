"""The kinds of objects that torc reads or writes, and where the API has them."""

from typing import Final
from urllib.parse import quote, urlencode

from attrs import frozen


@frozen
class ResourceKind:
    """A kind of objects.

    Args:
        name: The plural, as in paths and in Roles.
        group: The API group; empty for the core.
        version: The version of the group.
        in_namespace: Objects of the kind belong to a namespace.
    """

    name: str
    group: str = ""
    version: str = "v1"
    in_namespace: bool = True

    def path(self, namespace: str, name: str = "", subresource: str = "", query: dict[str, str] | None = None) -> str:
        """Return the path of the collection, or of the object with a name, with its query."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        space = f"/namespaces/{quote(namespace, safe='')}" if self.in_namespace else ""
        parts = [part for part in (name, subresource) if part]
        path = "/".join([f"{root}{space}/{self.name}", *(quote(part, safe="") for part in parts)])
        return f"{path}?{urlencode(query)}" if query else path


KINDS: Final = {
    kind.name: kind
    for kind in (
        ResourceKind("configmaps"),
        ResourceKind("events"),
        ResourceKind("limitranges"),
        ResourceKind("namespaces", in_namespace=False),
        ResourceKind("nodes", in_namespace=False),
        ResourceKind("persistentvolumeclaims"),
        ResourceKind("pods"),
        ResourceKind("priorityclasses", group="scheduling.k8s.io", in_namespace=False),
        ResourceKind("resourcequotas"),
        ResourceKind("secrets"),
        ResourceKind("selfsubjectaccessreviews", group="authorization.k8s.io", in_namespace=False),
        ResourceKind("selfsubjectreviews", group="authentication.k8s.io", in_namespace=False),
        ResourceKind("serviceaccounts"),
        ResourceKind("services"),
        ResourceKind("deployments", group="apps"),
        ResourceKind("statefulsets", group="apps"),
        ResourceKind("poddisruptionbudgets", group="policy"),
    )
}
