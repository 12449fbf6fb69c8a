"""``torc k8s manifests``: prints or writes the manifests and the Containerfile that come with torc."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from torc_framework.api import UserError, suggestion
from torc_framework.api.commands import Column, CommandGroup, print_json, print_table, session_of
from torc_k8s.pods.names import name_problem
from torc_k8s.pods.pod_options import image_problem

FOLDER: Final = Path(__file__).parents[1] / "manifests"
KINDS: Final = {
    "role": "Service account with the rights that torc needs in its namespace.",
    "nodes-role": "Right to see the sizes of nodes (optional; for administrators).",
    "server": "torc-server with PostgreSQL.",
    "monitoring": "ServiceMonitor of the Prometheus operator for torc-server.",
    "image": "Containerfile of an image with torc.",
}
"""Names of the folders of manifests, and what is in them."""
_COLUMNS: Final[list[Column]] = [("Name", "name"), ("What", "about")]
_CLUSTER_KINDS: Final = ("ClusterRole", "ClusterRoleBinding")
_OWN_IMAGE: Final = "torc:"


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("manifests")(manifests)


def manifests(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Which ones; without it, all are listed.")
    ] = None,
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the objects.")] = (
        "default"
    ),
    image: Annotated[str | None, typer.Option("--image", metavar="IMAGE", help="Image with torc.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the files, for kustomize, into a new folder."),
    ] = None,
) -> None:
    """Print manifests for Kubernetes, or write them to a folder.

    What is printed goes to 'kubectl apply -f -'; the files in a folder are for 'kubectl apply -k DIR' and changes.

    Examples:
        torc k8s manifests
        torc k8s manifests role --namespace jobs
        torc k8s manifests server --output server
    """
    session = session_of(ctx)
    if name is None:
        rows = [{"name": each, "about": about} for each, about in KINDS.items()]
        if session.wants_json:
            print_json({"manifests": rows})
        else:
            print_table(_COLUMNS, rows)
        return
    if name not in KINDS:
        raise UserError(
            f"there are no manifests {name!r}{suggestion(name, list(KINDS))}; 'torc k8s manifests' lists them"
        )
    problems = {"--namespace": name_problem(namespace), "--image": None if image is None else image_problem(image)}
    for flag, problem in problems.items():
        if problem is not None:
            raise UserError(f"{flag}: {problem}")
    if output is not None:
        written = _write(FOLDER / name, output, namespace, image)
        print_json({"files": written}) if session.wants_json else print("\n".join(written))
    elif name == "image":
        text = (FOLDER / name / "Containerfile").read_text(encoding="utf-8")
        print_json({"containerfile": text}) if session.wants_json else print(text, end="")
    elif session.wants_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": _objects(name, namespace, image)})
    else:
        print(rendered(name, namespace, image), end="")


def rendered(name: str, namespace: str, image: str | None) -> str:
    """Return manifests as one document of YAML, with namespace and image."""
    return yaml.safe_dump_all(_objects(name, namespace, image), sort_keys=False)


def _objects(name: str, namespace: str, image: str | None) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = []
    for path in _resources(FOLDER / name):
        objects += [_placed(each, namespace, image) for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return objects


def _resources(folder: Path) -> list[Path]:
    customization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    return [folder / each for each in customization["resources"]]


def _placed(found: dict[str, Any], namespace: str, image: str | None) -> dict[str, Any]:
    """Return an object in a namespace, with the image of torc replaced."""
    if found["kind"] not in _CLUSTER_KINDS:
        found["metadata"] = {"name": found["metadata"]["name"], "namespace": namespace, **found["metadata"]}
    for subject in found.get("subjects", ()):
        subject["namespace"] = namespace
    for container in found.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
        if image is not None and container["image"].startswith(_OWN_IMAGE):
            container["image"] = image
    return found


def _write(folder: Path, output: Path, namespace: str, image: str | None) -> list[str]:
    """Write the files of a folder of manifests with their comments; return their paths.

    Raises:
        UserError: a file is there already, or the folder cannot be written.
    """
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.is_file()}
    taken = next((name for name in texts if (output / name).exists()), None)
    if taken is not None:
        raise UserError(f"{output / taken} exists; name a new folder with --output")
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (output / name).write_text(_replaced(text, namespace, image), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {output}: {error.strerror}; see --output") from None
    return [str(output / name) for name in texts]


def _replaced(text: str, namespace: str, image: str | None) -> str:
    """Return the text of a file with namespace and image."""
    text = text.replace("namespace: default\n", f"namespace: {namespace}\n")
    if image is None:
        return text
    name, _, tag = image.rpartition(":") if ":" in image.rpartition("/")[2] else (image, ":", "latest")
    return text.replace("newName: torc\n", f"newName: {name}\n").replace("newTag: 0.1.0\n", f"newTag: {tag}\n")
