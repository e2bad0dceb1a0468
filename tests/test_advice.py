"""The advice for two files of one's own: what it recommends for how much text, how it judges one."""

import shlex
from typing import Any

import pytest

from nmt.config.composition import compose
from nmt.train.advice import in_words, recommend, verdict


def value(pairs: int, words: float, key: str) -> float:
    found = dict(override.split("=") for override in recommend(pairs, words).overrides)
    return float(found[key])


def test_the_measured_corpora_get_what_worked_there() -> None:
    assert value(29_000, 12, "tokenizer.vocabulary_size") == 4000
    assert value(29_000, 12, "encoder.size") == 256
    assert value(29_000, 12, "model.dropout") == 0.3
    assert 20 <= value(29_000, 12, "trainer.epochs") <= 30
    assert value(165_813, 8, "tokenizer.vocabulary_size") == 8000
    assert 256 <= value(165_813, 8, "encoder.size") <= 512
    assert value(2_000_000, 20, "tokenizer.vocabulary_size") in (16_000, 32_000)
    assert value(2_000_000, 20, "encoder.size") == 512


def test_two_hundred_lines_get_a_small_model_with_strong_regularisation() -> None:
    assert value(200, 8, "encoder.size") <= 128
    assert value(200, 8, "model.dropout") >= 0.4
    assert value(200, 8, "tokenizer.sampling") > 0
    assert value(200, 8, "tokenizer.vocabulary_size") < 1000


@pytest.mark.parametrize(
    ("key", "sign"),
    [
        ("tokenizer.vocabulary_size", 1),
        ("model.embedding_size", 1),
        ("decoder.size", 1),
        ("model.dropout", -1),
        ("trainer.epochs", -1),
    ],
)
def test_advice_moves_one_way_with_the_amount_of_text(key: str, sign: int) -> None:
    values = [sign * value(pairs, 10, key) for pairs in (1, 200, 1000, 5000, 30_000, 170_000, 10**6, 10**7)]
    assert values == sorted(values)


def test_every_choice_is_explained() -> None:
    advice = recommend(500, 7.4)
    told = " ".join(advice.reasons)
    for override in advice.overrides:
        assert override.split("=")[0] in told
    assert "500 pairs of about 7 words" in told


def test_the_users_own_setting_comes_after_the_advice() -> None:
    config = compose("train", ["data.files=[a,b]", *recommend(29_000, 12).overrides, "encoder.size=96"])
    assert (config.encoder.size, config.decoder.size) == (96, 512)


def history(*losses: float, train: tuple[float, ...] = (), bleu: tuple[float, ...] = ()) -> list[dict[str, object]]:
    return [
        {
            "step": 100 * (at + 1),
            "epoch": at + 1,
            "minutes": 2.5 * (at + 1),
            "train_loss": train[at] if train else 5.0 - 0.3 * at,
            "valid_loss": loss,
            "valid_perplexity": 2.0**loss,
            "valid_bleu": bleu[at] if bleu else None,
        }
        for at, loss in enumerate(losses)
    ]


FALLING = (5.0, 4.0, 3.3, 2.8, 2.5, 2.3, 2.15, 2.0)
TURNING = (5.0, 4.0, 3.5, 3.3, 3.4, 3.6, 3.8, 4.0)
LEVEL = (5.0, 4.0, 3.0, 2.6, 2.5, 2.499, 2.4985, 2.4984)


def test_a_training_that_still_improves() -> None:
    lines = verdict(history(*FALLING), 30_000, "minutes", "checkpoints/mine")
    told = "\n".join(lines)
    assert "ended at its limit of minutes" in told
    assert "still improves" in told
    assert "step 800" in told
    assert (
        "python -m nmt.train name=mine resume=true trainer.epochs=16 trainer.minutes=40" in told
    )  # twice 8 epochs, twice 20 minutes
    assert "Too few" not in told


def test_a_training_that_overfits() -> None:
    told = "\n".join(
        verdict(history(*TURNING), 30_000, "epochs", "checkpoints/mine", ["data.files=['a b','c']", "name=mine"])
    )
    assert "overfits: the validation loss was lowest at step 400" in told
    again = next(line for line in told.splitlines() if "mine-2" in line)
    words = shlex.split(again, comments=True)
    assert "data.files=['a b','c']" in words
    assert "model.dropout=0.5" in words
    assert words.count("name=mine-2") == 1
    assert "name=mine" not in words


def test_bleu_that_rises_outweighs_a_loss_that_has_turned_a_little() -> None:
    losses = (5.0, 4.0, 3.0, 2.9, 2.92, 2.95, 2.97, 2.98)
    rising = (1.0, 5.0, 20.0, 25.0, 27.0, 29.0, 30.0, 31.5)
    told = "\n".join(verdict(history(*losses, bleu=rising), 30_000, "epochs", "checkpoints/mine"))
    assert "still improves" in told
    assert "Validation BLEU: 31.5 at the end, 31.5 at best." in told
    assert "overfits" in "\n".join(verdict(history(*losses), 30_000, "epochs", "checkpoints/mine"))


def test_a_loss_that_rises_in_training_too_is_not_overfitting() -> None:
    train = (5.0, 4.0, 3.0, 2.9, 3.5, 3.6, 3.7, 3.8)
    assert "overfits" not in "\n".join(verdict(history(*TURNING, train=train), 30_000, "epochs", "checkpoints/mine"))


def test_a_training_that_is_about_done() -> None:
    told = "\n".join(verdict(history(*LEVEL), 30_000, "patience", "checkpoints/mine"))
    assert "about done" in told
    assert "resume" not in told
    assert "python -m nmt.evaluate run=checkpoints/mine" in told
    assert "python -m nmt.translate run=checkpoints/mine input=FILE" in told


def test_too_few_lines_are_said_first() -> None:
    lines = verdict(history(*FALLING), 200, "epochs", "checkpoints/mine")
    assert lines[0].startswith("Too few lines: 200 sentence pairs teach")
    lines = verdict(history(*FALLING), 1, "epochs", "checkpoints/mine")
    assert lines[0].startswith("Too few lines: 1 sentence pair teaches words")


@pytest.mark.parametrize("losses", [(), (3.0,), (3.0, float("nan")), (float("nan"), 3.0), (3.0, 2.0)])
@pytest.mark.parametrize("pairs", [1, 10**6])
def test_any_history_has_a_verdict(losses: tuple[float, ...], pairs: int) -> None:
    lines = verdict(history(*losses), pairs, "another reason", "checkpoints/mine")
    assert any("python -m nmt." in line for line in lines)
    if losses and losses[-1] != losses[-1]:
        assert "no longer a number" in "\n".join(lines)


def test_commands_can_be_pasted_into_a_shell() -> None:
    run = "my runs/über [1]"
    for line in verdict(history(*FALLING), 30_000, "steps", run):
        if "nmt.train" in line:
            words = shlex.split(line, comments=True)
            assert "name=über [1]" in words
            assert "checkpoints=my runs" in words


def proposed(name: str, pairs: int = 30_000, **settings: Any) -> list[str]:
    """The words of the command that trains anew after overfitting, or none."""
    known = {key.replace("__", "."): value for key, value in settings.items()}
    lines = verdict(history(*TURNING), pairs, "epochs", "checkpoints/mine", ["tokenizer=x"], known, name)
    again = [line for line in lines if f"name={name} " in line]
    return shlex.split(again[0], comments=True)[4:] if again else []


def test_only_what_differs_is_proposed() -> None:
    assert proposed("mine-3") == ["tokenizer=x", "model.dropout=0.5", "tokenizer.sampling=0.3"]
    settings: dict[str, Any] = {"model__dropout": 0.5, "encoder__size": 64, "decoder__size": 128}
    assert proposed("mine-3", tokenizer__model_type="bpe", **settings) == ["tokenizer=x", "tokenizer.sampling=0.1"]
    smaller = ["tokenizer=x", "encoder.size=32", "decoder.size=64"]
    assert proposed("mine-3", tokenizer__sampling=0.3, **settings) == smaller
    assert proposed("mine-3", tokenizer__model_type="char", **settings) == smaller, "characters cannot be drawn anew"
    assert proposed("mine-3", 200, tokenizer__model="a.model", **{**settings, "encoder__size": 32}) == []


def test_a_size_that_follows_the_embeddings_is_changed_with_them() -> None:
    strong: dict[str, Any] = {"model__dropout": 0.5, "tokenizer__model_type": "char"}
    assert proposed("mine-3", model__embedding_size=128, **strong) == ["tokenizer=x", "model.embedding_size=64"]
    mixed = proposed("mine-3", model__embedding_size=128, encoder__size=64, **strong)
    assert mixed == ["tokenizer=x", "model.embedding_size=64", "encoder.size=32"]


@pytest.mark.parametrize(
    ("exact", "chrf", "words"),
    [
        (0.0, 20.0, "hardly a line is right."),
        (5.0, 80.0, "hardly a line is right, but most letters are"),
        (40.0, 70.0, "some lines are right."),
        (60.0, 80.0, "most lines are right."),
        (95.0, 99.0, "nearly every line is right."),
    ],
)
def test_a_word_list_is_judged_by_chrf_and_exact_matches(exact: float, chrf: float, words: str) -> None:
    course = history(*LEVEL)
    rows = [
        {**row, "valid_bleu": 0.0, "valid_chrf": chrf - at, "valid_exact": exact}
        for at, row in zip(reversed(range(len(course))), course, strict=True)
    ]
    told = "\n".join(verdict(rows, 30_000, "patience", "checkpoints/mine"))
    assert f"Validation chrF: {chrf:.1f} at the end, {chrf:.1f} at best." in told
    assert f"{exact:.1f} % of the translations equal their reference: {words}" in told
    assert "BLEU:" not in told
    assert in_words(rows[-1]) == f"validation chrF {chrf:.2f}, exact matches {exact:.1f} %"


def test_a_run_whose_text_came_through_a_pipe_is_not_resumed() -> None:
    words = ["data.files=/dev/fd/3", "name=mine", "trainer.epochs=1"]
    lines = verdict(history(*FALLING), 30_000, "steps", "checkpoints/mine", words, piped=True)
    told = "\n".join(lines)
    assert "resume=true" not in told
    assert "name=mine-2 data.files=/dev/fd/3 trainer.epochs=" in told
    assert "source=FILE reference=FILE" in told
