"""What the person may do: reasons for which keys that change something are not offered."""

from attrs import define, field


@define
class UserRights:
    """The refusals that are known.

    Attributes:
        is_read_only: The program was started to look only.
        login: The server's reason for refusing the log-in; empty if it accepts it.
        workflows: The server's reasons for refusing workflows, by id.
    """

    is_read_only: bool = False
    login: str = ""
    workflows: dict[int, str] = field(factory=dict)

    def refused(self, status: int, reason: str, workflow_id: int | None) -> None:
        """Note that the server refused a request about a workflow, with this HTTP status."""
        if status == 401:
            self.login = reason
        elif status == 403 and workflow_id is not None:
            self.workflows[workflow_id] = reason

    def answered(self, workflow_id: int | None) -> bool:
        """Note that the server answered a request about a workflow; return whether that is news."""
        had = bool(self.login) or workflow_id in self.workflows
        self.login = ""
        if workflow_id is not None:
            self.workflows.pop(workflow_id, None)
        return had

    def refusal(self, workflow_id: int | None) -> str:
        """Return why nothing may be changed; empty if that is not known."""
        if self.is_read_only:
            return "torc tui was started with --read-only"
        return self.login or self.workflows.get(workflow_id or 0, "")
