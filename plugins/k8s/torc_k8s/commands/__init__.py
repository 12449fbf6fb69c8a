"""The commands ``torc k8s``."""

import typer

app = typer.Typer(
    no_args_is_help=True, help="Kubernetes: check the cluster, start pods that run jobs, remove what is left."
)
