"""The reference page of the Python client, from its signatures and docstrings."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from client_calls import Request, methods, requests

from torc_framework.client import FailedCall, TorcClient, make_api, map_function_to_jobs
from torc_framework.client.calls.access_groups import AccessCalls
from torc_framework.client.calls.base import ClientBase
from torc_framework.client.calls.jobs import JobCalls
from torc_framework.client.calls.recoveries import RecoveryCalls
from torc_framework.client.calls.views import ViewCalls
from torc_framework.client.calls.workflows import WorkflowCalls

_SECTIONS = {
    TorcClient: "The server",
    ClientBase: "Records of any kind",
    WorkflowCalls: "Workflows",
    JobCalls: "Jobs",
    ViewCalls: "Views of a workflow",
    RecoveryCalls: "Recoveries",
    AccessCalls: "Access",
}
_SPELLINGS = {
    r"\b(?:[A-Za-z_]\w*\.)+(?=\w)": "",  # names without their modules
    r"\bmodule\b(?= \|)": "ModuleType",
    r"~_R\b": "R",
    r"(?<=: |> )'([^']+)'": r"\1",  # types that are imported later
    r"^\(self(?:, )?": "(",
}


def client() -> str:
    """Every method of the client with its signature, its request and its contract."""
    made = requests()
    parts = [
        "# Python client\n",
        "Import all of these names from `torc_framework.api`.",
        "[Use the Python client](../how-to/use-the-python-client.md) shows their use. `R` stands for any class of",
        "records; [Records](records.md) lists their fields.\n",
        "## Functions\n",
        *_entry("make_api", make_api),
        *_entry("map_function_to_jobs", map_function_to_jobs),
        *_entry("FailedCall", FailedCall),
        "## The client\n",
        _markdown(TorcClient),
        "",
    ]
    for owner, title in _SECTIONS.items():
        parts.append(f"## {title}\n")
        for of, name, method in methods():
            if of is owner:
                parts += _entry(name, method, made.get(name))
    return "\n".join(parts)


def _entry(name: str, member: Callable[..., Any], request: Request | None = None) -> list[str]:
    signature = str(inspect.signature(member))
    for pattern, plain in _SPELLINGS.items():
        signature = re.sub(pattern, plain, signature)
    where = [f"`{request[0]} {request[1]}`\n"] if request else []
    return [f"### {name}\n", f"```python\n{name}{signature}\n```\n", *where, _markdown(member), ""]


def _markdown(thing: object) -> str:
    """A docstring: its sections become lists."""
    lines: list[str] = []
    for line in inspect.cleandoc(thing.__doc__ or "").replace("``", "`").splitlines():
        if re.fullmatch(r"(Args|Attributes|Raises|Returns):", line):
            lines += [f"**{line[:-1]}**", ""]
        elif match := re.fullmatch(r"    (\w+): (.*)", line):
            lines.append(f"- `{match[1]}`: {match[2]}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("        ") else line.strip())
    return "\n".join(lines)
