"""Views of finished translations, with the weights of every kind of attention of a model."""

from collections.abc import Sequence

import torch

from nmt.data.batch import make_batch
from nmt.data.document_lines import context_tensor
from nmt.model import Seq2Seq
from nmt.system.compute import Compute
from nmt.text.tokenizer import BOS, EOS, SPECIAL_PIECES, Tokenizer
from nmt.translation import forced_passes
from nmt.translation.contexts import Tokens, weights_of_context, with_context
from nmt.translation.types import Translation, Views

BEGIN, END = SPECIAL_PIECES[BOS], SPECIAL_PIECES[EOS]


def can_look(translation: Translation) -> bool:
    """Whether a translation can be decoded again: it is not of an empty line, nor joined from parts of a long line."""
    return len(translation.source_pieces) > 1 and translation.source_pieces.count(END) == 1


def ids_of(tokenizer: Tokenizer, translation: Translation) -> tuple[list[int], list[int], Tokens]:
    """The tokens of source and target without the end of sentence, and the tokens of each previous sentence."""
    pieces = translation.pieces
    target = tokenizer.target.ids(pieces[:-1] if pieces[-1:] == [END] else pieces)
    before = [tokenizer.source.ids(sentence.pieces[:-1]) for sentence in translation.context]
    return tokenizer.source.ids(translation.source_pieces[:-1]), target, before


def views(model: Seq2Seq, tokenizer: Tokenizer, translation: Translation, compute: Compute) -> Views:
    """The weights of a model in evaluation mode while it predicts the pieces of a translation that `can_look`.

    The pins of the translation apply.
    """
    pieces = translation.pieces
    source, target, before = ids_of(tokenizer, translation)
    batch = make_batch([source], [target], [0])._replace(context=context_tensor([before]))
    with compute.autocast(), torch.no_grad():
        looks = forced_passes.look(model, batch.to(compute.device), [translation.pins])
    encoder, decoder, cross, context = (None if each is None else each[0].float().cpu().numpy() for each in looks)
    count = len(pieces)  # without the end if the length limit cut the translation
    seen = None
    if cross is not None:
        cross, slots = cross[:, :count], len(source) + 1
        of_context = weights_of_context(cross, slots, translation.context) if context is None else context[:, :count]
        seen = translation._replace(weights=cross[:, :, :slots], context_weights=of_context, heads=model.decoder.heads)
    return Views(
        None
        if encoder is None
        else translation._replace(
            text=translation.source,
            pieces=translation.source_pieces,
            spans=translation.source_spans,
            weights=encoder,
            heads=model.encoder.heads,
            attends="encoder",
        ),
        None
        if decoder is None
        else translation._replace(
            source=translation.text,
            source_pieces=[BEGIN, *pieces][:count],
            source_spans=[None, *translation.spans][:count],
            weights=decoder[:, :count, :count],
            heads=model.decoder.self_heads,
            attends="decoder",
        ),
        seen,
        None if seen is None else with_context(seen),
    )


def view_all(
    model: Seq2Seq, tokenizer: Tokenizer, translations: Sequence[Translation], compute: Compute
) -> list[Views | None]:
    """The views of each translation; None unless `can_look`."""
    return [views(model, tokenizer, each, compute) if can_look(each) else None for each in translations]
