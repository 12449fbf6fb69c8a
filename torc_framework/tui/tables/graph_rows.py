"""The dependency graph as rows: its layers one after the other, each node with what it waits for."""

from collections import defaultdict

from torc_framework.models.workflow_views import GraphNode, GraphView
from torc_framework.text.quantities import count_text
from torc_framework.text.status_text import STATUS_LOOKS
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened
from torc_framework.tui.tables.looks import Cell, glyph_of
from torc_framework.tui.tables.virtual_table import TableRow

_MOST_PARENTS = 4
_LABEL = 40


def graph_rows(view: GraphView) -> list[TableRow]:
    """Return the rows of a graph; the record of a row about a node is that node."""
    parents: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for source, target, count in view.edges:
        parents[target].append((source, count))
    rows: list[TableRow] = []
    layer = -1
    for place, node in sorted(enumerate(view.nodes), key=lambda each: (each[1].layer, each[1].order)):
        if node.layer != layer:
            layer = node.layer
            rows.append(TableRow(f"layer {layer}", ((f"── {layer + 1} of {view.layer_count} ", "dim"),)))
        rows.append(TableRow(node.id, _node_cells(node, parents[place], view.nodes), node))
    if view.omitted:
        rows.append(TableRow("omitted", ((f"{count_text(view.omitted, 'node')} left out", "dim"),)))
    return rows


def graph_head(view: GraphView) -> str:
    """Return what the drawing has."""
    return f"{count_text(view.job_count, 'job')}, {count_text(view.edge_count, 'dependency', 'dependencies')}"


def _node_cells(node: GraphNode, parents: list[tuple[int, int]], nodes: list[GraphNode]) -> tuple[Cell, ...]:
    cells: list[Cell] = [("   ", ""), *_status_cells(node)]
    label = shortened(one_line(node.label), _LABEL)
    cells.append((label if node.count == 1 else f"{label} ({count_text(node.count)})", "bold"))
    if node.count > 1:
        for status, look in STATUS_LOOKS.items():
            if node.counts.get(status):
                cells.append((f" {count_text(node.counts[status])} {glyph_of(look)}", look.colour))
    if parents:
        names = [shortened(one_line(nodes[source].label), _LABEL) for source, _ in parents[:_MOST_PARENTS]]
        more = f" and {count_text(len(parents) - _MOST_PARENTS)} more" if len(parents) > _MOST_PARENTS else ""
        cells.append((f"  ← {', '.join(names)}{more}", "dim"))
    return tuple(cells)


def _status_cells(node: GraphNode) -> list[Cell]:
    """Return the glyph of a job, or of the worst status in a group."""
    order = ("failed", "terminated", "pending_failed", "running", "canceled", "pending", "ready", "blocked")
    label = next((each for each in order if node.counts.get(each)), next(iter(node.counts), ""))
    look = STATUS_LOOKS.get(label)
    return [(f"{glyph_of(look)} ", look.colour)] if look is not None else [("  ", "")]
