"""``torc sample``: a command group of a plugin."""

import typer

app = typer.Typer(help="Commands of the sample.")


@app.callback()
def sample() -> None:
    """Commands of the sample."""


@app.command()
def hello() -> None:
    """Say hello."""
    print("hello from the sample")
