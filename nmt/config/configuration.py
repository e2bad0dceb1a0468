"""The folder of yaml files, and configurations as trees of settings: for the command line and for run folders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nmt.system.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig

# The key under which a node names its class.
TARGET: Final = "_target_"
# Settings that do not change what is trained.
INCIDENTAL: Final = frozenset(
    {
        *("name", "resume", "checkpoints", "cache", "device", "threads", "deterministic"),
        *("trainer.workers", "trainer.save_minutes", "trainer.graphs", "trainer.log_seconds", "trainer.samples"),
        "trainer.tensorboard",
    }
)
# Other settings that a resumed run may change: its budget and its intervals.
EXTENSIBLE: Final = frozenset(
    {
        *("trainer", "trainer.steps", "trainer.epochs", "trainer.minutes", "trainer.patience"),
        "trainer.validate_every",
        "start_data",  # the text may have moved
        "trainer.accumulate",  # can keep the batches per update if the number of processes changes
    }
)
# The result of `look_up` for a missing key.
ABSENT: Final = object()


def config_folder() -> Path:
    """Return the folder of the yaml files: inside an installed package, or beside the package in the repository.

    Raises:
        UserError: neither folder exists.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "train.yaml").is_file():
            return folder
    raise UserError(f"The configuration files are missing beside {package}. Install the package again.")


def groups_of(folder: Path) -> dict[str, list[str]]:
    """Return every group of choices ("attention/score") with its choices, sorted."""
    groups: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.yaml")):
        group = path.parent.relative_to(folder).as_posix()
        if group != ".":
            groups.setdefault(group, []).append(path.stem)
    return groups


def read_yaml(name: str) -> dict[str, Any]:
    """Return the content of the yaml file `name` ("attention/score/dot"); {} if it does not exist."""
    from omegaconf import OmegaConf

    path = config_folder() / f"{name}.yaml"
    content = OmegaConf.to_container(OmegaConf.load(path), resolve=False) if path.is_file() else {}
    return {str(key): value for key, value in content.items()} if isinstance(content, dict) else {}


def look_up(tree: object, key: str) -> Any:
    """Return the value of a tree at a dotted key, or ABSENT."""
    for part in key.split("."):
        if isinstance(tree, dict) and part in tree:
            tree = tree[part]
        elif isinstance(tree, list) and part.isdigit() and int(part) < len(tree):
            tree = tree[int(part)]
        else:
            return ABSENT
    return tree


def leaves(tree: object, prefix: str = "") -> dict[str, Any]:
    """Return {dotted key: value} for all values that are not non-empty mappings."""
    if isinstance(tree, dict) and (tree or not prefix):
        by_key: dict[str, Any] = {}
        for name, value in tree.items():
            by_key |= leaves(value, f"{prefix}.{name}" if prefix else str(name))
        return by_key
    return {prefix: tree}


def scalars(tree: object) -> Iterator[object]:
    """Yield every value of a tree that is neither a mapping nor a list."""
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        for value in tree:
            yield from scalars(value)
    else:
        yield tree


def without_classes(tree: Any) -> Any:
    """Return a configuration in plain containers, without the classes of its nodes."""
    if isinstance(tree, dict):
        return {key: without_classes(value) for key, value in tree.items() if key != TARGET}
    return [without_classes(value) for value in tree] if isinstance(tree, list) else tree


def flattened(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return {key: value} of a configuration: first choices by group ("attention/score"), then settings by key."""
    settings = {key: value for key, value in without_classes(dict(tree)).items() if key != "choices"}
    return {**tree.get("choices", {}), **leaves(settings)}


def resolved(config: DictConfig) -> DictConfig:
    """Return the configuration with every interpolation replaced by its value, for saving and loading.

    A `${` within text, for example in the name of a file, stays text after loading.
    """
    from omegaconf import DictConfig, OmegaConf

    def escaped(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: escaped(value) for key, value in node.items()}
        if isinstance(node, list):
            return [escaped(value) for value in node]
        return literal(node) if isinstance(node, str) else node

    return DictConfig(escaped(OmegaConf.to_container(config, resolve=True)))


def literal(text: str) -> str:
    """Escape a text for OmegaConf, so that a `${` in it stays these two characters."""
    # OmegaConf reads `\${` as the two characters, and two backslashes just before that as one.
    return re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + r"\${", text)
