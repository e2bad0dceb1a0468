"""What a user types arrives as meant."""

import os
import subprocess
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from nmt.config.composition import compose
from nmt.config.configuration import resolved
from nmt.config.quotes import quote, shell_word
from nmt.system.errors import UserError
from nmt.system.terminal import visible
from tests.config.tree import train

# What Hydra's and OmegaConf's grammars, or YAML, might take for something else.
AWKWARD = "ab1 .,=#~&()[]{}'\"\\$:;!%@?|*/\n\t-_+数ß\u202e\udcff"


@pytest.mark.parametrize(
    "word", ["it's a", "\x1b5'\\x1b[2J", "\u202egpj\n", "\x9d0;\x9c \\", "数\x07数$HOME\x1b", "\udcff"]
)
def test_a_shell_gets_the_word_and_a_terminal_nothing_to_obey(word: str) -> None:
    quoted = shell_word(word)
    assert visible(quoted) == quoted
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    command = ["bash", "-c", f"printf %s {quoted}"]
    assert subprocess.run(command, capture_output=True, check=True, env=environment).stdout == os.fsencode(word)


def in_quotes(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] and text[0] in "'\""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(text=st.text(alphabet=st.sampled_from(AWKWARD), max_size=12) | st.text(max_size=12))
def test_any_text_survives_the_grammars(text: str) -> None:
    if in_quotes(text) or text in ("null", "???"):
        return  # these have a meaning of their own
    (quoted,) = quote([f"name={text}"])
    assert quote([quoted]) == [quoted]
    value = OverridesParser.create().parse_override(quoted).value()
    assert OmegaConf.create({"name": value}).name == text


@pytest.mark.parametrize(
    "text",
    ["a b=c [1] (2) #3 & ~ 'x' \"y\".txt", "${oc.env:HOME}", "\\${x}\\\\", "1e3", "no", "a\\'", "[half", "数据 ß.txt"],
)
def test_any_text_arrives_in_path_keys(text: str) -> None:
    assert train(f"name={text}", f"data.source={text}", f"cache={text}").data.source == text
    config = compose("translate", quote([f"input={text}", f"run={text}"]))
    assert (config.input, config.run) == (text, text)
    # Saved and loaded again, with interpolations and without them.
    assert OmegaConf.create(OmegaConf.to_yaml(config)).input == text
    assert OmegaConf.create(OmegaConf.to_yaml(resolved(config))).input == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(
    items=st.lists(
        st.text(alphabet="a1 .=#()[]{}\"'\\$数", min_size=1, max_size=8).filter(
            lambda item: item == item.strip() and item[0] not in "'\""
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_texts_arrive_in_a_list(items: list[str]) -> None:
    (quoted,) = quote([f"run=[{','.join(items)}]"])
    assert quote([quoted]) == [quoted]
    assert list(OmegaConf.create({"run": OverridesParser.create().parse_override(quoted).value()}).run) == items


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("run=[a b.txt,c.txt]", ["a b.txt", "c.txt"]),
        ("run=['a,b.txt',c.txt]", ["a,b.txt", "c.txt"]),
        ("run=[it's.txt, it's too.txt]", ["it's.txt", "it's too.txt"]),
        ("run=a,b", ["a", "b"]),
        ("run=checkpoints/seed=1", "checkpoints/seed=1"),
        ("run='already quoted, [kept]'", "already quoted, [kept]"),
        ("run=[]", []),
        ("run=null", None),
    ],
)
def test_lists_are_split_at_commas_outside_quotes(word: str, value: object) -> None:
    run = compose("translate", quote([word])).run
    assert (OmegaConf.to_container(run) if OmegaConf.is_config(run) else run) == value


@pytest.mark.parametrize("name", ["[a,b]", "x,y", "[1]", "'quoted'", "~"])
def test_a_file_that_is_there_is_meant(name: str) -> None:
    Path(name).mkdir()
    assert compose("translate", quote([f"run={name}"])).run == name


def test_a_comma_in_the_name_of_a_file_that_is_there_separates_nothing() -> None:
    for name in ("test,old.de", "a,b.txt"):
        Path(name).touch()
    assert train("data=text", "data.test=test,old").data.test == "test,old"
    assert list(train("data=text", "data.test=test,new").data.test) == ["test", "new"]
    assert list(train("data.files=[a,b.txt,c.txt]").data.files) == ["a,b.txt", "c.txt"]


def test_the_home_folder_is_expanded_in_paths_only() -> None:
    assert compose("translate", quote(["input=~/x y.txt"])).input == os.path.expanduser("~/x y.txt")
    assert train("name=~/x").name == "~/x"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["name=???"], r"name=\./\?\?\?"),
        (["data.files=[german.txt,", "english.txt]"], "a bracket is missing"),
        (["run=[a,,b]"], "empty item"),
    ],
)
def test_what_cannot_be_quoted_is_refused(line: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        quote(line)
