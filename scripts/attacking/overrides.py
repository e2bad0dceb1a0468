"""Words of a command line that somebody mistypes: keys and values from all over, changed at random."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from attacking.victim import Result, said
from nmt.config.composition import compose
from nmt.config.configuration import config_folder, flattened, groups_of

#: Values of all kinds: numbers at and beyond limits, what is empty, other types, syntax of Hydra, paths, controls.
VALUES = (
    *("0", "-1", "1", "1e4", "1e999", "0.5", "nan", "inf", "-0", "9" * 40, "1_000", "0x10", "true", "null", "None"),
    *("", "[]", "{}", "[1,2]", "{a:1}", "[[]]", "[", "}", "'", '"', "\\", "${oc.env:HOME}", "${x}", "???", "a,b", "*"),
    *("dot", "transformer", "gru", "=", "a=b", "../..", "/dev/null", "~", "é", "你好"),
    *("\x1b[31m", "\u202e", "\x00", " "),
)


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Give `nmt.train` one or two such words; it is to print its settings, or to refuse them in one line."""
    del folder
    generator, result = random.Random(seed), Result("words of a command line")
    settings = flattened(cast("dict[str, Any]", OmegaConf.to_container(compose("train", []), resolve=True)))
    keys = [*settings, *groups_of(config_folder())]
    for number in range(count):
        words = [_word(generator, keys, settings) for _ in range(generator.randint(1, 2))]
        ended = said("train", *words, "--cfg")
        message = ended.errors.strip()
        if ended.traceback or (ended.status and (not message or ended.status != 1)):
            result.fail(f"{number}, {words!r}: status {ended.status}, {ended.traceback or ended.errors}")
        else:
            result.add("refused" if ended.status else "accepted")
    return [result]


def _word(generator: random.Random, keys: Sequence[str], settings: dict[str, object]) -> str:
    """A key and a value, of which one, both or none is changed."""
    key = generator.choice(keys)
    usual = settings.get(key, "default")
    value = generator.choice(VALUES) if generator.random() < 0.3 else "null" if usual is None else str(usual)
    if generator.random() < 0.1:
        at = generator.randrange(len(key))
        key = key[:at] + generator.choice(("", "/", ".", "@", "+", "~", "x", key[at] * 2)) + key[at + 1 :]
    return generator.choice((*[f"{key}={value}"] * 17, f"+{key}={value}", f"~{key}", key))
