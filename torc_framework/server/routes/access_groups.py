"""Endpoints of access groups: the groups, their members, the workflows that they may use."""

from collections.abc import Callable
from typing import Any, Final

from torc_framework.models.records import AccessGroupRecord, UserGroupMembershipRecord, WorkflowAccessGroupRecord
from torc_framework.models.responses import AccessCheck, ShortPage
from torc_framework.server.auth.permissions import (
    ADMINS,
    ANYONE,
    GROUP_ADMINS,
    SELF_OR_WORKFLOW,
    SHARING_ALLOWED,
    WORKFLOW_IN_PATH,
    Permission,
)
from torc_framework.server.dispatch.endpoint import Endpoint, EndpointFunction, page_request
from torc_framework.server.http.endpoint_calls import ID_PAGE_PARAMETERS, EndpointCall
from torc_framework.server.http.endpoint_results import SlicedObject
from torc_framework.store.access import groups
from torc_framework.store.database.sql import Tx
from torc_framework.store.records.kind import PageRequest, Values

Found = tuple[list[Values], int]


def _paged(find: Callable[[Tx, EndpointCall, PageRequest], Found]) -> EndpointFunction:
    """Return an endpoint function that lists one page of what ``find`` returns.

    Pages of access groups have ``limit`` in place of ``max_limit`` and ``count``.
    """

    def listed(tx: Tx, call: EndpointCall) -> SlicedObject:
        wanted = page_request(call)
        items, total = find(tx, call, wanted)
        return SlicedObject(
            {
                "items": items,
                "offset": wanted.offset,
                "limit": wanted.limit,
                "total_count": total,
                "has_more": wanted.offset + len(items) < total,
            }
        )

    return listed


def _create(tx: Tx, call: EndpointCall) -> Values:
    return groups.create_group(tx, call.body["name"], call.body.get("description"))


def _add_member(tx: Tx, call: EndpointCall) -> Values:
    return groups.add_member(tx, call.id, call.body["user_name"], call.body.get("role") or "member")


def _remove_member(tx: Tx, call: EndpointCall) -> Values:
    return groups.remove_member(tx, call.id, call.words["user_name"])


def _share(tx: Tx, call: EndpointCall) -> Values:
    return groups.share(tx, call.id, call.body["group_id"])


def _unshare(tx: Tx, call: EndpointCall) -> Values:
    return groups.unshare(tx, call.id, call.ids["group_id"])


def _check(tx: Tx, call: EndpointCall) -> AccessCheck:
    workflow_id, user_name = call.ids["workflow_id"], call.words["user_name"]
    return AccessCheck(groups.has_access(tx, user_name, workflow_id), user_name, workflow_id)


_GROUP: Final = AccessGroupRecord
_MEMBER: Final = UserGroupMembershipRecord
_LINK: Final = WorkflowAccessGroupRecord
_G: Final = "/access_groups"
_W: Final = "/workflows/{id}/access_groups"


def _endpoint(method: str, path: str, function: EndpointFunction, summary: str, response: Any, **more: Any) -> Endpoint:
    common: dict[str, Any] = {"tags": ["access_groups"], "summary": summary, "response": response}
    return Endpoint(method, path, function, method != "GET", **common, **more)


def _listing(
    path: str,
    find: Callable[[Tx, EndpointCall, PageRequest], Found],
    summary: str,
    response: Any,
    permission: Permission,
) -> Endpoint:
    return _endpoint("GET", path, _paged(find), summary, response, permission=permission, query=ID_PAGE_PARAMETERS)


ACCESS_GROUP_ENDPOINTS: Final = (
    _endpoint("POST", _G, _create, "Create an access group.", _GROUP, permission=ADMINS, body=_GROUP),
    _listing(
        _G,
        lambda tx, _call, page: groups.find_groups(tx, page),
        "List access groups.",
        ShortPage[AccessGroupRecord],
        ANYONE,
    ),
    _endpoint(
        "GET",
        f"{_G}/{{id}}",
        lambda tx, call: groups.get_group(tx, call.id),
        "Get an access group.",
        _GROUP,
        permission=ANYONE,
    ),
    _endpoint(
        "DELETE",
        f"{_G}/{{id}}",
        lambda tx, call: groups.delete_group(tx, call.id),
        "Delete an access group; its workflows are no longer shared with it.",
        _GROUP,
        permission=ADMINS,
    ),
    _endpoint(
        "POST",
        f"{_G}/{{id}}/members",
        _add_member,
        "Add a person to a group.",
        _MEMBER,
        permission=GROUP_ADMINS,
        body=_MEMBER,
    ),
    _listing(
        f"{_G}/{{id}}/members",
        lambda tx, call, page: groups.find_members(tx, call.id, page),
        "List the members of a group.",
        ShortPage[UserGroupMembershipRecord],
        ANYONE,
    ),
    _endpoint(
        "DELETE",
        f"{_G}/{{id}}/members/{{user_name}}",
        _remove_member,
        "Remove a person from a group.",
        _MEMBER,
        permission=GROUP_ADMINS,
    ),
    _listing(
        "/users/{user_name}/groups",
        lambda tx, call, page: groups.groups_of_user(tx, call.words["user_name"], page),
        "List a person's groups.",
        ShortPage[AccessGroupRecord],
        ANYONE,
    ),
    _endpoint("POST", _W, _share, "Share a workflow with a group.", _LINK, permission=SHARING_ALLOWED, body=_LINK),
    _listing(
        _W,
        lambda tx, call, page: groups.groups_of_workflow(tx, call.id, page),
        "List the groups that may use a workflow.",
        ShortPage[AccessGroupRecord],
        WORKFLOW_IN_PATH,
    ),
    _endpoint(
        "DELETE",
        f"{_W}/{{group_id}}",
        _unshare,
        "Stop sharing a workflow with a group.",
        _LINK,
        permission=SHARING_ALLOWED,
    ),
    _endpoint(
        "GET",
        "/access_check/{workflow_id}/{user_name}",
        _check,
        "Answer whether a person may use a workflow.",
        AccessCheck,
        permission=SELF_OR_WORKFLOW,
    ),
)
"""All endpoints of access groups."""
