"""Methods about who may use which workflow: groups, their members, what is shared with them."""

from collections.abc import Iterator

from torc_framework.client.calls.base import ClientBase, given_fields
from torc_framework.client.calls.paging import JsonObject
from torc_framework.client.http.address import path_segment
from torc_framework.models.records import AccessGroupRecord, UserGroupMembershipRecord, WorkflowAccessGroupRecord
from torc_framework.models.responses import AccessCheck, ShortPage


class AccessCalls(ClientBase):
    """Groups and rights."""

    def create_access_group(self, name: str, description: str | None = None) -> AccessGroupRecord:
        """Make a group; for administrators."""
        group = AccessGroupRecord(name=name, description=description)
        return self._call(AccessGroupRecord, "POST", "/access_groups", body=given_fields(group))

    def access_groups(self) -> Iterator[AccessGroupRecord]:
        """Yield all groups."""
        return self._walk(AccessGroupRecord, "/access_groups", ShortPage)

    def access_group(self, group_id: int) -> AccessGroupRecord:
        """Return one group."""
        return self._call(AccessGroupRecord, "GET", f"/access_groups/{group_id}")

    def delete_access_group(self, group_id: int) -> AccessGroupRecord:
        """Delete a group; its members lose access to the workflows that were shared with it."""
        return self._call(AccessGroupRecord, "DELETE", f"/access_groups/{group_id}")

    def add_member(self, group_id: int, user_name: str, role: str = "member") -> UserGroupMembershipRecord:
        """Add a person to a group; ``role`` is member or admin."""
        member = UserGroupMembershipRecord(user_name=user_name, group_id=group_id, role=role)
        path = f"/access_groups/{group_id}/members"
        return self._call(UserGroupMembershipRecord, "POST", path, body=given_fields(member))

    def members(self, group_id: int) -> Iterator[UserGroupMembershipRecord]:
        """Yield the members of a group."""
        return self._walk(UserGroupMembershipRecord, f"/access_groups/{group_id}/members", ShortPage)

    def remove_member(self, group_id: int, user_name: str) -> None:
        """Remove a person from a group."""
        self._call(JsonObject, "DELETE", f"/access_groups/{group_id}/members/{path_segment(user_name)}")

    def groups_of_user(self, user_name: str) -> Iterator[AccessGroupRecord]:
        """Yield the groups that a person is a member of."""
        return self._walk(AccessGroupRecord, f"/users/{path_segment(user_name)}/groups", ShortPage)

    def share_workflow(self, workflow_id: int, group_id: int) -> WorkflowAccessGroupRecord:
        """Let a group use a workflow."""
        shared = WorkflowAccessGroupRecord(workflow_id=workflow_id, group_id=group_id)
        path = f"/workflows/{workflow_id}/access_groups"
        return self._call(WorkflowAccessGroupRecord, "POST", path, body=given_fields(shared))

    def groups_of_workflow(self, workflow_id: int) -> Iterator[AccessGroupRecord]:
        """Yield the groups that may use a workflow."""
        return self._walk(AccessGroupRecord, f"/workflows/{workflow_id}/access_groups", ShortPage)

    def unshare_workflow(self, workflow_id: int, group_id: int) -> None:
        """Stop sharing a workflow with a group."""
        self._call(JsonObject, "DELETE", f"/workflows/{workflow_id}/access_groups/{group_id}")

    def has_access(self, workflow_id: int, user_name: str) -> bool:
        """Return whether a person may use a workflow."""
        return self._call(AccessCheck, "GET", f"/access_check/{workflow_id}/{path_segment(user_name)}").has_access
