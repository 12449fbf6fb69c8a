"""Commands on records, made from one declaration for each kind: create, list, get, update, delete, delete-all.

A group of commands declares what differs for its records. Commands with other behaviour are written by hand.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from attrs import Factory, fields_dict, frozen

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import Force, Limit, NoPrompts, RecordId, WorkflowId, confirm, pick_workflow
from torc_framework.cli.shared.listing import omitted_text
from torc_framework.cli.shared.output import Column, blocks_of, print_json, print_json_list, print_parts, with_end
from torc_framework.cli.shared.record_options import (
    CommandOption,
    RecordOption,
    command_options,
    make_command,
    parameter,
)
from torc_framework.cli.shared.record_output import CountedBlocks, show_created, show_deleted, show_many, show_one
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.models.records import Record

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

DEFAULT_LIMIT: Final = 10_000
"""Default of ``--limit``: most records that a list shows."""


def _create(client: "TorcClient", record: Any, **_links: Any) -> Any:
    return client.create(record)


def _find(client: "TorcClient", kind: type[Any], query: dict[str, Any]) -> Iterable[Any]:
    return client.iterate(kind, **query)


def _unchanged(_client: "TorcClient", _id: int, changes: dict[str, Any]) -> dict[str, Any]:
    return changes


@frozen(kw_only=True)
class RecordCommands:
    """The commands on one kind of record.

    Attributes:
        record: Its class.
        one: One record with its article, as in ``a file``.
        several: The plural, as in ``files``; with underscores it is the key of lists in JSON.
        columns: Columns of the table.
        create: Options of ``create``; those that are no fields are passed to ``store``.
        update: Options of ``update``.
        filters: Options of ``list``: the server's query parameters.
        short: Short flags of the options that every list takes: ``offset``, ``sort_by``, ``reverse_sort``.
        notes: For a command, sentences that follow the first one of its help.
        examples: For a command, an example: what follows its name.
        titled: Title of a list; ``{}`` stands for the workflow's id.
        is_data: ``get`` prints JSON in either format, since programs read it.
        may_be_held: Runners may hold such records; ``delete-all`` takes ``--force`` to delete these too.
        text: Yields the list as text in parts, from blocks of records; None is the table of ``columns``.
        store: Stores a new record.
        find: Finds the records of a list.
        complete: Completes changes before they are sent.
    """

    record: type[Record]
    one: str
    several: str
    columns: Sequence[Column]
    create: Sequence[RecordOption] = ()
    update: Sequence[RecordOption] = ()
    filters: Sequence[RecordOption] = ()
    short: Mapping[str, str] = Factory(dict)
    notes: Mapping[str, str] = Factory(dict)
    examples: Mapping[str, str] = Factory(dict)
    titled: str = ""
    is_data: bool = False
    may_be_held: bool = False
    text: Callable[["TorcClient", Iterable[Sequence[Any]]], Iterable[str]] | None = None
    store: Callable[..., Any] = _create
    find: Callable[["TorcClient", type[Any], dict[str, Any]], Iterable[Any]] = _find
    complete: Callable[["TorcClient", int, dict[str, Any]], dict[str, Any]] = _unchanged

    @property
    def what(self) -> str:
        """The name of one record without its article."""
        return self.one.removeprefix("a ").removeprefix("an ")

    def add(self, app: CommandGroup, *names: str) -> None:
        """Add these commands to a group, in this order."""
        makers = {
            "create": self._create,
            "list": self._list,
            "get": self._get,
            "update": self._update,
            "delete": self._delete,
            "delete-all": self._delete_all,
        }
        for name in names:
            app.command(name)(makers[name](name))

    def show_many(
        self, ctx: typer.Context, records: Iterable[Any], title: str, total_of: Callable[[int], int] | None = None
    ) -> None:
        """Print records as ``list`` does.

        Args:
            records: The records, which may be more than fit in memory.
            title: What they are, in the plural.
            total_of: Returns how many there are, given the number that is printed; None if all are printed.
        """
        session, key = session_of(ctx), self.several.replace(" ", "_")
        if session.wants_json:
            print_json_list(key, self.json_rows(ctx, records))
            return
        blocks = CountedBlocks(blocks_of(records))
        left = iter(blocks)
        first = next(left, [])
        if self.text is None or not first:
            show_many(session, key, title, self.columns, chain(first, chain.from_iterable(left)))
            return

        def end() -> str:
            return "" if total_of is None else omitted_text(blocks.count, total_of(blocks.count))

        text = self.text(session.client, chain([first], left))
        print_parts(with_end(text, end), may_page=session.wants_pager)

    def json_rows(self, ctx: typer.Context, records: Iterable[Any]) -> Iterable[Any]:
        """Return what ``list`` prints as JSON for records, which may be more than fit in memory."""
        return records

    def show_one(self, ctx: typer.Context, record: Any) -> None:
        """Print one record as ``get`` does."""
        name = self.what[:1].upper() + self.what[1:]
        show_one(session_of(ctx), f"{name} {record.id}", record)

    # --- each command -----------------------------------------------------------------------------

    def _made(
        self, name: str, work: Callable[..., None], sentence: str, *parameters: inspect.Parameter
    ) -> Callable[..., None]:
        text = " ".join([sentence, *filter(None, [self.notes.get(name)])])
        examples = filter(None, [*_EXAMPLES.get(name, ()), self.examples.get(name)])
        lines = "".join(f"\n    {{command}} {example}" for example in examples)
        return make_command(work, f"{text}\n\nExamples:{lines}", parameters)

    def _create(self, name: str) -> Callable[..., None]:
        options = command_options(self.record, self.create, is_new=True)

        def work(ctx: typer.Context, workflow_id: int | None, **given: Any) -> None:
            session, values = session_of(ctx), _values(options, given)
            own = fields_dict(self.record)
            links = {key: value for key, value in values.items() if key not in own}
            chosen = pick_workflow(session, workflow_id)
            record = self.record(workflow_id=chosen, **{k: v for k, v in values.items() if k in own})  # type: ignore[call-arg]  # fields of the subclass
            show_created(session, self.what, self.store(session.client, record, **links))

        return self._made(name, work, f"Add {self.one} to a workflow.", _WORKFLOW, *_parameters(options))

    def _list(self, name: str) -> Callable[..., None]:
        options = command_options(self.record, self.filters, is_new=False)

        def work(ctx: typer.Context, workflow_id: int | None, **given: Any) -> None:
            session = session_of(ctx)
            filters = _values(options, {key: given.pop(key) for key in options})
            chosen = pick_workflow(session, workflow_id)
            given["reverse_sort"] = given["reverse_sort"] or None
            given["limit"] = given["limit"] or None  # 0 is all
            query = {"workflow_id": chosen, **filters, **given}

            def total_of(shown: int) -> int:
                if shown != given["limit"]:
                    return shown
                every = session.client.page(self.record, workflow_id=chosen, **filters, limit=0)
                return int(every.total_count - given["offset"])

            title = self.titled or f"{self.several} of workflow {{}}"
            self.show_many(ctx, self.find(session.client, self.record, query), title.format(chosen), total_of)

        paging = [
            parameter("limit", Limit, DEFAULT_LIMIT),
            self._paging("offset", int, 0, "Records to skip.", min=0),
            self._paging("sort_by", str | None, None, "Field to sort by.", metavar="FIELD"),
            self._paging("reverse_sort", bool, default=False, sentence="Sort from high to low."),
        ]
        sentence = f"List {self.several}."
        return self._made(name, work, sentence, _WORKFLOW, *_parameters(options), *paging)

    def _paging(self, name: str, kind: Any, default: Any, sentence: str, **facts: Any) -> inspect.Parameter:
        flags = [f"--{name.replace('_', '-')}", *([self.short[name]] if name in self.short else [])]
        return parameter(name, Annotated[kind, typer.Option(*flags, help=sentence, **facts)], default)

    def _get(self, name: str) -> Callable[..., None]:
        def work(ctx: typer.Context, id_: int) -> None:
            found: Any = session_of(ctx).client.get(self.record, id_)
            print_json(found) if self.is_data else self.show_one(ctx, found)

        return self._made(name, work, f"Show {_singular(self.one)}.", _ID)

    def _update(self, name: str) -> Callable[..., None]:
        options = command_options(self.record, self.update, is_new=False)

        def work(ctx: typer.Context, id_: int, **given: Any) -> None:
            client, values = session_of(ctx).client, _values(options, given)
            if not values:
                flags = ", ".join(each.option.flag for each in options.values())
                raise UserError(f"nothing to change; give one of {flags}")
            self.show_one(ctx, client.update(self.record, id_, self.complete(client, id_, values)))

        return self._made(name, work, f"Change {self.one}.", _ID, *_parameters(options))

    def _delete(self, name: str) -> Callable[..., None]:
        def work(ctx: typer.Context, id_: int) -> None:
            session = session_of(ctx)
            show_deleted(session, self.what, session.client.delete(self.record, id_))

        return self._made(name, work, f"Delete {self.one}.", _ID)

    def _delete_all(self, name: str) -> Callable[..., None]:
        def work(ctx: typer.Context, workflow_id: int | None, *, no_prompts: bool, force: bool = True) -> None:
            session = session_of(ctx)
            chosen = pick_workflow(session, workflow_id)
            confirm(f"Delete all {self.several} of workflow {chosen}?", assume_yes=no_prompts or session.wants_json)
            count = session.client.delete_all(self.record, chosen, force=force)
            text = f"Deleted {count} {self.several} of workflow {chosen}"
            if session.wants_json:
                print_json({"workflow_id": chosen, "deleted_count": count, "message": text})
            else:
                print(text)

        asks = parameter("no_prompts", NoPrompts, default=False)
        forced = [parameter("force", Force, default=False)] if self.may_be_held else []
        sentence = f"Delete all {self.several} of a workflow."
        return self._made(name, work, sentence, _WORKFLOW, asks, *forced)


_EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "list": ("12", "12 --limit 20 -f json"),
    "get": ("34", "34 -f json"),
    "delete": ("34",),
    "delete-all": ("12 --no-prompts",),
}
"""Examples that every kind of record has."""
_WORKFLOW: Final = parameter("workflow_id", WorkflowId, None)
_ID: Final = parameter("id_", RecordId)


def _singular(one: str) -> str:
    """Return the object of the help of ``get``, such as ``one file``."""
    article, _, rest = one.partition(" ")
    return f"one {rest}" if article in ("a", "an") else f"one record of {one}"


def _parameters(options: Mapping[str, CommandOption]) -> list[inspect.Parameter]:
    return [entry.parameter for entry in options.values()]


def _values(options: Mapping[str, CommandOption], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that were given, or that have a default."""
    found = {name: options[name].value(typed) for name, typed in given.items()}
    return {name: value for name, value in found.items() if value is not None}
