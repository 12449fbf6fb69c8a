"""``torc access-groups``: groups of users who share workflows on a server with access control."""

from itertools import islice
from typing import Annotated, Any

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import Limit, Offset
from torc_framework.cli.shared.output import Column, print_json
from torc_framework.cli.shared.record_commands import DEFAULT_LIMIT
from torc_framework.cli.shared.record_output import show_created, show_deleted, show_many, show_one
from torc_framework.cli.shared.session import Session, session_of

app = CommandGroup(
    "Groups of users who share workflows on a server with access control.",
    sections={
        "Groups": ("create", "list", "get", "delete"),
        "Members": ("add-user", "remove-user", "list-members", "list-user-groups"),
        "Workflows": ("add-workflow", "remove-workflow", "list-workflow-groups", "check"),
    },
)

GROUPS: list[Column] = [("ID", "id"), ("Name", "name"), ("Description", "description")]
MEMBERS: list[Column] = [("User Name", "user_name"), ("Role", "role")]

GroupId = Annotated[int, typer.Argument(metavar="GROUP_ID", help="The group.")]
UserName = Annotated[str, typer.Argument(metavar="USER_NAME", help="Name with which the user logs in.")]
SharedId = Annotated[int, typer.Argument(metavar="WORKFLOW_ID", help="The workflow.")]


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the group; unique on the server.")],
    description: Annotated[str | None, typer.Option("--description", "-d", help="What it is for.")] = None,
) -> None:
    """Create a group; for administrators of the server.

    Examples:
        torc access-groups create hydrology --description 'River models'
    """
    session = session_of(ctx)
    group = session.client.create_access_group(name, description)
    show_created(session, "access group", group)


@app.command("list")
def list_(ctx: typer.Context, *, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> None:
    """List all groups.

    Examples:
        torc access-groups list
    """
    session = session_of(ctx)
    found = islice(session.client.access_groups(), offset, offset + limit if limit else None)
    show_many(session, "groups", "access groups", GROUPS, [*found])


@app.command("get")
def get(ctx: typer.Context, group_id: GroupId) -> None:
    """Show one group.

    Examples:
        torc access-groups get 3
    """
    session = session_of(ctx)
    show_one(session, f"Access group {group_id}", session.client.access_group(group_id))


@app.command("delete")
def delete(ctx: typer.Context, group_id: GroupId) -> None:
    """Delete a group; its members lose access to the workflows shared with it. For administrators.

    Examples:
        torc access-groups delete 3
    """
    session = session_of(ctx)
    show_deleted(session, "access group", session.client.delete_access_group(group_id))


@app.command("add-user")
def add_user(
    ctx: typer.Context,
    group_id: GroupId,
    user_name: UserName,
    role: Annotated[
        str, typer.Option("--role", metavar="member|admin", help="An admin adds and removes members.")
    ] = "member",
) -> None:
    """Add a user to a group; for administrators and the group's admins.

    Examples:
        torc access-groups add-user 3 ana
        torc access-groups add-user 3 ben --role admin
    """
    session = session_of(ctx)
    member = session.client.add_member(group_id, user_name, role)
    if session.wants_json:
        print_json(member)
    else:
        print(f"Added {user_name} to group {group_id} as {member.role}")


@app.command("remove-user")
def remove_user(ctx: typer.Context, group_id: GroupId, user_name: UserName) -> None:
    """Remove a user from a group; for administrators and the group's admins.

    Examples:
        torc access-groups remove-user 3 ana
    """
    session = session_of(ctx)
    session.client.remove_member(group_id, user_name)
    _done(session, f"Removed {user_name} from group {group_id}", group_id=group_id, user_name=user_name)


@app.command("list-members")
def list_members(ctx: typer.Context, group_id: GroupId, *, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0) -> None:
    """List the members of a group.

    Examples:
        torc access-groups list-members 3
    """
    session = session_of(ctx)
    found = islice(session.client.members(group_id), offset, offset + limit if limit else None)
    show_many(session, "members", f"members of group {group_id}", MEMBERS, [*found])


@app.command("list-user-groups")
def list_user_groups(
    ctx: typer.Context, user_name: UserName, *, limit: Limit = DEFAULT_LIMIT, offset: Offset = 0
) -> None:
    """List the groups of a user.

    Examples:
        torc access-groups list-user-groups ana
    """
    session = session_of(ctx)
    found = islice(session.client.groups_of_user(user_name), offset, offset + limit if limit else None)
    show_many(session, "groups", f"groups of {user_name}", GROUPS, [*found])


@app.command("add-workflow")
def add_workflow(ctx: typer.Context, workflow_id: SharedId, group_id: GroupId) -> None:
    """Share a workflow with a group; for its owner, and the group's admins.

    Examples:
        torc access-groups add-workflow 12 3
    """
    session = session_of(ctx)
    link = session.client.share_workflow(workflow_id, group_id)
    if session.wants_json:
        print_json(link)
    else:
        print(f"Shared workflow {workflow_id} with group {group_id}")


@app.command("remove-workflow")
def remove_workflow(ctx: typer.Context, workflow_id: SharedId, group_id: GroupId) -> None:
    """Stop sharing a workflow with a group; for its owner, and the group's admins.

    Examples:
        torc access-groups remove-workflow 12 3
    """
    session = session_of(ctx)
    session.client.unshare_workflow(workflow_id, group_id)
    message = f"Workflow {workflow_id} is no longer shared with group {group_id}"
    _done(session, message, workflow_id=workflow_id, group_id=group_id)


@app.command("list-workflow-groups")
def list_workflow_groups(ctx: typer.Context, workflow_id: SharedId) -> None:
    """List the groups that a workflow is shared with.

    Examples:
        torc access-groups list-workflow-groups 12
    """
    session = session_of(ctx)
    found = [*session.client.groups_of_workflow(workflow_id)]
    show_many(session, "groups", f"groups of workflow {workflow_id}", GROUPS, found)


@app.command("check")
def check(ctx: typer.Context, workflow_id: SharedId, user_name: UserName) -> None:
    """Show whether a user has access to a workflow; exit code 1 if not.

    Examples:
        torc access-groups check 12 ana
    """
    session = session_of(ctx)
    has_access = session.client.has_access(workflow_id, user_name)
    word = "has" if has_access else "does not have"
    facts = {"workflow_id": workflow_id, "user_name": user_name, "has_access": has_access}
    _done(session, f"User {user_name} {word} access to workflow {workflow_id}", **facts)
    if not has_access:
        raise typer.Exit(1)


def _done(session: Session, message: str, **facts: Any) -> None:
    """Print a message, or its facts as JSON."""
    if session.wants_json:
        print_json({"success": True, **facts})
    else:
        print(message)
