"""Endpoints of access groups: the groups, their members, the workflows that they may use."""

from collections.abc import Callable
from typing import Any, Final

from torc_framework.models.records import AccessGroupRecord, UserGroupMembershipRecord, WorkflowAccessGroupRecord
from torc_framework.server.endpoints import MAX_LIMIT, PAGE_PARAMETERS, Call, Endpoint, Work
from torc_framework.server.scopes import ADMINS, ASKED, GROUP_ADMINS, OPEN, SHARING, WORKFLOW
from torc_framework.store import groups
from torc_framework.store.records import Page, Values
from torc_framework.store.sql import Tx

Found = tuple[list[Values], int]


def _paged(find: Callable[[Tx, Call, Page], Found]) -> Work:
    """Return the work that lists what is found, in the shape that this part of the API has."""

    def listed(tx: Tx, call: Call) -> dict[str, Any]:
        wanted = Page(call.query["offset"], min(call.query["limit"], MAX_LIMIT))
        items, total = find(tx, call, wanted)
        return {
            "items": items,
            "offset": wanted.offset,
            "limit": wanted.limit,
            "total_count": total,
            "has_more": wanted.offset + len(items) < total,
        }

    return listed


def _create(tx: Tx, call: Call) -> Values:
    return groups.create_group(tx, call.body["name"], call.body.get("description"))


def _add_member(tx: Tx, call: Call) -> Values:
    return groups.add_member(tx, call.id, call.body["user_name"], call.body.get("role") or "member")


def _remove_member(tx: Tx, call: Call) -> Values:
    return groups.remove_member(tx, call.id, call.words["user_name"])


def _share(tx: Tx, call: Call) -> Values:
    return groups.share(tx, call.id, call.body["group_id"])


def _unshare(tx: Tx, call: Call) -> Values:
    return groups.unshare(tx, call.id, call.ids["group_id"])


def _check(tx: Tx, call: Call) -> dict[str, Any]:
    workflow_id, user_name = call.ids["workflow_id"], call.words["user_name"]
    has_access = groups.has_access(tx, user_name, workflow_id)
    return {"has_access": has_access, "user_name": user_name, "workflow_id": workflow_id}


_GROUP: Final = AccessGroupRecord
_MEMBER: Final = UserGroupMembershipRecord
_LINK: Final = WorkflowAccessGroupRecord
_G: Final = "/access_groups"
_W: Final = "/workflows/{id}/access_groups"
_PAGED: Final[dict[str, Any]] = {"query": PAGE_PARAMETERS, "tags": ["access_groups"]}
_CHANGES: Final[dict[str, Any]] = {"changes": True, "tags": ["access_groups"]}

ACCESS_ENDPOINTS: Final = (
    Endpoint("POST", _G, _create, body=_GROUP, answers=_GROUP, scope=ADMINS, **_CHANGES),
    Endpoint("GET", _G, _paged(lambda tx, _call, page: groups.find_groups(tx, page)), scope=OPEN, **_PAGED),
    Endpoint("GET", f"{_G}/{{id}}", lambda tx, call: groups.get_group(tx, call.id), answers=_GROUP, scope=OPEN),
    Endpoint(
        "DELETE",
        f"{_G}/{{id}}",
        lambda tx, call: groups.delete_group(tx, call.id),
        answers=_GROUP,
        scope=ADMINS,
        **_CHANGES,
    ),
    Endpoint(
        "POST", f"{_G}/{{id}}/members", _add_member, body=_MEMBER, answers=_MEMBER, scope=GROUP_ADMINS, **_CHANGES
    ),
    Endpoint(
        "GET",
        f"{_G}/{{id}}/members",
        _paged(lambda tx, call, page: groups.find_members(tx, call.id, page)),
        scope=OPEN,
        **_PAGED,
    ),
    Endpoint(
        "DELETE",
        f"{_G}/{{id}}/members/{{user_name}}",
        _remove_member,
        answers=_MEMBER,
        scope=GROUP_ADMINS,
        **_CHANGES,
    ),
    Endpoint(
        "GET",
        "/users/{user_name}/groups",
        _paged(lambda tx, call, page: groups.groups_of_user(tx, call.words["user_name"], page)),
        scope=OPEN,
        **_PAGED,
    ),
    Endpoint("POST", _W, _share, body=_LINK, answers=_LINK, scope=SHARING, **_CHANGES),
    Endpoint(
        "GET",
        _W,
        _paged(lambda tx, call, page: groups.groups_of_workflow(tx, call.id, page)),
        scope=WORKFLOW,
        **_PAGED,
    ),
    Endpoint("DELETE", f"{_W}/{{group_id}}", _unshare, answers=_LINK, scope=SHARING, **_CHANGES),
    Endpoint("GET", "/access_check/{workflow_id}/{user_name}", _check, scope=ASKED, tags=["access_groups"]),
)
"""Who may use which workflow."""
