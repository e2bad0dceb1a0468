"""Advice for users with their own text: settings for its size before training, a verdict on the training afterwards.

`recommend` and `separate_vocabularies` return overrides with reasons. `verdict` returns a judgement in plain words and
the next commands. The settings were measured on two cores. The user's own settings take precedence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from nmt.system.platform import shell_quoted

FEW_PAIRS = 1000  # below this a model memorises phrases rather than learning a language
SCORED = 100  # minimum number of sentences for BLEU scores of a fine-tuning
LEAST_UPDATES = 50  # minimum for a fine-tuning: enough to learn 5 pairs; more updates forget more


class Recommendation(NamedTuple):
    """Overrides in Hydra's grammar, to be put before the user's overrides, and one line of reason for each setting."""

    overrides: list[str]
    reasons: list[str]


class _Scale(NamedTuple):
    words: float  # maximum size of the source text for this row
    vocabulary: int
    size: int
    dropout: float
    sampling: float
    epochs: int


# Measured rows: 29,000 pairs of 12 words (4,000 pieces, 256, 0.3, 20 to 30 epochs) and 165,000 pairs of 8 words. Other
# rows are extrapolated: the vocabulary grows with about the square root of the text (260 pieces are specials and
# bytes), larger texts need less dropout, and small texts gain from subword sampling (Kudo 2018, section 5).
_SCALES = (
    _Scale(5_000, 500, 64, 0.5, 0.3, 120),
    _Scale(15_000, 800, 128, 0.4, 0.3, 80),
    _Scale(40_000, 1_200, 128, 0.4, 0.3, 60),
    _Scale(120_000, 2_000, 256, 0.4, 0.3, 40),
    _Scale(800_000, 4_000, 256, 0.3, 0.0, 25),
    _Scale(5_000_000, 8_000, 384, 0.2, 0.0, 12),
    _Scale(40_000_000, 16_000, 512, 0.1, 0.0, 5),
    _Scale(math.inf, 32_000, 512, 0.1, 0.0, 3),
)

LAYERS = "encoder.layers"
#: Settings that `verdict` may propose to change.
CHANGEABLE = (
    *("model.dropout", "tokenizer.sampling", "tokenizer.model_type", "tokenizer.model"),
    *("model.embedding_size", "encoder.size", "decoder.size", LAYERS),
)

PATIENCE = 10  # validations, one per epoch


def recommend(
    pairs: int,
    mean_length: float,
    *,
    unit: str = "words",
    per_word: float = 1.0,
    pieces: str | None = "unigram",
    sizes: bool = True,
) -> Recommendation:
    """Recommend settings for a training text of `pairs` pairs with `mean_length` words or characters per sentence.

    The advice depends on the number of words, since a thousand paragraphs teach more than a thousand phrases.

    Args:
        pairs: number of sentence pairs.
        mean_length: mean length of the source sentences, in `unit`.
        unit: "words", or "characters" for text without spaces.
        per_word: the mean number of units in a word.
        pieces: the tokenizer's model_type; None if the tokenizer exists already.
        sizes: whether to recommend sizes and dropout; false if a preset has its own.
    """
    words = pairs * max(mean_length / per_word, 1.0)
    scale = next(scale for scale in _SCALES if words <= scale.words)
    amount = f"{pairs:,} pairs of about {mean_length:.0f} {unit}"
    overrides, reasons = [], []
    # Tokenizers of characters or words have only one segmentation, and the text determines their number of pieces.
    if pieces in ("unigram", "bpe"):
        # For bpe the setting is the dropout of merges, usually 0.1.
        sampling = min(scale.sampling, 0.1) if pieces == "bpe" else scale.sampling
        overrides += [f"tokenizer.vocabulary_size={scale.vocabulary}", f"tokenizer.sampling={sampling}"]
        reasons.append(
            f"a vocabulary of {scale.vocabulary:,} pieces for {amount} (tokenizer.vocabulary_size): "
            "each piece must occur often enough to be learnt"
        )
    if sizes:
        overrides += [
            f"model.embedding_size={scale.size}",
            f"model.dropout={scale.dropout}",
            f"encoder.size={scale.size}",
            f"decoder.size={2 * scale.size}",  # equals the size of the encoder's values, so that any score fits
            f"attention.size={scale.size}",
        ]
        size_keys = "model.embedding_size, encoder.size, decoder.size, attention.size"
        reasons += [
            f"embeddings and states of {scale.size} ({size_keys}): "
            + ("a larger model would overfit so little text" if words <= 40_000 else "in proportion to the text"),
            f"dropout {scale.dropout} (model.dropout): "
            + ("strong, against overfitting" if scale.dropout >= 0.4 else "less for a larger text"),
        ]
    if scale.sampling and pieces in ("unigram", "bpe"):
        reasons.append(f"subword regularisation on (tokenizer.sampling={sampling}): it helps small corpora most")
    overrides += [f"trainer.epochs={scale.epochs}", f"trainer.patience={PATIENCE}"]
    reasons.append(
        f"at most {scale.epochs} passes over the text (trainer.epochs): "
        f"training ends earlier after {PATIENCE} validations without improvement (trainer.patience)"
    )
    return Recommendation(overrides, reasons)


class Continuation(NamedTuple):
    """Limits for fine-tuning a run: maximum epochs, warm-up updates, and validations without improvement."""

    epochs: int
    warmup_steps: int = 20
    patience: int = 5


def recommend_continuation(words: float, words_per_batch: float = 1000.0) -> Continuation:
    """Recommend limits for fine-tuning on a text of `words` source words: the less text, the more epochs."""
    limits = ((15_000, 30), (120_000, 15), (800_000, 8), (5_000_000, 4))
    epochs = next((epochs for most, epochs in limits if words <= most), 2)
    return Continuation(max(epochs, math.ceil(LEAST_UPDATES / max(1, words / words_per_batch))))


def recommend_held_out(pairs: int) -> tuple[int, int | None] | None:
    """Recommend how many of `pairs` pairs a fine-tuning holds out for validation and for the test set.

    Few pairs: (0, 0), since users expect that all their corrections are learnt. More pairs: `SCORED` for validation and
    the default number for the test set. Return None to keep both defaults.
    """
    return (0, 0) if pairs < FEW_PAIRS else (SCORED, None) if pairs < 50 * SCORED else None


def separate_vocabularies(scripts: tuple[str, str], *, tied: bool) -> Recommendation:
    """Recommend one vocabulary per side if source and target have different scripts, and so share no pieces.

    Args:
        scripts: scripts of source and target, such as "Latin" and "Han"; "" for text without letters.
        tied: whether the embeddings of both sides are tied, which needs a joint vocabulary.
    """
    if scripts[0] == scripts[1] or "" in scripts:
        return Recommendation([], [])
    overrides = ["tokenizer.joint=false", *(["model.tie_embeddings=target"] if tied else [])]
    texts = f"the source is in {scripts[0]} script, the target in {scripts[1]}"
    return Recommendation(overrides, [f"separate vocabularies ({' '.join(overrides)}): {texts}"])


def verdict(
    history: Sequence[Mapping[str, Any]],
    pairs: int,
    finished_by: str,
    run: str,
    overrides: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    other: str | None = None,
    piped: bool = False,
) -> list[str]:
    """Judge a training; return lines for the user: how the training went, then the commands to run next.

    Args:
        history: one mapping per validation, in order, with `step`, `epoch`, `minutes`, `train_loss`, `valid_loss` and,
            if measured, scores from 0 to 100: `valid_bleu`, or `valid_chrf` and `valid_exact` where BLEU is unreliable.
        pairs: number of sentence pairs in the training text.
        finished_by: what ended the training: steps, epochs, minutes, patience, interrupted.
        run: the run's folder, such as `checkpoints/mine`.
        overrides: the overrides of the training's command line. The proposed commands repeat them with changes.
        settings: the values of `CHANGEABLE` in this training, without values that are derived from other settings. Only
            changes to these settings are proposed.
        other: an unused name for another run; None appends "-2" to the run's name.
        piped: whether the text came through a pipe, so that the run cannot be resumed or scored on it.
    """
    rows = [row for row in history if row.get("valid_loss") is not None]
    kind, best = _course(rows)
    lines = []
    if pairs < FEW_PAIRS:
        teach = "1 sentence pair teaches" if pairs == 1 else f"{pairs:,} sentence pairs teach"
        lines.append(
            f"Too few lines: {teach} words and phrases, not a language. Expect correct "
            "translations of sentences close to the training text, and guesses for others. A few thousand pairs give "
            "a first useful model, 30,000 a fair one in a narrow field, a few hundred thousand a good one."
        )
    lines.append(f"{_ENDS.get(finished_by, f'The training ended ({finished_by}).')} {_judgement(kind, best, rows)}")
    title, scores = _scores(history)
    if scores:
        exact = max(float(row.get("valid_exact") or 0.0) for row in history)
        level = _level(max(scores), _BLEU) if title == "BLEU" else _level_of_exact(exact, max(scores))
        lines.append(f"Validation {title}: {scores[-1]:.1f} at the end, {max(scores):.1f} at best. {level}")
    last = rows[-1] if rows else {}
    commands = _commands(kind, last, pairs, PurePath(run), overrides, settings or {}, other, piped)
    return [*lines, "Next:", *(f"  {command}" for command in commands)]


def _course(rows: Sequence[Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """The course of the training ("none", "diverged", "overfits", "improves" or "done"), and the best validation."""
    if not rows:
        return "none", {}
    losses = [float(row["valid_loss"]) for row in rows]
    best = min(range(len(rows)), key=lambda at: losses[at] if math.isfinite(losses[at]) else math.inf)
    end = len(rows) - 1
    if not math.isfinite(losses[end]):
        return "diverged", rows[best]
    scores = _scores(rows)[1]
    # BLEU often keeps rising for a while after the loss has turned, and BLEU is the goal.
    score_rises = len(scores) > 2 and scores[-1] == max(scores) and scores[-1] > max(scores[:-1]) + 0.1
    train = [rows[at].get("train_loss") for at in (best, end)]
    still_falls = train[0] is None or train[1] is None or float(train[1]) < float(train[0])
    if still_falls and losses[end] > 1.01 * losses[best] and not (score_rises and losses[end] < 1.05 * losses[best]):
        return "overfits", rows[best]
    # "improves" if the last quarter of the training still lowered the loss.
    before = min(losses[: len(rows) - max(1, len(rows) // 4)], default=math.inf)
    late = best >= end - len(rows) // 10
    return "improves" if score_rises or (late and losses[best] < 0.99 * before) else "done", rows[best]


_ENDS = {
    "steps": "The training ended at its limit of steps.",
    "epochs": "The training ended at its limit of epochs.",
    "minutes": "The training ended at its limit of minutes.",
    "patience": "The training ended because validation no longer improved.",
    "interrupted": "The training was interrupted; its state is saved.",
}


def _judgement(kind: str, best: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    at = f"the validation loss was lowest at step {int(best['step']):,} ({best['valid_loss']:.3f})" if best else ""
    best_steps = [int(row["step"]) for row in rows if row.get("best")]
    weights = f"The weights of step {best_steps[-1]:,} are used. " if best_steps else ""
    judgements = {
        "none": "It was never validated, so it cannot be judged: train longer.",
        "diverged": "The validation loss is no longer a number: the learning rate is too high for this text.",
        "overfits": f"It overfits: {at}, and has risen since while the training loss fell. {weights}More time would "
        "not help; more text or stronger dropout would.",
        "improves": f"It still improves: {at}, at or near the end. Train longer.",
        "done": f"It is about done: {at}, and hardly changes any more. More text or a larger model would help more "
        "than more time.",
    }
    return judgements[kind]


def in_words(row: Mapping[str, Any]) -> str:
    """The score of a validation in words, by the metric that judges this run."""
    if row.get("valid_chrf") is None:
        return f"validation BLEU {row['valid_bleu']:.2f}"
    return f"validation chrF {row['valid_chrf']:.2f}, exact matches {row['valid_exact']:.1f} %"


def _scores(history: Sequence[Mapping[str, Any]]) -> tuple[str, list[float]]:
    """The name of the metric that judges these validations, and its values."""
    key, title = ("valid_chrf", "chrF") if any("valid_chrf" in row for row in history) else ("valid_bleu", "BLEU")
    return title, [float(row[key]) for row in history if row.get(key) is not None]


#: The meaning of a score, by the upper limit of its band.
_BLEU = {
    10: "Below 10: some words are right, hardly a sentence.",
    20: "10 to 20: the topic can be guessed.",
    30: "20 to 30: the gist is clear, with serious errors.",
    40: "30 to 40: understandable to good.",
    50: "40 to 50: good.",
    101: "Above 50: close to the references.",
}
_EXACT = {
    10: "hardly a line is right.",
    50: "some lines are right.",
    90: "most lines are right.",
    101: "nearly every line is right.",
}


def _level(score: float, bands: Mapping[int, str]) -> str:
    return next(words for limit, words in bands.items() if score < limit)


def _level_of_exact(exact: float, chrf: float) -> str:
    level = _level(exact, _EXACT)
    if exact < 10 and chrf >= 60:
        level = "hardly a line is right, but most letters are: look at the endings."
    return f"{exact:.1f} % of the translations equal their reference: {level}"


def _against_overfitting(settings: Mapping[str, Any]) -> list[str]:
    """Changes to these settings that reduce overfitting: more noise if there is little, otherwise smaller sizes."""
    kind, sampling = settings.get("tokenizer.model_type", "unigram"), settings.get("tokenizer.sampling", 0.0)
    changes = []
    if settings.get("model.dropout", 0.0) < 0.5:
        changes.append("model.dropout=0.5")
    if not sampling and kind in ("unigram", "bpe") and not settings.get("tokenizer.model"):
        changes.append(f"tokenizer.sampling={0.1 if kind == 'bpe' else 0.3}")
    keys = [key for key in ("encoder.size", "decoder.size") if key in settings]
    if len(keys) < 2:  # encoder or decoder without a size of its own: its size is that of the embeddings
        keys.insert(0, "model.embedding_size")
    sizes = {key: settings.get(key, 0) for key in keys}
    if not changes and min(sizes.values(), default=0) > 32:
        changes = [f"{key}={size // 2}" for key, size in sizes.items()]
    return changes


def _commands(
    kind: str,
    last: Mapping[str, Any],
    pairs: int,
    run: PurePath,
    overrides: Sequence[str],
    settings: Mapping[str, Any],
    other: str | None,
    piped: bool,
) -> list[str]:
    place = [] if str(run.parent) == "checkpoints" else [f"checkpoints={run.parent}"]

    def train(name: str, *changes: str) -> str:
        return " ".join(map(shell_quoted, ["python", "-m", "nmt.train", f"name={name}", *place, *changes]))

    def again(*changes: str) -> str:
        replaced = {word.partition("=")[0] for word in ("name=", "resume=", "checkpoints=", *changes)}
        others = [word for word in overrides if word.partition("=")[0].lstrip("+") not in replaced]
        return train(other or f"{run.name}-2", *others, *changes)

    commands = []
    if kind in ("improves", "none"):
        # Double all limits: twice the time shows whether the training still improves.
        epochs, minutes = (
            max(least, math.ceil(2 * float(last.get(key) or 0.0))) for key, least in (("epoch", 2), ("minutes", 10))
        )
        limits = (f"trainer.epochs={epochs}", f"trainer.minutes={minutes}", "trainer.patience=null")
        more = again(*limits) if piped else train(run.name, "resume=true", *limits)
        commands.append(f"{more}    # trains on, up to {epochs} epochs or {minutes} minutes in all")
    elif kind == "diverged":
        commands.append(f"{again('optimizer.lr=0.0003')}    # a smaller learning rate")
    elif kind == "overfits" or pairs < FEW_PAIRS:
        changes = _against_overfitting(settings)
        if changes:
            commands.append(f"{again(*changes)}    # overfits less")
    elif LAYERS in settings:
        commands.append(f"{again(f'{LAYERS}={settings[LAYERS] + 1}')}    # a larger model")
    evaluate = f"python -m nmt.evaluate {shell_quoted(f'run={run}')}"
    evaluate += " source=FILE reference=FILE" * piped
    commands.append(f"{evaluate}    # BLEU, chrF, TER and attention maps")
    translate = f"python -m nmt.translate {shell_quoted(f'run={run}')}"
    commands.append(f"{translate} input=FILE output=FILE search.beam_size=5")
    return commands
