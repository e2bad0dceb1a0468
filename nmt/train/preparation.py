"""From the splits of a data set to batches: tokenizer, pairs, word links. They must be the same for a resumed run."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nmt.build.parts import build_tokenizer_trainer
from nmt.data.batch import Batch
from nmt.data.cache import prepare, spilled
from nmt.data.dataset import Split, links_fingerprint
from nmt.data.document_lines import Contexts
from nmt.data.guide import Guide
from nmt.data.mixture import MixedBatches, joined
from nmt.data.pairs import EncodedPairs, SampledPairs, held
from nmt.data.stored import HELD
from nmt.data.token_batches import TokenBatches
from nmt.data.tokenizer_cache import trained
from nmt.system.errors import UserError
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.train.ancestor import unknown_note
from nmt.train.recipe import Recipe

Say = Callable[[str], None]


class Prepared(NamedTuple):
    """The training pairs, the number of pairs from the new text, and batches of both splits.

    `own_pairs` is smaller than the number of pairs only if text of the ancestor is mixed in (start_mix=).
    """

    pairs: EncodedPairs
    own_pairs: int
    batches: TokenBatches
    valid_batches: TokenBatches


def guiding_links(recipe: Recipe, split: Split) -> str | None:
    """The fingerprint of the links for guided alignment; None without guided alignment.

    Raises:
        UserError: there are no links or no attention, or the links have changed since the run began.
    """
    if not recipe.settings.guided_alignment:
        return None
    if not recipe.attends:
        raise UserError(
            "trainer.guided_alignment needs attention, but decoder=none has none. Leave it out, or use a decoder with "
            "attention."
        )
    if split.links is None:
        raise UserError(
            f"trainer.guided_alignment needs word links of the training text, and the data set {recipe.source.name} "
            f"has none. For a data set in files, give data.train_links=FILE with one line per pair (0-0 1-2 ...)."
        )
    fingerprint, run = links_fingerprint(split.links), recipe.resumed
    if run is not None and run.facts().get("links", fingerprint) != fingerprint:
        raise UserError(
            f"The word links of {split.name} have changed since {run.folder} began. To resume, restore them; or train "
            f"a new run with another name=."
        )
    return fingerprint


def read_splits(recipe: Recipe, say: Say) -> tuple[Split, Split]:
    """Read the training and the validation split.

    If no pair is held out, the validation split is the ancestor's; if that cannot be read, it is the training split.

    Raises:
        UserError: no pair is held out, and there is no ancestor (start=); see also `DataSource.read`.
    """
    source, ancestor = recipe.source, recipe.ancestor
    train = source.read("train")
    if not recipe.learns_all:
        return train, source.read("valid")
    if not recipe.starts:
        raise UserError(
            "data.valid_pairs=0: without validation pairs, training needs the validation text of a run to go on from "
            "(start=). Give data.valid_pairs=1 or more."
        )
    begins = f"All {len(train.source):,} pairs are learnt, and none is held out: validation is on"
    try:
        if ancestor is None:
            raise UserError(f"{recipe.config.start} is missing or damaged.")
        valid = ancestor.texts.read("valid")._replace(name="valid", links=None)
    except UserError as error:
        say(f"{begins} these pairs, and what is forgotten is not measured. {error}")
        return train, train._replace(name="learnt", links=None)
    say(f"{begins} the validation text of {ancestor.folder}, {len(valid.source):,} pairs.")
    return train, valid


def check_documents(recipe: Recipe, splits: Sequence[Split]) -> None:
    """Raise UserError if the model sees previous sentences, but the text has no document boundaries."""
    sentences = recipe.context_sentences
    for split in splits:
        if sentences and split.documents is None:
            raise UserError(
                f"context.sentences={sentences} needs documents, but {split.name} of {recipe.source.name} is text of "
                "single sentences. Say where documents end: data.documents=blank for empty lines, or files (data=text, "
                "data=files); or use data=documents. Or give context.sentences=0."
            )


def tokenizer_for(recipe: Recipe, split: Split, say: Say) -> Tokenizer:
    """The tokenizer of the resumed run or of the ancestor, or a new tokenizer trained on the training text."""
    if recipe.resumed is not None:
        return load_tokenizer(recipe.resumed.tokenizer)
    if not split.source:
        raise UserError("The training set is empty. Give files with sentence pairs.")
    if recipe.ancestor is not None:
        tokenizer = recipe.ancestor.tokenizer()
        if note := unknown_note(split, tokenizer, recipe.ancestor.folder):
            say(note)
        return tokenizer
    tokenizer, notes = trained(build_tokenizer_trainer(recipe.config), split, recipe.place.cache)
    for note in notes:
        say(note)
    return tokenizer


def prepared(recipe: Recipe, tokenizer: Tokenizer, splits: tuple[Split, Split], say: Say) -> Prepared:
    """Build the batches of the training and the validation split.

    Raises:
        UserError: a split has no pairs, or has changed since the run began.
    """
    settings, ancestor = recipe.settings, recipe.ancestor
    for split in splits:
        _check_unchanged(recipe, split)
    train_split, first_rows, share = splits[0], len(splits[0].source), 0.0
    if ancestor is not None and ancestor.mix:
        run, share = recipe.resumed, ancestor.mix
        known = None if run is None else run.facts().get("start", {}).get("text", {}).get("train")
        needs = f"start_mix={share:g} needs the training text of {ancestor.folder}"
        mixed = ancestor.texts.read_for_mix(needs, known, say)
        train_split = joined(train_split, mixed, f"{train_split.name} and {ancestor.folder}")
    pairs, valid_pairs = (_encoded(recipe, tokenizer, split, say) for split in (train_split, splits[1]))
    own_pairs = int((pairs.rows < first_rows).sum()) if share else len(pairs)
    if share and not 0 < own_pairs < len(pairs):
        raise UserError(
            f"start_mix={share:g} needs pairs of both texts, but all pairs of one are longer than "
            "trainer.max_source_length or trainer.max_target_length. Raise these, or leave out start_mix."
        )
    alpha = float(recipe.config.tokenizer.sampling)
    hold = functools.partial(spilled, cache=recipe.place.cache) if len(pairs) > HELD else held
    sampled = SampledPairs(train_split, tokenizer, alpha=alpha, seed=recipe.place.seed, hold=hold, **_limits(recipe))
    guides: list[Callable[[Batch], Batch]] = []
    guides += [Guide(train_split, tokenizer)] if settings.guided_alignment else []
    make = functools.partial(MixedBatches, first_rows=first_rows, share=share) if share else TokenBatches
    batches = make(
        sampled if alpha > 0 else pairs,
        tokens_per_batch=settings.tokens_per_batch,
        sentences_per_batch=settings.sentences_per_batch,
        seed=recipe.place.seed,
        guide=_all(guides + _contexts(recipe, tokenizer, train_split)),
        folder=recipe.place.cache,
    )
    valid_batches = TokenBatches(
        valid_pairs,
        tokens_per_batch=settings.tokens_per_batch,
        shuffle=False,
        guide=_all(_contexts(recipe, tokenizer, splits[1])),
    )
    return Prepared(pairs, own_pairs, batches, valid_batches)


def _contexts(recipe: Recipe, tokenizer: Tokenizer, split: Split) -> list[Callable[[Batch], Batch]]:
    """The functions that add previous sentences to the batches of a split; none if the model sees no context."""
    sentences = recipe.context_sentences
    return [Contexts(split, tokenizer, sentences, recipe.settings.max_source_length)] if sentences else []


def _all(guides: Sequence[Callable[[Batch], Batch]]) -> Callable[[Batch], Batch] | None:
    """The composition of several functions on batches; None without functions."""
    return (lambda batch: functools.reduce(lambda guided, add: add(guided), guides, batch)) if guides else None


def _encoded(recipe: Recipe, tokenizer: Tokenizer, split: Split, say: Say) -> EncodedPairs:
    pairs = prepare(split, tokenizer, cache=recipe.place.cache, workers=recipe.settings.workers, **_limits(recipe))
    note = pairs.dropped_note()
    say(f"{split.name}: {len(pairs):,} pairs.{' ' + note if note else ''}")
    if len(pairs) == 0:
        raise UserError(
            f"The {split.name} set is empty: {note or 'it holds no pairs'} "
            f"Give text, or raise trainer.max_source_length and trainer.max_target_length."
        )
    return pairs


def _limits(recipe: Recipe) -> dict[str, int]:
    names = "max_source_length", "max_target_length"
    return {name: getattr(recipe.settings, name) for name in names}


def _check_unchanged(recipe: Recipe, split: Split) -> None:
    """Raise UserError if the text of a resumed run has changed."""
    run, fingerprint = recipe.resumed, split.fingerprint()
    if run is not None and run.facts().get("text", {}).get(split.name, fingerprint) != fingerprint:
        raise UserError(
            f"The text of {split.name} has changed since {run.folder} began. "
            f"To resume, restore the text; or train a new run with another name=."
        )
