"""The command line: what a user types arrives as meant, and what a user mistypes is answered in one line."""

import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError

from nmt import cli
from nmt.cli import compose, main, merge_for_resume, quote, resolved
from nmt.errors import UserError
from nmt.runs import shown

TREE = {
    "train.yaml": """\
        # python -m nmt.train: everything of a training run.
        defaults:
          - data: builtin
          - encoder: gru
          - attention: default
          - trainer: default
          - experiment: null
          - _self_

        name: null            # the run's folder
        resume: false         # go on
        seed: 1
        device: auto
        precision: auto
        checkpoints: checkpoints
        cache: data/cache
        twice: ${encoder.size}
        model:
          dropout: 0.3
        """,
    "translate.yaml": """\
        # python -m nmt.translate: sentences in, translations out.
        defaults:
          - search: beam
          - _self_
        run: ???
        input: null
        output: null
        """,
    "data/builtin.yaml": "source: en\ntarget: de\nseed: 17\n",
    "data/files.yaml": "files: null\nsource: null\ntarget: null\n",
    "data/text.yaml": "root: null\nsource: null\ntarget: null\ntrain: null\nvalid: null\ntest: null\n",
    "encoder/gru.yaml": "size: 256\nlayers: 1\nbidirectional: true\n",
    "encoder/lstm.yaml": "size: 256\nlayers: 1\nbidirectional: true\nforget_bias: 1.0\n",
    "attention/default.yaml": "defaults:\n  - score: additive\n  - _self_\nheads: 1\ndropout: 0.0\n",
    "attention/score/additive.yaml": "_target_: a\n",
    "attention/score/dot.yaml": "_target_: b\n",
    "attention/score/scaled_dot.yaml": "_target_: c\n",
    "trainer/default.yaml": "steps: null\nepochs: 30\nminutes: null\nwarmup: [1, 2]\n",
    "trainer/long.yaml": "steps: null\nepochs: 90\nminutes: null\nwarmup: [1, 2]\n",
    "search/beam.yaml": "beam_size: 5\nlength_penalty: 1.0\n",
    "experiment/luong.yaml": "# @package _global_\nencoder:\n  size: 1000\n",
}


@pytest.fixture(autouse=True)
def tree(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small configuration tree with every kind of node, and an empty folder to stand in."""
    folder = tmp_path_factory.mktemp("tree")
    for name, text in TREE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.setattr(cli, "config_folder", lambda: folder)
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    return folder


def train(*words: str) -> DictConfig:
    return compose("train", quote(words))


def refusal(*words: str, verb: str = "train") -> str:
    with pytest.raises(UserError) as caught:
        compose(verb, quote(words))
    return str(caught.value)


# Values arrive as typed


# What Hydra's and OmegaConf's grammars, or YAML, might take for something else.
AWKWARD = "ab1 .,=#~&()[]{}'\"\\$:;!%@?|*/\n\t-_+数ß\u202e\udcff"


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
    [
        "a b=c [1] (2) #3 & ~ 'x' \"y\".txt",
        "${oc.env:HOME}",
        "\\${x}\\\\",
        "${",
        "1e3",
        "no",
        "true",
        "a\\'",
        "[half",
        "数据 ß.txt",
    ],
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


def test_a_shown_command_can_be_pasted() -> None:
    assert shlex.split(shown("name", "it is [1] $(x)")) == ["name=it is [1] $(x)"]


def test_a_resolved_configuration_has_no_interpolations() -> None:
    saved = OmegaConf.to_yaml(resolved(train("encoder.size=64")))
    assert "twice: 64\n" in saved
    assert "$" not in saved


@pytest.mark.parametrize("name", ["[a,b]", "x,y", "[1]", "'quoted'", "~"])
def test_a_file_that_is_there_is_meant(name: str) -> None:
    Path(name).mkdir()
    assert compose("translate", quote([f"run={name}"])).run == name


def test_a_prefix_of_files_that_are_there_is_meant() -> None:
    Path("test,old.de").touch()
    assert train("data=text", "data.test=test,old").data.test == "test,old"
    assert list(train("data=text", "data.test=test,new").data.test) == ["test", "new"]


def test_a_file_name_with_a_comma_is_one_item_of_a_list() -> None:
    Path("a,b.txt").touch()
    assert list(train("data.files=[a,b.txt,c.txt]").data.files) == ["a,b.txt", "c.txt"]


def test_the_home_folder_is_expanded_in_paths_only() -> None:
    assert compose("translate", quote(["input=~/x y.txt"])).input == os.path.expanduser("~/x y.txt")
    assert train("name=~/x").name == "~/x"


def test_the_word_for_missing_is_refused() -> None:
    with pytest.raises(UserError, match=r"name=\./\?\?\?"):
        quote(["name=???"])


def test_a_list_that_the_shell_took_apart_is_refused() -> None:
    with pytest.raises(UserError, match="not closed"):
        quote(["data.files=[german.txt,", "english.txt]"])


def test_an_empty_place_in_a_list_is_refused() -> None:
    with pytest.raises(UserError, match="empty place"):
        quote(["run=[a,,b]"])


def test_kinds_are_those_of_the_defaults() -> None:
    config = train("name=001", "data.source=no", "seed=1e3", "model.dropout=0", "precision=32", "trainer.epochs=null")
    assert (config.name, config.data.source, config.precision) == ("001", "no", "32")
    assert config.seed == 1000
    assert type(config.seed) is int
    assert config.model.dropout == 0
    assert config.trainer.epochs is None


def test_files_of_ones_own_need_no_data_choice() -> None:
    assert list(train("data.files=[a.de,b.en]").data.files) == ["a.de", "b.en"]
    assert train("data.files=a.tsv", "data=files").data.files == "a.tsv"


def test_choices_presets_and_additions_reach_hydra() -> None:
    config = train("encoder=lstm", "attention/score=dot", "experiment=luong", "+extra=1")
    assert config.attention.score._target_ == "b"
    assert config.encoder.forget_bias == 1.0
    assert (config.encoder.size, config.twice, config.extra) == (1000, 1000, 1)


def test_a_composed_configuration_has_no_other_keys() -> None:
    with pytest.raises(ConfigAttributeError):
        _ = train().nmae


# Mistakes


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        (
            "attention/score=aditive",
            ["There is no attention/score=aditive", "'additive'", "additive, dot, scaled_dot"],
        ),
        ("atention/score=dot", ["atention/score", "'attention/score'"]),
        ("encdoer=lstm", ["'encdoer'", "'encoder'"]),
        ("encoder.szie=3", ["'encoder.szie'", "'encoder.size'"]),
        ("trainer.stpes=3", ["'trainer.stpes'", "'trainer.steps'"]),
        ("epochs=3", ["'epochs'", "'trainer.epochs'"]),
        ("attention.score=dot", ["written with a slash", "attention/score=dot"]),
        ("encoder/size=3", ["written with a dot", "encoder.size=3"]),
        ("encoder.forget_bias=2", ["a setting of encoder=lstm"]),
        ("data.train=x", ["a setting of data=text"]),
        ("encoder.size=abc", ["encoder.size=abc", "a whole number", "256"]),
        ("encoder.size=2.5", ["a whole number"]),
        ("encoder.size=true", ["a whole number"]),
        ("encoder.size=null", ["cannot be null", "a whole number"]),
        ("encoder.bidirectional=yes", ["true or false"]),
        ("model.dropout=high", ["model.dropout", "a number"]),
        ("model.dropout=nan", ["a number"]),
        ("device=[cuda]", ["one word or text"]),
        ("trainer.warmup=3", ["a list"]),
        ("model=3", ["a group of settings", "model.dropout"]),
        ("encoder.size=3,4", ["several values"]),
        ("encoder.size=[3", ["cannot be read", "quote"]),
        ("device=größe", ["cannot be read", "device='größe'"]),
        ("search=beam", ["no choice 'search'"]),
        ("seed = 3", ["spaces"]),
        ("--seed=3", ["without dashes: seed=3"]),
        ("--seed", ["no option of nmt.train", "seed=VALUE"]),
        ("=", ["without spaces"]),
        ("resume", ["'resume' needs a value", "resume=VALUE"]),
        ("~encoder", ["takes away", "encoder=null"]),
        ("~model.dropout", ["takes away"]),
        ("reusme", ["key=value", "'resume'"]),
        ("twice=abc", ["a whole number", "256"]),
        ("+seed=3", ["seed"]),
        ("seed=${nowhere}", ["cannot be put together", "nowhere"]),
    ],
)
def test_a_mistake_is_named_with_its_cure(word: str, parts: list[str]) -> None:
    message = refusal(word)
    for part in parts:
        assert part in message
    assert "+encoder" not in message
    assert "hydra" not in message.lower()


def test_a_bare_path_is_recognised() -> None:
    Path("text.de").touch()
    Path("model").mkdir()
    assert "data.files=" in refusal("text.de")
    assert "run=model" in refusal("model", verb="translate")
    assert "input=text.de" in refusal("text.de", verb="translate")


def test_the_model_is_not_chosen_when_translating() -> None:
    message = refusal("encoder=lstm", verb="translate")
    assert "nmt.translate has no choice 'encoder'" in message
    assert "run's folder" in message


# Resuming


def test_budget_and_place_may_change_on_resuming() -> None:
    first = quote(["name=a b", "data.files=[x y.de,z.en]", "trainer.epochs=3"])
    saved = compose("train", first)
    merged = merge_for_resume(saved, first, quote(["name=a b", "resume=true", "trainer.epochs=9", "device=cpu"]))
    assert (merged.trainer.epochs, merged.device, merged.resume) == (9, "cpu", True)
    assert list(merged.data.files) == ["x y.de", "z.en"]
    assert (saved.trainer.epochs, saved.device, saved.resume) == (3, "auto", False)


def test_every_other_difference_is_listed() -> None:
    first = quote(["encoder.size=64"])
    with pytest.raises(UserError) as caught:
        merge_for_resume(compose("train", first), first, ["encoder=lstm", "seed=2", "trainer=long", "encoder.size=32"])
    message = str(caught.value)
    assert "encoder.size: 64 -> 32" in message
    assert "encoder.forget_bias: (not there) -> 1.0" in message
    assert "seed: 1 -> 2" in message
    assert "trainer" not in message.split("Leave")[0]
    assert "name=" in message
    assert "twice" not in message


def test_what_the_saved_run_says_already_is_no_difference() -> None:
    saved = compose("train", ["encoder.size=64"])
    # The saved run got its size from advice, not from its command line.
    assert merge_for_resume(saved, [], ["encoder.size=64"]) == saved
    with pytest.raises(UserError, match=r"encoder\.size: 64 -> 256"):
        merge_for_resume(saved, [], ["encoder.size=256"])
    assert merge_for_resume(saved, [], ["trainer.minutes=5"]).encoder.size == 64


def test_a_line_that_does_not_fit_the_run_is_refused() -> None:
    first = quote(["data.files=[a,b]"])
    with pytest.raises(UserError, match=r"keeps what it is.*data\.files"):
        merge_for_resume(compose("train", first), first, ["data=text"])


def test_an_added_key_can_be_added_again() -> None:
    saved = compose("train", ["+extra=1"])
    assert merge_for_resume(saved, ["+extra=1"], ["+extra=1"]).extra == 1


# Exit status and streams


def answer(config: DictConfig, overrides: list[str]) -> int:
    print(config.name, overrides)
    return 3


def raiser(error: BaseException) -> Callable[[DictConfig, list[str]], None]:
    def action(config: DictConfig, overrides: list[str]) -> None:
        del config, overrides
        raise error

    return action


def test_the_action_gets_the_configuration_and_the_overrides(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("train", answer, ["name=a b"]) == 3
    assert capfd.readouterr() == ("a b [\"name='a b'\"]\n", "")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UserError("no such thing"), 1, "nmt.train: no such thing\n"),
        (KeyboardInterrupt(), 130, "nmt.train: interrupted\n"),
        (PermissionError(13, "Permission denied", "f.txt"), 1, "nmt.train: Permission denied (f.txt).\n"),
        (OSError(28, "No space left on device"), 1, "nmt.train: No space left on device. Free some space"),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
    ],
)
def test_a_failure_is_one_message(
    error: BaseException,
    status: int,
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    assert main("train", raiser(error), []) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


def test_what_must_be_given_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("translate", answer, ["input=x"]) == 1
    assert capfd.readouterr().err.startswith("nmt.translate: run= must be given. For example: python -m nmt.translate")


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        main("train", raiser(ZeroDivisionError()), [])


def test_help_names_choices_and_settings(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("train", answer, ["--help"]) == 0
    out = capfd.readouterr().out
    for part in ("everything of a training run", "attention/score", "additive* dot scaled_dot", "gru* lstm"):
        assert part in out
    assert "name: null            # the run's folder" in out
    assert "data.files=[german.txt,english.txt]" in out
    assert "search" not in out
    assert "defaults" not in out


def test_cfg_prints_the_configuration(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("train", answer, ["--cfg", "job", "encoder.size=64"]) == 0
    assert OmegaConf.create(capfd.readouterr().out).encoder.size == 64
    assert main("train", answer, ["--version"]) == 0
    assert capfd.readouterr().out.startswith("nmt ")


PROGRAM = """
import sys
from pathlib import Path
from nmt import cli
cli.config_folder = lambda: Path({folder!r})
def action(config, overrides):
    for number in range(100_000):
        print(number)
status = cli.main("train", action, sys.argv[1:])
assert "torch" not in sys.modules
sys.exit(status)
"""


def run_program(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(folder=str(folder))
    return subprocess.run(
        ["bash", "-c", command, "bash", sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_stops_ends_it_quietly(tree: Path) -> None:
    done = run_program(tree, '"$1" -c "$2" | head -n 1; echo ${PIPESTATUS[0]}')
    assert (done.stdout, done.stderr) == ("0\n0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said(tree: Path) -> None:
    done = run_program(tree, '"$1" -c "$2" > /dev/full')
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_imports_no_torch(tree: Path) -> None:
    done = run_program(tree, '"$1" -c "$2" --help')
    assert (done.returncode, done.stderr) == (0, "")
