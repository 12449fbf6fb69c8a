"""Methods about who may use which workflow: groups, their members, what is shared with them."""

from collections.abc import Iterator

from torc_framework.client.address import quoted
from torc_framework.client.answers import AccessGroup, JsonObject, Membership, SharedWorkflow
from torc_framework.client.core import ClientCore


class AccessCalls(ClientCore):
    """Groups and rights."""

    def create_access_group(self, name: str, description: str | None = None) -> AccessGroup:
        """Make a group; for administrators."""
        return self._call(AccessGroup, "POST", "/access_groups", body=AccessGroup(name, description=description))

    def access_groups(self) -> Iterator[AccessGroup]:
        """Yield all groups."""
        return self._walk(AccessGroup, "/access_groups")

    def access_group(self, group_id: int) -> AccessGroup:
        """Return one group."""
        return self._call(AccessGroup, "GET", f"/access_groups/{group_id}")

    def delete_access_group(self, group_id: int) -> AccessGroup:
        """Delete a group; its members lose what was shared with it."""
        return self._call(AccessGroup, "DELETE", f"/access_groups/{group_id}")

    def add_member(self, group_id: int, user_name: str, role: str = "member") -> Membership:
        """Add a person to a group; ``role`` is member or admin."""
        body = Membership(user_name, group_id, role)
        return self._call(Membership, "POST", f"/access_groups/{group_id}/members", body=body)

    def members(self, group_id: int) -> Iterator[Membership]:
        """Yield the members of a group."""
        return self._walk(Membership, f"/access_groups/{group_id}/members")

    def remove_member(self, group_id: int, user_name: str) -> None:
        """Take a person out of a group."""
        self._call(JsonObject, "DELETE", f"/access_groups/{group_id}/members/{quoted(user_name)}")

    def groups_of_user(self, user_name: str) -> Iterator[AccessGroup]:
        """Yield the groups that a person is in."""
        return self._walk(AccessGroup, f"/users/{quoted(user_name)}/groups")

    def share_workflow(self, workflow_id: int, group_id: int) -> SharedWorkflow:
        """Let a group use a workflow."""
        body = SharedWorkflow(workflow_id, group_id)
        return self._call(SharedWorkflow, "POST", f"/workflows/{workflow_id}/access_groups", body=body)

    def groups_of_workflow(self, workflow_id: int) -> Iterator[AccessGroup]:
        """Yield the groups that may use a workflow."""
        return self._walk(AccessGroup, f"/workflows/{workflow_id}/access_groups")

    def unshare_workflow(self, workflow_id: int, group_id: int) -> None:
        """Take a workflow away from a group."""
        self._call(JsonObject, "DELETE", f"/workflows/{workflow_id}/access_groups/{group_id}")

    def has_access(self, workflow_id: int, user_name: str) -> bool:
        """Say whether a person may use a workflow."""
        answer = self._call(JsonObject, "GET", f"/access_check/{workflow_id}/{quoted(user_name)}")
        return bool(answer["has_access"])
