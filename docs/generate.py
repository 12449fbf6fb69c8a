"""Write the reference pages and the modules that follow from the code, or with ``--check`` say which are stale.

Each page is made by one function below; nothing in these pages is typed by hand. The modules are the tables of the
store, made from their classes; they come first, because the server, which the pages describe, imports them.
"""

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import architecture_page
import classes_page
from attrs import NOTHING, Factory, fields, has, resolve_types
from table_modules import table_modules

from torc_framework import hookspecs
from torc_framework.exit_cases import batch_systems
from torc_framework.exits import kubernetes_reasons, osmo_codes, slurm_states
from torc_framework.exits.lsf_reasons import LSF_REASONS
from torc_framework.exits.sysexits import SYSEXITS
from torc_framework.models import records, torc_contract
from torc_framework.models.events import EVENT_FACTS
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict
from torc_framework.models.failures import CORE_RULE_KEYS, MATCHER_RULE_KEYS
from torc_framework.models.statuses import STATUS_FACTS, TRANSITIONS, JobStatus
from torc_framework.plugin_options import options_of

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Generated from the code by docs/generate.py; edit the code. -->\n\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; bars within cells are escaped."""
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *escaped]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def type_name(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def hooks() -> str:
    """Every hook with its signature and contract."""
    marked = [
        f for _, f in inspect.getmembers(hookspecs, inspect.isfunction) if hasattr(f, f"{hookspecs.PROJECT}_spec")
    ]
    text = ["# Hooks\n", inspect.cleandoc(hookspecs.__doc__ or ""), ""]
    for function in sorted(marked, key=lambda f: f.__code__.co_firstlineno):
        signature = (
            str(inspect.signature(function)).replace("torc_framework.models.", "").replace("collections.abc.", "")
        )
        first = getattr(function, f"{hookspecs.PROJECT}_spec")["firstresult"]
        kind = "The first answer wins." if first else "All answers count."
        text += [f"## `{function.__name__}{signature}`\n", f"*{kind}*\n", inspect.cleandoc(function.__doc__ or ""), ""]
    return "\n".join(text)


def statuses() -> str:
    """Job statuses and the transition table."""
    mark = {True: "yes", False: ""}
    rows = [
        [
            str(s.value),
            f"`{s.label}`",
            STATUS_FACTS[s].description,
            mark[STATUS_FACTS[s].unblocks],
            mark[STATUS_FACTS[s].ends_attempt],
            mark[STATUS_FACTS[s].done],
        ]
        for s in JobStatus
    ]
    changes = [
        [
            f"`{name}`",
            ", ".join(f"`{s.label}`" for s in sorted(t.sources)),
            ", ".join(f"`{s.label}`" for s in sorted(t.targets)),
            t.meaning,
        ]
        for name, t in TRANSITIONS.items()
    ]
    return (
        "# Job statuses\n\nThe database stores the number; JSON and the command line use the name.\n\n"
        + table(["n", "name", "meaning", "dependents may start", "may end an attempt", "counts as done"], rows)
        + "\n## Transitions\n\nA job's status changes only by these transitions. "
        "A transition does not change a job in a status that its row does not list.\n\n"
        + table(["transition", "from", "to", "what happened"], changes)
    )


def events() -> str:
    """Types of events."""
    rows = [
        [f"`{name}`", facts.severity.label, facts.meaning, ", ".join(f"`{key}`" for key in facts.keys)]
        for name, facts in EVENT_FACTS.items()
    ]
    return (
        "# Events\n\nThe server stores these events itself, in the transaction of the change that they describe. An "
        "event of your own may have any `event_type`, and a `severity` of debug, info, warning or error.\n\n"
        + table(["type", "severity", "what happened", "values"], rows)
        + "\nA value is null if the event has none: a job that is canceled before it began has no `return_code`. "
        "In the list of events, `data` holds the type and the values. "
        "[Watch a workflow live](../how-to/watch-a-workflow-live.md) shows the stream. "
        "[Write a plugin](../how-to/write-a-plugin.md) passes events to another program.\n"
    )


def exits() -> str:
    """Classes of endings, and the fields of an observation."""

    def attributes(owner: type) -> str:
        rows = [[f"`{name}`", meaning] for name, meaning in classes_page.attributes(owner).items()]
        return table(["field", "meaning"], rows)

    meanings = member_docstrings(ExitClass)
    names = table(["class", "meaning"], [[f"`{name.value}`", meanings[name.name]] for name in ExitClass])
    rules = [
        [f"`{key}`", str(schema.get("type")), schema["description"]]
        for key, schema in {**MATCHER_RULE_KEYS, **CORE_RULE_KEYS}.items()
    ]
    return (
        f"# Endings of attempts\n\n## Classes\n\n{names}\n## `ExitObservation`\n\n{attributes(ExitObservation)}"
        f"\n## `ExitVerdict`\n\n{attributes(ExitVerdict)}"
        f"\n## Keys of failure rules\n\n{table(['key', 'type', 'meaning'], rules)}\n{words()}"
    )


def member_docstrings(owner: type) -> dict[str, str]:
    """The docstrings that follow the members of an enumeration, by the names of the members."""
    body = cast("ast.ClassDef", ast.parse(inspect.getsource(owner)).body[0]).body
    return {
        member.targets[0].id: " ".join(inspect.cleandoc(text.value.value).split())
        for member, text in pairwise(body)
        if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def words() -> str:
    """The classes of the states and codes of other systems."""

    def named(head: str, rows: Mapping[Any, object]) -> str:
        return table(
            [head, "class"], [[f"`{word}`", f"`{name}`" if name else "by its code"] for word, name in rows.items()]
        )

    states = [
        [f"`{name}`", f"`{s.code}`", f"`{s.exit_class or '-'}`", s.meaning] for name, s in slurm_states.STATES.items()
    ]
    codes = [[str(code), f"`{name}`", meaning] for code, (name, meaning) in osmo_codes.CODES.items()]
    codes += [[f"{low}-{high}", f"`{name}`", meaning] for low, high, name, meaning in osmo_codes.RANGES]
    lsf = {word: name for word, (_, name) in LSF_REASONS.items()}
    sections = {
        "Slurm: states": table(["state", "code", "class", "meaning"], states),
        "Kubernetes: containers": named("reason", kubernetes_reasons.CONTAINER_REASONS),
        "Kubernetes: pods": named("reason", kubernetes_reasons.POD_REASONS),
        "Kubernetes: disruptions": named("reason", kubernetes_reasons.DISRUPTIONS),
        "OSMO: codes": table(["code", "class", "meaning"], codes),
        "LSF: termination reasons": named("reason", lsf),
        "PBS and TORQUE: exit statuses of their own": named("status", batch_systems.PBS_NEGATIVE),
        "HTCondor: hold reason codes": named("code", batch_systems.CONDOR_HOLDS),
        "sysexits": table(["code", "name", "meaning"], [[str(n), f"`{a}`", b] for n, (a, b) in SYSEXITS.items()]),
    }
    return "\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


def record_pages() -> str:
    """Fields of all records of the HTTP API."""
    parts = [
        "# Records of the HTTP API\n",
        "A field that is null is absent. Additions to Torc's contract are marked *ours*.\n",
        "[Torc's own clients](http.md#torcs-own-clients) says what becomes of fields that are *refused*, *ignored* or",
        "*read-only* here.\n",
    ]
    for owner in records.Record.__args__:
        parts += [f"## {owner.__name__.removesuffix('Record')}\n", f"{inspect.cleandoc(owner.__doc__ or '')}\n"]
        rows = []
        for attribute in fields(owner):
            doc, access, ours = records.describe_field(attribute)
            default = "required" if attribute.default is NOTHING else f"`{attribute.default!r}`"
            rows.append(
                [
                    f"`{attribute.name}`",
                    f"`{type_name(attribute.type)}`",
                    default,
                    access.value,
                    doc + (" *ours*" if ours else ""),
                ]
            )
        parts.append(table(["field", "type", "default", "set on", "meaning"], rows))
        if owner in torc_contract.CONTRACT_FIELDS:
            parts.append("Fields of Torc's contracts that the server does not carry out:\n")
            parts.append(contract_table("field", torc_contract.CONTRACT_FIELDS[owner]))
    return "\n".join(parts)


def contract_table(kind: str, items: Mapping[str, torc_contract.ContractItem]) -> str:
    """Fields or parameters of Torc's contracts that the server does not carry out."""
    rows = [
        [f"`{name}`", item.meaning, item.treatment.value, f"`{json.dumps(item.default)}`"]
        for name, item in items.items()
    ]
    return table([kind, "in Torc", "here", "without effect"], rows)


def operations() -> str:
    """Every operation of the HTTP API, by its subject."""
    import operations_page

    return operations_page.page(table, contract_table)


def executors() -> str:
    """Installed executors of this project and their options."""
    from torc_framework.plugins.manager import PluginManager

    parts = [
        "# Executors\n",
        "Each option is a flag of `torc run --executor NAME`, a configuration key and an environment variable.\n",
    ]
    for name, executor in sorted(PluginManager.load().executors().items()):
        able = executor.capabilities
        can = [word for word, has in (("launches", able.can_launch), ("allocates", able.can_allocate)) if has]
        parts += [f"## {name}\n", f"{executor.description.rstrip('.')}. It {' and '.join(can)}.\n"]
        parts.append(option_table("executor", name, executor.Options))
        if executor.JobOptions is not None:
            parts.append(f"### Options of jobs for {name}\n")
            parts.append(f"Keys of `executor_options: {{{name}: ...}}` in a spec; none is required.\n")
            parts += job_option_tables(executor.JobOptions)
    return "\n".join(parts)


def job_option_tables(kind: type[Any]) -> list[str]:
    """The keys of a class of job options, and below these those of the classes that it names."""
    parts, due = [], [kind]
    for owner in due:  # the loop appends to it
        resolve_types(owner)
        meanings = classes_page.attributes(owner)
        rows = [
            [f"`{attribute.name}`", f"`{spec_type(attribute.type)}`", meanings.get(attribute.name, "")]
            for attribute in fields(owner)
        ]
        if owner is not kind:
            parts.append(f"`{owner.__name__}`:\n")
        parts.append(table(["key", "type", "meaning"], rows))
        due += [each for each in _classes_in(owner) if each not in due]
    return parts


def _classes_in(owner: type[Any]) -> Iterator[type[Any]]:
    """The attrs classes in the types of a class's fields."""
    kinds = [attribute.type for attribute in fields(owner)]
    for kind in kinds:  # the loop appends to it
        kinds += get_args(kind)
        if isinstance(kind, type) and has(kind):
            yield kind


def option_table(section: str, name: str, options: type[Any]) -> str:
    """The options of an executor or a recovery policy, under all their names."""
    rows = [
        [
            f"`{o.flag}`",
            f"`[{section}.{name}] {o.name}`",
            f"`TORC_{section.upper()}__{name.replace('-', '_').upper()}__{o.name.upper()}`",
            f"`{o.default!r}`",
            o.help,
        ]
        for o in options_of(options)
    ]
    return table(["flag", "key", "environment", "default", "meaning"], rows) if rows else "No options.\n"


def policies() -> str:
    """Recovery policies of this project and their options."""
    from torc_framework.plugins.manager import PluginManager

    parts = [
        "# Recovery policies\n",
        "Each option is a flag of `torc recover` and `torc watch`, a configuration key and an environment variable.",
        "`memory_multiplier` and `runtime_multiplier` are only flags of the two commands.\n",
    ]
    for name, options in PluginManager.load().recovery_options().items():
        parts += [
            f"## {name}\n",
            f"{inspect.cleandoc(options.__doc__ or '')}\n",
            option_table("recovery", name, options),
        ]
    return "\n".join(parts)


def spec() -> str:
    """Every field of a workflow file."""
    from torc_framework.spec.language import model

    owners = [model.WorkflowSpec, *(o for o in vars(model).values() if isinstance(o, type) and has(o))]
    parts = [
        "# Workflow spec\n",
        "A spec is a YAML (1.2), JSON, JSON5 or KDL (1 and 2) file; the suffix of its name determines the format.",
        "Fields that are not listed are errors, with the exceptions at [the end](#keys-of-other-versions).",
        "[Parameters and references](parameters.md) describes expressions in braces.\n",
    ]
    for owner in dict.fromkeys(owners):
        if owner is model.ParameterizedSpec:
            continue
        parts += [f"## {owner.__name__.removesuffix('Spec')}\n", f"{inspect.cleandoc(owner.__doc__ or '')}\n"]
        rows = []
        for attribute in fields(owner):
            kind, *notes = get_args(attribute.type) if hasattr(attribute.type, "__metadata__") else (attribute.type,)
            meaning = next((note.description for note in notes if getattr(note, "description", None)), "")
            default = "required" if attribute.default is NOTHING else f"`{json.dumps(_plain(attribute.default))}`"
            rows.append([f"`{attribute.name}`", f"`{spec_type(kind)}`", default, meaning])
        parts.append(table(["field", "type", "default", "meaning"], rows))
    return "\n".join([*parts, _keys_of_other_versions()])


def _keys_of_other_versions() -> str:
    """Other spellings of keys, and keys that are ignored."""
    from torc_framework.spec.language.spellings import ANY_KEY, FOREIGN, SPELLINGS

    spellings = [
        [f"`{key}`", f"`{spelling}`", place or "the workflow"]
        for place, keys in SPELLINGS.items()
        for spelling, key in keys.items()
    ]
    ignored = [
        ["any other key" if key == ANY_KEY else f"`{key}`", place or "the workflow", reason]
        for place, keys in FOREIGN.items()
        for key, reason in keys.items()
    ]
    return "\n".join(
        [
            "## Keys of other versions\n",
            "Specs of other versions of Torc have these spellings; in KDL their singular forms work too.\n",
            table(["field", "other spelling", "in"], spellings),
            "These keys are ignored with a warning, because the jobs run in the same way without them. A key that",
            "resembles a known one remains an error.\n",
            table(["key", "in", "reason"], ignored),
        ]
    )


def _plain(default: object) -> object:
    return default.factory() if isinstance(default, Factory) else default


def spec_type(kind: Any) -> str:
    """The type of a spec's field in words of the file formats."""
    if hasattr(kind, "__metadata__"):
        return spec_type(get_args(kind)[0])
    origin, inner = get_origin(kind), [spec_type(arg) for arg in get_args(kind) if arg is not type(None)]
    if origin is Literal:
        return ", ".join(str(arg) or "empty" for arg in get_args(kind))
    if origin in (list, tuple):
        return f"list of {inner[0]}"
    if origin is dict:
        return f"map of {inner[1]}"
    if inner:
        return " or ".join(inner)
    words = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "any value"}
    return words.get(kind, getattr(kind, "__name__", str(kind)).removesuffix("Spec"))


def commands() -> str:
    """The help of every command, as the program prints it at 100 columns."""
    from typer import Context

    from torc_framework.cli.programs.command_tree import CORE_COMMANDS, root_command
    from torc_framework.cli.shared.session import Session

    def pages(command: Any, parent: Context | None, name: str) -> Iterator[str]:
        context = Context(
            command, parent=parent, info_name=name, terminal_width=100, obj=Session(), **command.context_settings
        )
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
        if parent is None:
            children = {child: command.resolve_command(context, [child])[1] for child in CORE_COMMANDS}
        else:
            children = getattr(command, "commands", {})
        for child, found in children.items():
            if not found.hidden:
                yield from pages(found, context, child)

    return "# Command line\n\n" + "\n".join(pages(root_command(), None, "torc"))


def client() -> str:
    """Every method of the Python client."""
    import client_page

    return client_page.client()


def configuration() -> str:
    """Every setting."""
    import config_page

    return config_page.page(table)


def plugin_classes() -> str:
    """The classes of the public face that an executor subclasses, gets and returns."""
    return classes_page.page(table)


def hpc_profiles() -> str:
    """How a partition is chosen, and the clusters that are built in."""
    import hpc_page

    return hpc_page.page(table)


def dash() -> str:
    """The options, commands and limits of torc-dash."""
    import dash_page

    return dash_page.page(table)


def tui() -> str:
    """The keys and tabs of torc tui."""
    import tui_page

    return tui_page.page(table)


def mcp() -> str:
    """Every tool of the MCP server."""
    import mcp_page

    return mcp_page.page(table)


PAGES: dict[str, Callable[[], str]] = {
    "hooks.md": hooks,
    "statuses.md": statuses,
    "endings.md": exits,
    "events.md": events,
    "records.md": record_pages,
    "operations.md": operations,
    "executors.md": executors,
    "recovery-policies.md": policies,
    "cli.md": commands,
    "configuration.md": configuration,
    "hpc-profiles.md": hpc_profiles,
    "plugin-classes.md": plugin_classes,
    "client.md": client,
    "spec.md": spec,
    "mcp.md": mcp,
    "dash.md": dash,
    "tui.md": tui,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is stale")
    check = parser.parse_args().check
    modules = table_modules()
    stale = differing(modules, write=not check)
    texts = {REFERENCE / name: NOTE + make().rstrip() + "\n" for name, make in PAGES.items()}
    texts[architecture_page.PAGE] = architecture_page.architecture(table)
    stale += differing(texts, write=not check)
    if check and stale:
        print(f"stale: {', '.join(stale)}: run python docs/generate.py", file=sys.stderr)
        return 1
    print(f"{len(texts)} pages, {len(modules)} modules, {len(stale)} {'stale' if check else 'written'}")
    return 0


def differing(texts: Mapping[Path, str], *, write: bool) -> list[str]:
    """Return the names of the files whose text is another, and give them this one if they are to be written."""
    stale = []
    for path, text in texts.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if write:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
