"""Batch sizes of a search: on a GPU as many sentences as its free memory holds, padded to a few sizes."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch.nn.functional import pad

from nmt.data.batch import Batch, make_batch
from nmt.model import Seq2Seq
from nmt.search.replayed import Replays, Room
from nmt.text.tokenizer import PAD
from nmt.translation.batches import split
from nmt.translation.request import SourcePart

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

#: The default maximum number of sentences per batch on a CPU and on a GPU (docs/gpu.md).
ON_CPU, ON_GPU = 128, 1024
#: The share of the free memory for a batch: `bytes_per_sentence` counts only the largest tensors.
SHARE = 0.6


def bytes_per_sentence(model: Seq2Seq, beam: int, slots: int, steps: int, weights: bool) -> int:
    """Approximate upper bound of the bytes that a search needs for a sentence of `slots` slots and `steps` steps.

    A hypothesis has four copies of its logits, two of its energies for each slot, and three of the keys and values that
    self-attention caches at each step. With `weights`, it also has the attention weights of all steps.
    """
    weights_of = itertools.chain(model.encoder.parameters(), model.decoder.parameters())
    width = max(max(weight.shape) for weight in weights_of if weight.ndim > 1)
    vocabulary, heads = model.output.out_features, len(model.decoder.heads)
    layers = len({name.split(".")[0] for name in model.decoder.self_heads})
    numbers = 4 * vocabulary + 2 * slots * width + 2 * 3 * layers * steps * width + weights * steps * heads * slots
    return 4 * (beam * numbers + 4 * slots * width)


def batches_of(translator: "Translator", lengths: Sequence[int], order: Sequence[int]) -> list[Sequence[int]]:
    """Batches of the rows in `order`, which sorts parts of `lengths` tokens from the longest to the shortest."""
    compute, search = translator.compute, translator.search
    if not translator.fits or not compute.on_gpu:
        return split(order, translator.batch_sentences, compute.parallel_searches)
    free, batches, start = compute.free_memory() * SHARE, list[Sequence[int]](), 0
    # At least one batch for each process.
    most = min(translator.batch_sentences, -(-len(order) // translator.processes.count))
    while start < len(order):
        rows = order[start : start + most]
        slots = 1 + max(lengths[row] for row in rows)
        size = search.beam_size or 1, slots, math.ceil(translator.length_ratio * slots) + translator.extra_length
        each = sum(bytes_per_sentence(model, *size, translator.weights) for model in translator.models)
        batches.append(rows[: max(1, int(free // each))])
        start += len(batches[-1])
    return batches


def room_for(translator: "Translator", parts: Sequence[SourcePart]) -> Room | None:
    """The fixed tensor shapes for a search of these parts; None if the search does not use fixed shapes.

    Prefixes, glossaries, pinned attention, previous sentences and shortlists have variable shapes.
    """
    if translator.replays is None or translator.shortlist is not None or not Replays.beam_of(translator.search):
        return None
    if any(part.prefix or part.constraints or part.pins or part.context for part in parts):
        return None
    ratio, extra = translator.length_ratio, translator.extra_length
    slots = 1 + max(len(part.tokens) for part in parts)
    return Room.of(len(parts), slots, lambda slots: math.ceil(ratio * (slots - 1)) + extra)


def padded_batch(sources: Sequence[Sequence[int]], room: Room | None) -> Batch:
    """A batch of sources on the CPU; with `room`, padded to its shape with empty sentences and padded slots."""
    batch = make_batch(sources if room is None else [*sources, *itertools.repeat([], room.rows - len(sources))])
    more = 0 if room is None else room.slots - batch.source.shape[1]
    source, mask = batch.source, batch.source_mask
    return batch._replace(source=pad(source, (0, more), value=PAD), source_mask=pad(mask, (0, more)))
