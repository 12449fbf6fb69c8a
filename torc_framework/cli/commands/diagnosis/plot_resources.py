"""``torc plot-resources``: writes interactive plots of resource samples."""

from pathlib import Path
from typing import Annotated

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import parse_ids
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError

Databases = Annotated[
    list[Path],
    typer.Argument(metavar="DB_PATHS...", help="Files of samples, such as output/resource_utilization/*.db."),
]


def plot_resources(
    ctx: typer.Context,
    db_paths: Databases,
    *,
    output_dir: Annotated[Path, typer.Option("--output-dir", "-o", help="Folder for the plots.")] = Path(),
    job_ids: Annotated[
        list[str] | None, typer.Option("--job-ids", "-j", metavar="IDS", help="Only these jobs, such as 15,16.")
    ] = None,
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Prefix of all file names.")] = "resource_plot",
    format_: Annotated[
        str, typer.Option("--format", "-f", metavar="html|json", help="HTML pages, or only their data.")
    ] = "html",
) -> None:
    """Plot the resource use of jobs over time, from the samples of workflows with granularity time_series.

    Writes a page for each job, overviews of CPU and memory, and a summary. Each is one HTML file that
    needs no network. 'torc -f json plot-resources ...' lists the files as JSON.

    Examples:
        torc plot-resources output/resource_utilization/resource_metrics_1_1_1.db
        torc plot-resources metrics.db --job-ids 3,4 --output-dir plots
    """
    from torc_framework.plots import FORMATS, PlotRequest, write_plots

    if format_ not in FORMATS:
        raise UserError(f"--format is {format_!r}; expected one of {', '.join(FORMATS)}")
    if "/" in prefix:
        raise UserError(f"--prefix is {prefix!r}; it begins file names and cannot hold a /; see --output-dir")
    wanted = parse_ids(job_ids, "--job-ids") or []
    written, remarks = write_plots(PlotRequest(db_paths, output_dir, wanted, prefix, format_))
    for remark in remarks:
        typer.echo(f"Note: {remark}", err=True)
    if session_of(ctx).wants_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        print(path)


app = single_command(plot_resources)
