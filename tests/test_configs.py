"""Every yaml composes, builds and runs one step of training, found through its folder."""

import functools
import itertools
import math
import re
import shlex
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from nmt.build.parts import (
    assemble,
    build_model,
    build_optimizer,
    build_schedule,
    build_search,
    build_source,
    build_tokenizer_trainer,
    build_trainer,
)
from nmt.config.composition import compose
from nmt.config.configuration import groups_of
from nmt.config.help_text import help_text
from nmt.config.keys import aliases_of
from nmt.config.quotes import quote
from nmt.config.resumption import merge_for_resume
from nmt.data.batch import make_batch
from nmt.data.dataset import DataSource
from nmt.data.document_lines import context_tensor
from nmt.system.errors import UserError
from nmt.text.tokenizer import Tokenizer
from nmt.training.loss import batch_loss
from nmt.translation.request import requests_of
from nmt.translation.translator import Translator
from tests.catalogue import (
    ATTENTIVE,
    CONFIGS,
    DECODERS,
    NORMALISERS,
    READS,
    SCORES,
    SMALL,
    WINDOWED,
    WIRED_READOUTS,
    has_setting,
    options,
    small,
    thinned,
)
from tests.small import pairs, write_text

USUAL = {"global", "softmax", "soft", "relative"}  # the last one is of self-attention: encoder/positions=relative
GROUPS = sorted({path.parent.relative_to(CONFIGS).as_posix() for path in Path(CONFIGS).rglob("*.yaml")} - {"."})
ROWS = pairs(80)
ENCODERS, OPTIMIZERS, SCHEDULES = options("encoder"), options("optimizer"), options("schedule")
TOKENIZERS, SEARCHES, TRAINERS = options("tokenizer"), options("search"), options("trainer")


@functools.cache
def tokenizer(choice: str) -> Tokenizer:
    config = compose("train", [f"tokenizer={choice}", "tokenizer.vocabulary_size=320"])
    source, target = zip(*ROWS, strict=True)
    return build_tokenizer_trainer(config).train(source, target)[0]


def one_step(*overrides: str, kind: str = "unigram") -> None:
    """Composes a configuration, builds all that it names, trains one step and translates two sentences."""
    config = compose("train", small(f"tokenizer={kind}", "tokenizer.vocabulary_size=320", *overrides))
    words = tokenizer(kind)
    trainer, schedule = build_trainer(config), build_schedule(config)
    model = build_model(config, words).train()
    optimizer = build_optimizer(config, model)
    source, target = words.source.encode(["rot", "eins zwei drei"]), words.target.encode(["red", "one two three"])
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    batch, contexts = make_batch(source, target), [["blau"], ["rot eins", "haus"]][: 2 * (model.context_sentences > 0)]
    if contexts:
        batch = batch._replace(context=context_tensor([words.source.encode(lines) for lines in contexts]))
    loss = batch_loss(model, batch, trainer.label_smoothing, trainer.scheduled_sampling)
    assert math.isfinite(loss.total.item())
    assert loss.tokens == sum(map(len, target)) + 2
    (loss.total / loss.tokens).backward()
    silent = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert silent == [], "every parameter takes part"
    for group in optimizer.param_groups:
        group["lr"] *= schedule.factor(9, 0.5) if schedule.factor(9, 0.5) else 1
    optimizer.step()
    assert any(not parameter.equal(before[name]) for name, parameter in model.named_parameters())
    translator = Translator([model], words, build_search(config.search), extra_length=3, length_ratio=1)
    found = list(translator.translate(requests_of(["rot", "eins zwei drei"], contexts)))
    assert len(found) == 2
    for best, *_ in found:
        assert (best.weights is None) == (not model.decoder.heads)
        if best.weights is not None:
            assert best.weights.shape == (len(model.decoder.heads), len(best.pieces), len(best.source_pieces))


@pytest.mark.parametrize("part", [*(f"score={own}" for own in SCORES), *(f"normaliser={own}" for own in NORMALISERS)])
@pytest.mark.parametrize("wiring", thinned(ATTENTIVE, 2))
def test_every_score_and_normaliser_in_every_wiring(wiring: str, part: str) -> None:
    one_step(f"decoder={wiring}", f"attention/{part}")


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_every_normaliser_in_self_attention_and_context(normaliser: str) -> None:
    one_step(
        *("encoder=transformer", f"encoder/normaliser={normaliser}"),
        *("decoder=transformer", f"decoder/normaliser={normaliser}"),
        *("context=hierarchical", "context.sentences=2"),
        *(f"context/word_attention/normaliser={normaliser}", f"context/sentence_attention/normaliser={normaliser}"),
    )


@pytest.mark.parametrize(("wiring", "readout"), WIRED_READOUTS)
def test_every_readout_in_every_wiring(wiring: str, readout: str) -> None:
    one_step(f"decoder={wiring}", f"decoder/readout={readout}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("wiring", "window", "read"),
    list(itertools.product(ATTENTIVE, WINDOWED, READS)),
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_every_window_and_read_in_every_wiring(wiring: str, window: tuple[str, ...], read: str) -> None:
    one_step(f"decoder={wiring}", *window, f"attention/read={read}")


@pytest.mark.long
@pytest.mark.parametrize(("encoder", "wiring"), list(itertools.product(ENCODERS, DECODERS)))
def test_every_encoder_in_every_wiring(encoder: str, wiring: str) -> None:
    layers = ["encoder.layers=2"] if has_setting("encoder", encoder, "layers") else []
    layers = ["encoder.first.layers=2", "encoder.then.layers=2"] if encoder == "stacked" else layers
    one_step(f"encoder={encoder}", f"decoder={wiring}", *layers, "decoder.layers=2")


@pytest.mark.long
@pytest.mark.parametrize(
    ("context", "encoder", "wiring"), list(itertools.product(options("context"), ENCODERS, DECODERS))
)
def test_every_context_in_every_wiring(context: str, encoder: str, wiring: str) -> None:
    positions = ["encoder/positions=relative"] if (context, encoder) == ("segments", "transformer") else []
    refusal = f"context={context} changes what the decoder attends to, and decoder=none" if wiring == "none" else ""
    refusal = "" if context == "concat" else refusal
    if (context, encoder) == ("segments", "stacked"):
        refusal = r"context=segments needs .*; or context=concat, for encoder=stacked too\."
    words = (f"context={context}", "context.sentences=2", f"encoder={encoder}", f"decoder={wiring}", *positions)
    if not refusal:
        one_step(*words)
        return
    with pytest.raises(UserError, match=refusal):
        one_step(*words)


@pytest.mark.parametrize(
    "choice",
    [
        f"{group}={choice}"
        for group, choices in (
            ("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("search", SEARCHES), ("trainer", TRAINERS)
        )
        for choice in choices
    ],
)  # fmt: skip
def test_every_other_choice(choice: str) -> None:
    one_step(choice)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_every_tokenizer(kind: str) -> None:
    one_step(kind=kind)


@pytest.mark.parametrize("tie", ["all", "target"])
def test_tied_embeddings(tie: str) -> None:
    one_step(f"model.tie_embeddings={tie}", "decoder.readout.size=7")


#: What a data set cannot do without.
PARTS = ("train", "valid", "test")
NEEDED = {
    "text": ["data.source=de", "data.target=en", *(f"data.{part}={{text}}/{part}" for part in PARTS)],
    "files": ["data.files=[{text}/train.de,{text}/train.en]"],
    "tatoeba": ["data.root={text}"],
    "multi30k": ["data.root={m30k}"],
    "hub": ["data.path=somebody/something"],
}  # fmt: skip
OFFLINE = {"text", "files", "tatoeba", "multi30k", "builtin"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    text = write_text(tmp_path_factory.mktemp("text"))
    m30k = tmp_path_factory.mktemp("m30k")
    for ours, theirs in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")):
        for language in ("de", "en"):
            (m30k / f"{theirs}.{language}").write_bytes((text / f"{ours}.{language}").read_bytes())
    return {"text": text, "m30k": m30k}


@pytest.mark.parametrize("choice", options("data"))
def test_every_data_set(choice: str, folders: dict[str, Path]) -> None:
    words = [f"data={choice}", *(word.format(**folders) for word in NEEDED.get(choice, []))]
    if choice == "builtin":
        words += ["data.train_pairs=50", "data.valid_pairs=5", "data.test_pairs=5"]
    config = compose("train", quote(words))
    source = build_source(config)
    assert isinstance(source, DataSource)
    assert config.trainer.steps or config.trainer.epochs or config.trainer.minutes
    if choice in OFFLINE:
        for name in source.splits():
            split = source.read(name)
            assert len(split.source) == len(split.target) > 0


@pytest.mark.long
@pytest.mark.parametrize("choice", options("experiment"))
def test_every_experiment(choice: str) -> None:
    """At a size for a laptop, whatever the paper's, and with a data set of one's own."""
    preset = compose("train", [f"experiment={choice}"])
    if "readout" in preset.decoder:
        sizes = ["decoder.size=16", "attention.size=6", "model.embedding_size=10", "decoder.readout.size=10"]
        sizes.append(f"encoder.size={8 if preset.encoder.bidirectional else 16}")
    else:
        sizes = [f"{side}={preset.choices[side]}" for side in ("encoder", "decoder")]  # whose small sizes `small` knows
        sizes += [f"{side}.feed_forward_size=30" for side in ("encoder", "decoder") if "norm" in preset[side]]
        sizes += ["model.embedding_size=10", "decoder.size=10"]
    words = [f"experiment={choice}", *sizes, "data=builtin", "name=mine"]
    config = compose("train", small(*words))
    assemble(config, 300, 300, joint=bool(config.tokenizer.joint))
    build_trainer(config)
    one_step(*[word for word in SMALL if "size=" not in word], *words, "tokenizer=unigram")


#: The overrides in the README's table of variants.
VARIANTS = re.findall(
    r"^\| (?:score|window|normaliser|read|heads|wiring|readout|Transformer|self-attention|convolution)"
    r" \| .* \| `([^`]*)` \|$",
    (CONFIGS.parent / "README.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize("line", thinned(VARIANTS, 3))
def test_every_variant_of_the_readme_can_be_built_and_trains_in_miniature(line: str) -> None:
    words = shlex.split(line)
    assemble(compose("train", words), 300, 300, joint=True)
    one_step("decoder=luong", "attention/score=general", *(word.replace("heads=4", "heads=2") for word in words))


@pytest.mark.parametrize(
    ("alias", "choice"),
    [
        ("bahdanau", "additive"),
        ("mlp", "additive"),
        ("bilinear", "general"),
        ("multiplicative", "general"),
        ("luong", "general"),
    ],
)
def test_other_names_of_a_score_are_answered(alias: str, choice: str) -> None:
    overrides = [f"attention/score={alias}", "decoder=luong"]
    assert compose("train", overrides) == compose("train", [f"attention/score={choice}", "decoder=luong"])
    saved = compose("train", overrides)
    assert merge_for_resume(saved, overrides, [f"attention/score={choice}"]) == saved


def test_every_alias_stands_for_a_choice_and_hides_none() -> None:
    explained = " ".join(help_text("train", everything=True).split())
    aliases = {group: names for group in groups_of(CONFIGS) if (names := aliases_of(CONFIGS, group))}
    assert "attention/score" in aliases
    for group, names in aliases.items():
        choices = set(options(group))
        assert set(names.values()) <= choices
        assert not set(names) & choices
        assert all(f"{alias} = {choice}" in explained for alias, choice in names.items())


def test_the_readme_shows_every_part_of_attention() -> None:
    shown = {word for line in VARIANTS for word in shlex.split(line)}
    assert len(VARIANTS) > 30
    for group in ("attention/score", "attention/window", "attention/normaliser", "attention/read"):
        assert {f"{group}={choice}" for choice in options(group)} - shown <= {f"{group}={default}" for default in USUAL}


@pytest.mark.parametrize(("wiring", "score"), [("bahdanau", "general"), ("luong", "location"), ("conditional", "dot")])
@pytest.mark.parametrize("objective", ["sampled", "enumerate"])
@pytest.mark.parametrize("sampling", [0, 0.5])
def test_hard_attention_in_every_wiring(wiring: str, score: str, objective: str, sampling: float) -> None:
    hard = ("attention/read=hard", f"attention.read.objective={objective}")
    one_step(f"decoder={wiring}", f"attention/score={score}", *hard, f"trainer.scheduled_sampling={sampling}")


@pytest.mark.parametrize("verb", ["train", "translate", "evaluate", "align"])
def test_every_verb(verb: str) -> None:
    config = compose(verb, [])
    assert OmegaConf.missing_keys(config) == (set() if verb in ("train", "align") else {"run"})
    if verb != "align":
        build_search(config.search)


def test_comparing_and_sweeping_have_their_settings() -> None:
    assert OmegaConf.missing_keys(compose("compare", [])) == set()
    assert OmegaConf.missing_keys(compose("export", [])) == {"run", "output"}
    sweep, train = compose("sweep", []), compose("train", [])
    assert set(sweep) & set(train) == {"choices"}, "a word of the line belongs to one of the two"


def test_the_model_as_it_comes() -> None:
    config = compose("train", [])
    model = assemble(config, 4000, 4000, joint=True)
    assert sum(parameter.numel() for parameter in model.parameters()) < 10_000_000
    build_optimizer(config, model)
    build_schedule(config)
    build_trainer(config)


def test_no_line_is_too_long() -> None:
    lines = [(path, line) for path in CONFIGS.rglob("*.yaml") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(path, line) for path, line in lines if len(line) > 120] == []


def test_every_group_is_tested() -> None:
    # A new group needs a test of its own here.
    parts = [f"attention/{part}" for part in ("normaliser", "read", "score", "window")]
    tested = (
        "attention context data data_defaults decoder decoder/readout encoder experiment optimizer positions schedule"
    )
    assert set(GROUPS) <= {*parts, *tested.split(), "search", "tokenizer", "trainer"}
    assert options("attention") == ["default", "multihead"]
    assert set(options("data_defaults")) <= set(options("data"))
