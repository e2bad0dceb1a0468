"""The door between a shell's command line and the verbs: words in, a checked configuration out.

    sys.argv -quote-> overrides that Hydra can read -compose-> DictConfig -main-> action, exit status

Hydra's own decorator is not used: it logs to standard output, leaves folders behind and answers a misspelt
key with the advice to hide it. The same files, the same override grammar and the same composition are;
nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from nmt.errors import UserError, nearest

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

# Keys whose values are paths: any character may stand in them, and `~/` is the home folder.
PATH_KEYS: Final = frozenset(
    {
        *("run", "input", "output", "source", "reference", "alignments", "heatmaps", "runs", "records"),
        *("checkpoints", "cache", "tokenizer.model"),
        *("data.train", "data.valid", "data.test", "data.root", "data.files", "data.train_links"),
        *("target", "gold", "links", "matrix", "reverse", "valid_source", "valid_target", "valid_gold"),
    }
)
# Keys whose values are text whatever they look like: `name=1e3` is no number, the language `no` is not False.
TEXT_KEYS: Final = PATH_KEYS | {
    *("name", "split", "baseline"),
    *("data.source", "data.target", "data.path", "data.name", "data.revision"),
    *("data.source_column", "data.target_column"),
}
LIST_KEYS: Final = frozenset({"run", "runs", "data.files", "data.valid", "data.test", "tokenizer.model"})
# Of these there is one for all runs of a sweep.
SHARED_KEYS: Final = frozenset({"name", "checkpoints", "cache"})

# Other names of choices, as papers and other toolkits have them.
ALIASES: Final[dict[str, dict[str, str]]] = {
    "attention/score": {
        "bahdanau": "additive",
        "mlp": "additive",
        "bilinear": "general",
        "multiplicative": "general",
        "luong": "general",
    },
}

# What a resumed run may change: its budget, its cadence, where it runs.
ALLOWED_ON_RESUME: Final = frozenset(
    {
        *("name", "resume", "checkpoints", "cache", "device", "threads", "trainer.workers"),
        *("trainer.steps", "trainer.epochs", "trainer.minutes", "trainer.patience"),
        *(
            "trainer.validate_every",
            "trainer.validate_sentences",
            "trainer.save_minutes",
            "trainer.log_seconds",
        ),
        *("trainer.samples", "trainer.tensorboard"),
    }
)
# Keys that may be null, which is no limit or the choice left to the tool, with the kind of their other values.
NULLABLE: Final[dict[str, type]] = {
    "trainer.steps": int,
    "trainer.epochs": float,
    "trainer.minutes": float,
    "trainer.patience": int,
    "trainer.validate_every": int,
    "trainer.sentences_per_batch": int,
    "threads": int,
}

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "train": (
        "python -m nmt.train                              # the built-in corpus, offline, minutes",
        "python -m nmt.train data.files=[german.txt,english.txt]     # two text files, or one .tsv",
        "python -m nmt.train data=text data.source=de data.target=en data.train=DIR/train \\\n"
        "      data.valid=DIR/valid data.test=DIR/test name=mine",
        "python -m nmt.train data=multi30k data.root=DIR data.source=de data.target=en name=m30k",
        "python -m nmt.train name=m30k resume=true        # goes on where it stopped",
        "python -m nmt.train attention/score=dot decoder=luong       # a variant by override",
        "python -m nmt.train -m name=SWEEP attention/score=additive,general seed=1,2,3    # all combinations",
    ),
    "translate": (
        "python -m nmt.translate run=checkpoints/NAME input=FILE output=FILE search.beam_size=5",
        "cat FILE | python -m nmt.translate run=checkpoints/NAME > OUT",
        "python -m nmt.translate run=[checkpoints/A,checkpoints/B] input=FILE    # an ensemble",
    ),
    "evaluate": (
        "python -m nmt.evaluate run=checkpoints/NAME      # every test split of the data set",
        "python -m nmt.evaluate run=checkpoints/NAME source=FILE reference=FILE",
    ),
    "align": (
        "python -m nmt.align run=checkpoints/NAME         # the built-in corpus has gold links",
        "python -m nmt.align run=checkpoints/NAME source=FILE target=FILE output=LINKS",
        "python -m nmt.align run=checkpoints/NAME reverse=checkpoints/BACK source=FILE target=FILE gold=FILE",
        "python -m nmt.align links=FILE gold=FILE gold_base=1      # scores links from anywhere",
    ),
    "compare": (
        "python -m nmt.compare runs=checkpoints/SWEEP     # every run of a sweep, seeds taken together",
        "python -m nmt.compare runs=[checkpoints/A,checkpoints/B,checkpoints/C] baseline=A output=DIR",
        "python -m nmt.compare runs=checkpoints/SWEEP records=DIR    # keeps what a comparison needs, no weights",
        "python -m nmt.compare runs=DIR                   # the same from these records",
    ),
}

MULTIRUN: Final = ("-m", "--multirun")

_QUOTED: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LIST_ITEM: Final = re.compile(rf"(?:\s*(?:{_QUOTED})\s*(?=,|\Z))|[^,]*", re.DOTALL)
# Failures of the machine that a user can cure, as opposed to a fault of this program.
_CURABLE: Final = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT),
        *(errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EMFILE, errno.EIO),
    }
)
_ABSENT: Final = object()


def config_folder() -> Path:
    """Returns the folder of the yaml files: inside an installed package, else beside it in the repository.

    Raises:
        UserError: neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "train.yaml").is_file():
            return folder
    raise UserError(f"The configuration files are missing beside {package}. Install the package again.")


# ------------------------------------------------------------------------------------------------------------
# Words of the command line -> overrides in Hydra's grammar
# ------------------------------------------------------------------------------------------------------------


def quote(arguments: Sequence[str], sweep: bool = False) -> list[str]:
    """Quotes the values of paths and text, so that Hydra's grammar takes every character in them literally.

    A value in quotes of the user's own stays as it is. Lists (`run=[a,b]`, or `run=a,b`) are split at the
    commas outside quotes, unless a file of exactly that name exists. Quoting twice changes nothing.

    Args:
        arguments: the words of a command line.
        sweep: whether a comma between texts (`data.target=de,fr`) parts the values of several runs.

    Raises:
        UserError: a list that is not closed or has an empty place; the one text that cannot be quoted, `???`.
    """
    return [_quote_argument(argument, sweep) for argument in arguments]


def unquoted(argument: str) -> str:
    """A quoted `key=value` as somebody would have typed it, where that means the same."""
    typed = argument.replace("'", "")
    return typed if quote([typed]) == [argument] else argument


def _quote_argument(argument: str, sweep: bool) -> str:
    key, equals, value = argument.partition("=")
    plain = key.lstrip("+")
    if not equals or plain not in TEXT_KEYS or value == "null":
        return argument
    if value == "???":  # OmegaConf's word for a value that is missing, which no quotes take away
        raise UserError(f"{argument}: '???' cannot be a value; for a file of that name write {key}=./???")
    as_path = plain in PATH_KEYS
    if as_path and not value:
        raise UserError(f"{key}= is empty, as a shell's variable is that was never set. {key}=null means none.")
    if plain in LIST_KEYS and not _exists(value) and _is_list(value):
        if value.startswith("[") != value.endswith("]"):
            raise UserError(
                f"{argument}: the list is not closed. Write it without spaces, or within quotes of your "
                f"shell: '{key}=[a, b]'"
            )
        return f"{key}=[{','.join(_quote_value(item, as_path) for item in _items(argument, value))}]"
    if sweep and plain not in LIST_KEYS | SHARED_KEYS and not _exists(value) and _is_list(value):
        return f"{key}={','.join(_quote_value(item, as_path) for item in _items(argument, value))}"
    return f"{key}={_quote_value(value, as_path)}"


def _quote_value(value: str, as_path: bool) -> str:
    from hydra.core.override_parser.types import Quote, QuotedString

    if re.fullmatch(_QUOTED, value, re.DOTALL) and not _exists(value):
        return value
    if as_path and value.startswith("~/") and not _exists(value):
        # A shell expands `~/` at the start of a word only, not after the `=` of key=value.
        value = os.path.expanduser(value)
    return QuotedString(_literal(value), Quote.single).with_quotes()


def _literal(text: str) -> str:
    # OmegaConf would take `${` for an interpolation; it reads `\${` as the two characters, and the
    # backslashes just before that count in pairs.
    return re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + r"\${", text)


def _is_list(value: str) -> bool:
    if re.fullmatch(_QUOTED, value, re.DOTALL):
        return False
    return (value.startswith("[") and value.endswith("]")) or "," in value


def _items(argument: str, value: str) -> Iterator[str]:
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if not inner.strip():
        return
    parts = []
    position = 0
    while position <= len(inner):
        match = _LIST_ITEM.match(inner, position)
        assert match is not None  # the second branch matches nothing at worst
        parts.append(match[0])
        position = match.end() + 1
    start = 0
    while start < len(parts):
        # A file whose name holds commas is one item, if it is there.
        stop = next(
            (stop for stop in range(len(parts), start + 1, -1) if _exists(",".join(parts[start:stop]))),
            start + 1,
        )
        item = ",".join(parts[start:stop]).strip()
        if not item:
            raise UserError(
                f"{argument}: the list has an empty place. Write it as key=[a,b], without a comma too many."
            )
        yield item
        start = stop


def _exists(value: str) -> bool:
    """Whether a file has exactly this name, or this name and an ending (`DIR/train` for `DIR/train.de`)."""
    try:
        path = Path(value)
        if not value or not path.name:
            return False
        return path.exists() or (
            path.parent.is_dir() and any(name.startswith(f"{path.name}.") for name in os.listdir(path.parent))
        )
    except (OSError, ValueError):
        return False


# ------------------------------------------------------------------------------------------------------------
# Overrides -> configuration
# ------------------------------------------------------------------------------------------------------------


def compose(config_name: str, overrides: Sequence[str]) -> DictConfig:
    """Composes `config_name`.yaml with overrides (already quoted), checked against what the files hold.

    `data.files=...` without `data=` means `data=files`. A number given where text stands is text
    (`precision=32`), a whole number may be written `1e4`. The result is in struct mode: reading a key that is
    not there raises.

    Raises:
        UserError: a word without `=`; a setting taken away; a misspelt group, choice or key (with the nearest that
            exist); a value that cannot be read, or of another kind than the default's; several values where one is
            needed.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    folder = config_folder()
    parsed = [_parse(config_name, _by_its_name(override)) for override in overrides]
    keys = {override.key_or_group for override in parsed}
    if "data.files" in keys and "data" not in keys and (folder / "data" / "files.yaml").is_file():
        parsed.insert(0, _parse(config_name, "data=files"))
    groups = _groups(folder)
    composed, settings = [], []
    for override in parsed:
        if override.is_delete():
            key = override.key_or_group
            raise UserError(
                f"'~{key}' takes away what a run needs. Give it a value, or {key}=null where that has a meaning."
            )
        if override.key_or_group in groups:
            _check_choice(config_name, folder, groups, override)
            composed.append(_line(override))
        elif override.type == OverrideType.CHANGE and not override.is_hydra_override():
            settings.append(override)
        else:
            composed.append(_line(override))
    try:
        with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
            config = hydra_compose(config_name, overrides=composed)
        for override in settings:
            value = _check_setting(config_name, folder, groups, config, override)
            # As Hydra would do it after composing; done here, since the look-up needs the composition first.
            OmegaConf.update(config, override.key_or_group, value, merge=True)
        # An interpolation that leads nowhere is found now, not in an hour.
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_in_our_words(config_name, str(error))) from error
    OmegaConf.set_struct(config, True)
    return config


def _by_its_name(argument: str) -> str:
    """Returns the override with the name that a choice has here, where it came with an alias."""
    group, equals, choice = argument.partition("=")
    return group + equals + ALIASES.get(group, {}).get(choice, choice)


class Combination(NamedTuple):
    """One run of a sweep.

    Attributes:
        overrides: its command line, quoted, with one value each.
        swept: the key and the value of each word that had several, in the order of the line.
        fixed: those of the others.
    """

    overrides: list[str]
    swept: dict[str, str]
    fixed: dict[str, str]


def expand(config_name: str, words: Sequence[str]) -> list[Combination]:
    """Every combination of the values of a sweep's command line, the last word changing fastest.

    The grammar is Hydra's: `seed=1,2,3`, `seed=range(1,4)`, `attention/score=glob(*)`, `key=choice(a,b)`; a comma
    inside quotes or brackets belongs to one value. As in Hydra, the last of two words with one key counts.

    Raises:
        UserError: a word cannot be read, or names no values that could be counted.
    """
    groups = _groups(config_folder())
    values: dict[str, tuple[str, list[str], bool]] = {}
    for word in quote(words, sweep=True):
        override = _parse(config_name, word, sweep=True)
        key = override.get_key_element()
        if not override.is_sweep_override():
            values[key] = (override.key_or_group, [_line(override)], False)
            continue
        found = _sweep_values(override, groups)
        if not found:
            raise UserError(f"'{word}' names no value: there is none of that kind.")
        values[key] = (override.key_or_group, [f"{key}={value}" for value in found], True)
    lists = [
        [(key, line, _value_of(config_name, line), several) for line in lines]
        for key, lines, several in values.values()
    ]
    return [
        Combination(
            [line for _, line, _, _ in chosen],
            {key: value for key, _, value, several in chosen if several},
            {key: value for key, _, value, several in chosen if not several},
        )
        for chosen in itertools.product(*lists)
    ]


def _sweep_values(override: Override, groups: dict[str, list[str]]) -> list[str]:
    from hydra.core.override_parser.types import Glob

    value = override.value()
    if isinstance(value, Glob):
        return list(value.filter(groups.get(override.key_or_group, [])))
    if not override.is_discrete_sweep():
        raise UserError(f"'{_line(override)}' is a range without end; write the values: {override.key_or_group}=A,B,C.")
    return list(dict.fromkeys(override.sweep_string_iterator()))


def _value_of(config_name: str, line: str) -> str:
    value = _parse(config_name, line).value()
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return line.partition("=")[2] if isinstance(value, list | dict) else str(value)


def _line(override: Override) -> str:
    assert override.input_line is not None  # _parse gave it one
    return override.input_line


def _parse(verb: str, argument: str, sweep: bool = False) -> Override:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if "=" not in argument and not argument.startswith("~"):
        raise UserError(_bare(verb, argument))
    key, _, value = argument.partition("=")
    if key != key.strip() or not key:
        raise UserError(f"'{argument}': write key=value without spaces around the equals sign.")
    if key.startswith("-"):
        bare = key.lstrip("-").replace("-", "_")
        raise UserError(f"'{argument}': settings are written without dashes: {bare}={value}")
    try:
        override: Override = OverridesParser.create().parse_overrides([argument])[0]
    except HydraException as error:
        # Hydra's grammar stops at brackets, quotes and every letter that is not ASCII.
        shown = value.replace("'", "\\'")
        raise UserError(
            f"'{argument}' cannot be read: it holds a character with a meaning of its own, or a quote or "
            f"bracket that is not closed. Write the value in quotes within quotes: \"{key}='{shown}'\""
        ) from error
    if override.is_sweep_override() and not sweep:
        several = " -m trains a run for each." if verb == "train" else ""
        raise UserError(
            f"'{argument}' names several values where one run takes one.{several} "
            f"If the comma belongs to the value, write \"{key}='{value}'\"; a list is {key}=[{value}]."
        )
    return override


def _bare(verb: str, argument: str) -> str:
    if argument == "=":
        return "A lone '=': write key=value without spaces around the equals sign."
    if argument.startswith("-"):
        name = argument.lstrip("-").replace("-", "_")
        hint = f" Settings are written without dashes, as {name}=VALUE." if len(name) > 1 else ""
        return f"'{argument}' is no option of nmt.{verb}.{hint} See python -m nmt.{verb} --help."
    path = Path(argument)
    if verb in ("translate", "evaluate", "align") and path.is_dir():
        return f"'{argument}' says not what it is: write run={argument}"
    if verb == "translate" and path.is_file():
        return f"'{argument}' says not what it is: write input={argument}"
    if verb == "train" and path.is_file():
        return f"'{argument}' says not what it is: write data.files=[SOURCE_FILE,TARGET_FILE]"
    from omegaconf import OmegaConf

    settings = {str(key) for key in OmegaConf.load(config_folder() / f"{verb}.yaml")} - {"defaults", "hydra"}
    groups = _groups(config_folder())
    help_ = f"See python -m nmt.{verb} --help."
    if argument in settings or argument in groups:
        return f"'{argument}' needs a value: write {argument}=VALUE. {help_}"
    near = nearest(argument, groups if "/" in argument else [*settings, *groups], limit=2)
    return f"'{argument}' is not of the form key=value.{near} {help_}"


def _groups(folder: Path) -> dict[str, list[str]]:
    """Returns every group of choices ("attention/score") with its choices, sorted."""
    groups: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.yaml")):
        group = path.parent.relative_to(folder).as_posix()
        if group != ".":
            groups.setdefault(group, []).append(path.stem)
    return groups


def _defaults(folder: Path, config_name: str) -> dict[str, str | None]:
    """Returns the choices that `config_name`.yaml itself makes, {group: choice}."""
    from omegaconf import OmegaConf

    found: dict[str, str | None] = {}
    loaded = OmegaConf.to_container(OmegaConf.load(folder / f"{config_name}.yaml"))
    entries = loaded.get("defaults", []) if isinstance(loaded, dict) else []
    for entry in entries:
        if isinstance(entry, dict):
            for group, choice in entry.items():
                found[str(group).split()[-1].split("@")[0].strip("/")] = choice
    return found


def _check_choice(verb: str, folder: Path, groups: dict[str, list[str]], override: Override) -> None:
    group = override.key_or_group
    heads = {name.split("/")[0] for name in _defaults(folder, verb)}
    if group.split("/")[0] not in heads and not override.is_add() and not override.is_force_add():
        here = f" It has {', '.join(sorted(heads))}." if heads else ""
        cure = "" if verb == "train" else " What the model is stands in the run's folder."
        raise UserError(f"{_line(override)}: nmt.{verb} has no choice '{group}'.{here}{cure}")
    value = override.value()
    if override.is_delete() or value is None:
        return
    for choice in value if isinstance(value, list) else [value]:
        if isinstance(choice, dict):
            raise UserError(f"{group} is a choice of {', '.join(groups[group])}; set its keys one by one.")
        # Hydra reads `on` and `1` as values; a choice is the name of a file.
        if str(choice) not in groups[group]:
            below = [name for name in groups if name.startswith(f"{group}/") and str(choice) in groups[name]]
            if below:
                raise UserError(f"{choice} is a choice of {below[0]}: write {below[0]}={choice}")
            raise UserError(
                f"There is no {group}={choice}.{nearest(str(choice), groups[group])} "
                f"The choices are {', '.join(groups[group])}."
            )


def _check_setting(
    verb: str, folder: Path, groups: dict[str, list[str]], config: DictConfig, override: Override
) -> Any:
    """Returns the value to set, looked up in the configuration that the choices give."""
    from omegaconf import OmegaConf

    key, value = override.key_or_group, override.value()
    tree = OmegaConf.to_container(config, resolve=False)
    default = _look_up(tree, key) if key else _ABSENT
    if isinstance(default, str) and "${" in default:
        default = OmegaConf.select(config, key)
    if default is _ABSENT or (isinstance(default, dict) and key.replace(".", "/") in groups):
        raise UserError(_unknown_key(verb, folder, groups, tree, override))
    return _fit(key, default, value, override.get_value_string())


def _look_up(tree: object, key: str) -> Any:
    for part in key.split("."):
        if isinstance(tree, dict) and part in tree:
            tree = tree[part]
        elif isinstance(tree, list) and part.isdigit() and int(part) < len(tree):
            tree = tree[int(part)]
        else:
            return _ABSENT
    return tree


def _fit(key: str, default: Any, value: Any, written: str) -> Any:
    """Returns `value` if it is of the kind that `default` is, or as that kind where nothing is lost by it."""
    if any(isinstance(side, str) and ("${" in side or side == "???") for side in (default, value)):
        return value
    if key in NULLABLE and value is not None:
        default = NULLABLE[key]() if default is None else NULLABLE[key](default)
    if default is None:
        return value
    if isinstance(default, dict):
        some = ", ".join(f"{key}.{name}" for name in list(default)[:3])
        raise UserError(f"{key} is a group of settings; set them one by one: {some}.")
    if value is None:
        if key in NULLABLE or key.startswith("data."):
            return value
        raise UserError(f"{key} cannot be null; {_expected(key, default)}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        fits = number and math.isfinite(value) and value == int(value)
        value = int(value) if fits else value
    elif isinstance(default, float):
        fits = number and not math.isnan(value)
    elif isinstance(default, list):
        fits = isinstance(value, list)
    else:
        fits = not isinstance(value, list | dict)
        value = value if isinstance(value, str) else written.strip()
    if not fits:
        raise UserError(f"{key}={written}: {_expected(key, default)}")
    return value


def _expected(key: str, default: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (list, "a list, written [a,b]"),
        (str, "one word or text"),
    )
    kind = next(words for type_, words in kinds if isinstance(default, type_))
    if key in NULLABLE:
        return f"{key} takes {kind}, or null."
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"{key} takes {kind} (it is {shown} unless you set it)."


def leaves(tree: object, prefix: str = "") -> dict[str, Any]:
    """Returns {dotted key: value} for everything that is not a mapping with something in it."""
    if isinstance(tree, dict) and (tree or not prefix):
        found: dict[str, Any] = {}
        for name, value in tree.items():
            found |= leaves(value, f"{prefix}.{name}" if prefix else str(name))
        return found
    return {prefix: tree}


def _unknown_key(verb: str, folder: Path, groups: dict[str, list[str]], tree: object, override: Override) -> str:
    """Says what the user may have meant by a key that the configuration does not have."""
    from omegaconf import OmegaConf

    key, written = override.key_or_group, override.get_value_string()
    sweep = folder / "sweep.yaml"
    if verb == "train" and sweep.is_file() and key in OmegaConf.load(sweep):
        return f"{key} is a setting of sweeps: python -m nmt.train -m {key}={written} ..."
    if key.replace(".", "/") in groups:
        return f"{key} is a choice, which is written with a slash: {key.replace('.', '/')}={written}"
    if "/" in key:
        dotted = key.replace("/", ".")
        if _look_up(tree, dotted) is not _ABSENT:
            return f"{key} is a setting, which is written with a dot: {dotted}={written}"
        near = nearest(key, groups, limit=2)
        return f"There is no choice '{key}' in nmt.{verb}.{near} There are {', '.join(groups)}."
    owners = []
    for group, choices in groups.items():
        rest = key.removeprefix(group.replace("/", ".") + ".")
        if rest != key:
            for choice in choices:
                content = OmegaConf.to_container(OmegaConf.load(folder / group / f"{choice}.yaml"), resolve=False)
                if _look_up(content, rest) is not _ABSENT:
                    owners.append(f"{group}={choice}")
    if owners:
        return f"{key} is a setting of {' or '.join(owners)}, which this command does not choose: add it."
    names = list(dict.fromkeys([*leaves(tree), *_of_choices(folder, groups, tree)]))
    alike = [group for group in groups if group.split("/")[-1] == key]
    if alike:
        return f"{key} is a choice with a longer name: {alike[0]}={written}"
    same_end = [name for name in names if name.split(".")[-1] == key.split(".")[-1]]
    if same_end:
        near = f" Did you mean {' or '.join(repr(name) for name in same_end[:3])}?"
    else:
        near = nearest(key, [*names, *groups], limit=2)
    return f"There is no setting '{key}' in nmt.{verb}.{near} python -m nmt.{verb} --cfg prints them all."


def _of_choices(folder: Path, groups: dict[str, list[str]], tree: object) -> Iterator[str]:
    """The settings of every choice that the command has, chosen or not."""
    from omegaconf import OmegaConf

    for group, choices in groups.items():
        if isinstance(tree, dict) and group.split("/")[0] in tree:
            for choice in choices:
                content = OmegaConf.to_container(OmegaConf.load(folder / group / f"{choice}.yaml"), resolve=False)
                known = leaves(content) if isinstance(content, dict) else ()
                yield from (
                    f"{group.replace('/', '.')}.{name}" for name in known if not name.startswith(("_", "defaults"))
                )


def _in_our_words(verb: str, message: str) -> str:
    """Returns what Hydra or OmegaConf said, less its advice to add the key by force."""
    missing = re.search(r"Could not override '([^']+)'\.\s*No match in the defaults list", message)
    if missing:
        return (
            f"{missing[1]} has nothing to choose in this command: another choice on the line does without. "
            f"python -m nmt.{verb} --cfg prints what there is."
        )
    lines = [line.strip() for line in message.splitlines()]
    kept = [
        line for line in lines if line and not re.match(r"(To append|See https|Set the env|full_key|object_type)", line)
    ]
    return "The configuration cannot be put together: " + " ".join(kept)


def resolved(config: DictConfig) -> DictConfig:
    """Returns the configuration with every interpolation replaced by its value, to be saved and loaded again.

    A `${` that belongs to a text (a file may be called so) is still that text after loading.
    """
    from omegaconf import DictConfig, OmegaConf

    def literal(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: literal(value) for key, value in node.items()}
        if isinstance(node, list):
            return [literal(value) for value in node]
        return _literal(node) if isinstance(node, str) else node

    return DictConfig(literal(OmegaConf.to_container(config, resolve=True)))


# ------------------------------------------------------------------------------------------------------------
# Resuming
# ------------------------------------------------------------------------------------------------------------


def merge_for_resume(
    saved: DictConfig, saved_overrides: Sequence[str], overrides: Sequence[str], config_name: str = "train"
) -> DictConfig:
    """Returns the saved configuration with what this command line changes, where a resumed run may change it.

    What the line changes is the difference that `overrides` make to the composition of `saved_overrides`;
    asking for what the saved configuration says already is no difference. Budget, cadence, workers, device
    and the run's own name and place may change (ALLOWED_ON_RESUME).

    Raises:
        UserError: any other difference, each listed as key, saved value and asked value.
    """
    from omegaconf import OmegaConf

    def unresolved(config: DictConfig) -> dict[str, Any]:
        # A value that follows from another one (`${trainer.steps}`) is no difference of its own.
        return leaves(OmegaConf.to_container(config, resolve=False))

    named = {_parse(config_name, override).key_or_group for override in overrides}
    kept = [line for line in saved_overrides if _parse(config_name, line).key_or_group not in named]
    before = unresolved(compose(config_name, saved_overrides))
    try:
        asked = unresolved(compose(config_name, [*kept, *overrides]))
    except UserError as error:
        raise UserError(f"A resumed run keeps what it is, and this command does not fit it. {error}") from error
    was = unresolved(saved)
    # What the line names counts even where the compositions agree: advice may have told the run otherwise.
    touched = [
        key
        for key in dict.fromkeys([*before, *asked])
        if key in named or before.get(key, _ABSENT) != asked.get(key, _ABSENT)
    ]
    changes = [key for key in touched if was.get(key, _ABSENT) != asked.get(key, _ABSENT)]
    refused = [key for key in changes if key not in ALLOWED_ON_RESUME]
    if refused:

        def shown(values: dict[str, Any], key: str) -> str:
            return str(values[key]) if key in values else "(not there)"

        lines = [f"  {key}: {shown(was, key)} -> {shown(asked, key)}" for key in refused]
        raise UserError(
            "A resumed run keeps what it is. This command would change\n"
            + "\n".join(lines)
            + "\nLeave these out to resume, or train anew under another name=. "
            "Budget (trainer.steps, .epochs, .minutes), cadence, workers and device may change."
        )
    merged = saved.copy()
    OmegaConf.set_struct(merged, False)
    for key in changes:
        OmegaConf.update(merged, key, asked.get(key))
    OmegaConf.set_struct(merged, True)
    return merged


# ------------------------------------------------------------------------------------------------------------
# A verb, from its command line to its exit status
# ------------------------------------------------------------------------------------------------------------


def main(
    verb: str,
    action: Callable[[DictConfig, list[str]], int | None],
    arguments: Sequence[str] | None = None,
    sweep: Callable[[list[str]], int] | None = None,
) -> int:
    """Runs `action(configuration, quoted overrides)` for a command line, and returns the exit status.

    With `-m` (Hydra's `--multirun`) among the words, `sweep(the other words)` runs instead, in a verb that has one.

    Mistakes of the user and failures of the machine are one message on standard error and status 1; a reader
    that has had enough (`| head`) ends quietly with 0; Ctrl-C is 130, SIGTERM 143. Nothing is written to
    standard output but what `action` writes, or what --help, --version and --cfg ask for.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this (>&-): print would take the other one
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    try:
        with _cleaning_up():
            status = _run(verb, action, words, sweep)
        sys.stdout.flush()
    except _Terminated:
        _drop_output()
        return _failed(verb, "terminated", 143)
    except UserError as error:
        return _failed(verb, str(error))
    except KeyboardInterrupt:
        _drop_output()
        return _failed(verb, "interrupted", 130)
    except BrokenPipeError:
        _drop_output()
        return 0
    except MemoryError:
        _drop_output()
        return _failed(verb, "there is not enough memory. Give smaller batches, a smaller model or shorter lines.")
    except OSError as error:
        if error.errno not in _CURABLE:
            raise
        _drop_output()
        where = f" ({error.filename})" if error.filename else ""
        cure = " Free some space and send the command again." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return _failed(verb, f"{error.strerror}{where}.{cure}")
    return status


class _Terminated(BaseException):
    """SIGTERM came."""


@contextlib.contextmanager
def _cleaning_up() -> Iterator[None]:
    """Makes SIGTERM unwind the program, so that half-written files are taken away."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        raise _Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: whoever is decides what a signal means
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(
    verb: str,
    action: Callable[[DictConfig, list[str]], int | None],
    words: list[str],
    sweep: Callable[[list[str]], int] | None,
) -> int:
    from nmt import __version__

    if "--help" in words or "-h" in words:
        print(help_text(verb))
        return 0
    if "--version" in words:
        print(f"nmt {__version__}")
        return 0
    if any(word in MULTIRUN for word in words):
        if sweep is None:
            raise UserError(f"nmt.{verb} does one thing at a time: -m is for nmt.train.")
        return sweep([word for word in words if word not in MULTIRUN])
    show = next((word for word in words if word in ("--cfg", "-c", "--cfg=job")), None)
    if show is not None:
        at = words.index(show)
        # Hydra's own spelling is `--cfg job`.
        words = words[:at] + words[at + (2 if words[at + 1 : at + 2] == ["job"] else 1) :]
    from omegaconf import OmegaConf

    overrides = quote(words)
    config = compose(verb, overrides)
    if show is not None:
        print(OmegaConf.to_yaml(config), end="")
        return 0
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        example = EXAMPLES[verb][0].partition(" #")[0].strip() if verb in EXAMPLES else f"nmt.{verb} --help"
        raise UserError(f"{' and '.join(f'{key}=' for key in missing)} must be given. For example: {example}")
    return action(config, overrides) or 0


def _failed(verb: str, message: str, status: int = 1) -> int:
    with contextlib.suppress(OSError):
        print(f"nmt.{verb}: {message}", file=sys.stderr, flush=True)
    return status


def _drop_output() -> None:
    """Lets what is still buffered for standard output go nowhere, so that the last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def help_text(verb: str) -> str:
    """Returns what `--help` prints: what the verb's yaml says, and the choices in the folders beside it."""
    folder = config_folder()
    text = (folder / f"{verb}.yaml").read_text(encoding="utf-8")
    summary = " ".join(line[1:].strip() for line in _head(text))
    defaults = _defaults(folder, verb)
    heads = {name.split("/")[0] for name in defaults}
    groups = {group: choices for group, choices in _groups(folder).items() if group.split("/")[0] in heads}
    width = max((len(group) for group in groups), default=0)
    sweep = folder / "sweep.yaml"
    several = verb == "train" and sweep.is_file()
    options = f"[key=value ...]{' [-m]' if several else ''} [--cfg] [--version] [--help]"
    lines = [f"usage: python -m nmt.{verb} {options}", "", summary, ""]
    lines += ["examples:", *(f"  {example}" for example in EXAMPLES.get(verb, ())), ""]
    if groups:
        lines.append("choices, one of each (GROUP=CHOICE; * what it is unless you choose):")
        for group, choices in groups.items():
            default = defaults.get(group, _nested_default(folder, group))
            names = " ".join(f"{choice}*" if choice == default else choice for choice in choices)
            lines.append(f"  {group:{width}}  {names}")
        for group in groups.keys() & ALIASES.keys():
            also = ", ".join(f"{alias} = {choice}" for alias, choice in ALIASES[group].items())
            lines.append(f"  {group} also answers to {also}.")
        lines.append("")
    settings = [line for line in _settings(text) if line.strip()]
    if settings:
        lines += [
            "settings (KEY=VALUE, nested ones with a dot: model.dropout=0.2):",
            *(f"  {line}" for line in settings),
        ]
        lines.append("")
    if several:
        text = sweep.read_text(encoding="utf-8")
        lines += [*(line[1:].strip() for line in _head(text)), *(f"  {line}" for line in _settings(text) if line)]
        lines.append("")
    lines.append(f"Each choice has settings of its own: python -m nmt.{verb} --cfg prints them all, with this line's")
    lines.append("choices and values; null means none. Settings may stand in any order.")
    return "\n".join(lines)


def _head(text: str) -> list[str]:
    """Returns the comment lines that a yaml file opens with."""
    head = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            head.append(line)
    return head


def _settings(text: str) -> list[str]:
    """Returns the lines of a yaml file after its head and its defaults list."""
    lines = text.splitlines()[len(_head(text)) :]
    kept, in_defaults = [], False
    for line in lines:
        if line.startswith("defaults:"):
            in_defaults = True
        elif in_defaults and (line.startswith((" ", "-")) or not line.strip()):
            continue
        elif not line.startswith("hydra:"):
            in_defaults = False
            kept.append(line)
    return kept


def _nested_default(folder: Path, group: str) -> str | None:
    """Returns what the files of the group above choose in `group`, if they agree."""
    above, _, name = group.rpartition("/")
    found = {
        _defaults(folder, path.relative_to(folder).with_suffix("").as_posix()).get(name)
        for path in sorted((folder / above).glob("*.yaml"))
        if above
    }
    found.discard(None)
    return found.pop() if len(found) == 1 else None
