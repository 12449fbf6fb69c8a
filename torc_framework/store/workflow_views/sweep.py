"""The jobs of a workflow by the values of two parameters, which are read from the names of the jobs."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.errors import suggestion
from torc_framework.graph.name_parameters import NamedParameter, NameFamily, name_families, value_order
from torc_framework.models.statuses import JobStatus
from torc_framework.models.workflow_views import SweepCells, SweepParameter, SweepView
from torc_framework.store.database.sql import Row, Statement, Tx, param
from torc_framework.store.errors import RuleError
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.kept_values import KeptValues
from torc_framework.store.workflow_views.limits import DEFAULT_VALUES
from torc_framework.store.workflow_views.tags import workflow_marks

MOST_FAMILIES: Final = 50
"""Most families that are listed."""
_MOST_NAMES: Final = 500_000
"""Names of all kept families of a database."""
_J, _R = t.JOB.c, t.RESULT.c
_NAMES: Final = Statement(sa.select(_J.name).where(_J.workflow_id == param("workflow")).order_by(_J.id), "workflow")
_JOBS: Final = Statement(
    sa.select(_J.id, _J.status, _R.exec_time_minutes, _R.peak_memory_bytes)
    .select_from(t.JOB.outerjoin(t.RESULT, _R.id == _J.result_id))
    .where(_J.workflow_id == param("workflow"))
    .order_by(_J.id),
    "workflow",
)


@define
class _Cell:
    job_id: int
    counts: dict[str, int] = Factory(dict)
    seconds: list[float] = Factory(list)
    peak_memory_bytes: int | None = None

    def add(self, row: Row) -> None:
        _, status, minutes, peak = row
        label = JobStatus(status).label
        self.counts[label] = self.counts.get(label, 0) + 1
        if minutes is not None:
            self.seconds.append(minutes * 60)
        if peak is not None:
            self.peak_memory_bytes = max(peak, self.peak_memory_bytes or 0)


@define
class _KeptFamilies:
    version: tuple[str, int]
    families: list[NameFamily]
    names: int


_kept: Final = KeptValues[_KeptFamilies](_MOST_NAMES, lambda kept: kept.names)


def sweep_view(
    tx: Tx, workflow_id: int, family: str | None = None, *, x: str | None = None, y: str | None = None,
    limit: int = DEFAULT_VALUES,
) -> SweepView:  # fmt: skip
    """Return the jobs of a family by the values of two of its parameters.

    Args:
        family: Label of the family; None is the one with most jobs.
        x: Name of the parameter across; None is the first one whose values fit in.
        y: Name of the parameter down; likewise.
        limit: Most values of an axis.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: there is no such family or parameter.
    """
    families = _families(tx, workflow_id)
    labels = [each.label for each in families]
    if family is not None and family not in labels:
        raise RuleError(f"family: the workflow has no jobs {family[:200]!r}{suggestion(family, labels, 5)}")
    if not families:
        return SweepView([], [], None, None, None, [], [], SweepCells([], [], [], [], [], [], []))
    chosen = families[0 if family is None else labels.index(family)]
    across = _parameter(chosen, x, None, limit)
    down = _parameter(chosen, y, across, limit)
    x_values, y_values = _values(across, limit), _values(down, limit)
    cells, omitted = _cells(tx, workflow_id, chosen, (across, x_values), (down, y_values))
    return SweepView(
        [SweepParameter(each.name, len(each.values), len(chosen.members)) for each in chosen.parameters],
        labels[:MOST_FAMILIES],
        chosen.label,
        across.name if across else None,
        down.name if down else None,
        x_values,
        y_values,
        _columns(cells),
        len(chosen.members) - omitted,
        omitted,
    )


def _families(tx: Tx, workflow_id: int) -> list[NameFamily]:
    version = workflow_marks(tx, workflow_id).version
    kept = _kept.get(tx, workflow_id)
    if kept is None or kept.version != version:
        with _kept.making:
            names = [row[0] for row in tx.rows(_NAMES, workflow_id)]
            kept = _KeptFamilies(version, name_families(names), len(names))
            _kept.keep(tx, workflow_id, kept)
    return kept.families


def _parameter(family: NameFamily, name: str | None, other: NamedParameter | None, limit: int) -> NamedParameter | None:
    """Return the parameter of a name, or the first that is not the other one and fits on an axis, or the first."""
    known = [each.name for each in family.parameters]
    if name is not None:
        if name not in known:
            raise RuleError(f"the jobs {family.label!r} have no parameter {name[:200]!r}{suggestion(name, known)}")
        return family.parameters[known.index(name)]
    free = [each for each in family.parameters if each is not other]
    return next((each for each in free if len(each.values) <= limit), None) or (free[0] if free else None)


def _values(parameter: NamedParameter | None, limit: int) -> list[str]:
    return [] if parameter is None else sorted(parameter.values, key=value_order)[:limit]


def _cells(
    tx: Tx,
    workflow_id: int,
    family: NameFamily,
    across: tuple[NamedParameter | None, Sequence[str]],
    down: tuple[NamedParameter | None, Sequence[str]],
) -> tuple[dict[tuple[int, int], _Cell], int]:
    """Return the cells by position of their values, and the number of jobs that are in none."""
    rows = tx.rows(_JOBS, workflow_id)
    places = [
        (parameter.part, {value: number for number, value in enumerate(values)})
        for parameter, values in (across, down)
        if parameter is not None
    ]
    cells: dict[tuple[int, int], _Cell] = {}
    omitted = 0
    for position, parts in zip(family.members, family.parts, strict=True):
        place = [known.get(parts[part]) for part, known in places]
        if None in place:
            omitted += 1
            continue
        key = place[0] or 0, (place[1] or 0) if len(place) > 1 else 0
        cell = cells.get(key)
        if cell is None:
            cell = cells[key] = _Cell(rows[position][0])
        cell.add(rows[position])
    return cells, omitted


def _columns(cells: dict[tuple[int, int], _Cell]) -> SweepCells:
    ordered = sorted(cells.items())
    seconds = [cell.seconds for _, cell in ordered]
    return SweepCells(
        x=[x for (x, _), _ in ordered],
        y=[y for (_, y), _ in ordered],
        counts=[cell.counts for _, cell in ordered],
        seconds=[round(sum(each) / len(each), 3) if each else None for each in seconds],
        most_seconds=[round(max(each), 3) if each else None for each in seconds],
        peak_memory_bytes=[cell.peak_memory_bytes for _, cell in ordered],
        job_id=[cell.job_id for _, cell in ordered],
    )
