"""The caller of a request, and the roles of a member of an access group."""

from typing import Final

from attrs import frozen

ANONYMOUS: Final = "anonymous"
"""Name of callers that did not log in."""
GROUP_ADMIN: Final = "admin"
"""Role of members who may add and remove members of a group."""
ROLES: Final = (GROUP_ADMIN, "member")
"""Roles of members of a group."""


@frozen
class Caller:
    """The caller of a request.

    Attributes:
        name: Name of the user whose password was sent.
        is_anonymous: No user has logged in; ``name`` is no user's.
        is_admin: May do everything, and manages access groups.
        is_restricted: May use only its own workflows and those shared with its groups. False for administrators, and
            for all callers while access control is off.
    """

    name: str = ANONYMOUS
    is_anonymous: bool = True
    is_admin: bool = False
    is_restricted: bool = False


UNRESTRICTED_CALLER: Final = Caller()
"""The caller of every request to a server without authentication."""
