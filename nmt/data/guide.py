"""Guided attention: the word links of the training text, as the attention weights that a batch should have.

Links are stored between words, by row number. They are spread over the pieces of each batch, so that dropped pairs and
subword sampling do not matter.
"""

import numpy as np
import torch

from nmt.data.batch import Batch
from nmt.data.dataset import Split
from nmt.links import parse_links
from nmt.text.tokenizer import Tokenizer


class Guide:
    """Adds the links of a split to its batches.

    Every piece of a linked target word should attend equally to all pieces of the source words that are linked to it:
    its row of `Batch.links` is uniform over these pieces. This is the normalised alignment matrix of Chen et al. 2016
    ("Guided alignment training for topic-aware neural machine translation"), with word links spread over all pieces of
    both words as in Garg et al. 2019 ("Jointly learning to align and translate with Transformer models").
    Only sure links count. The rows of words without a link, and of the end of sentence, are zero.

    A pair whose pieces form a different number of words than its text (unknown characters, a tokenizer with a
    different normalisation) gets no links rather than wrong links.
    """

    def __init__(self, split: Split, tokenizer: Tokenizer) -> None:
        """Take a split with links, counted over whitespace-separated words."""
        assert split.links is not None
        self._split, self._links, self._tokenizer = split, split.links, tokenizer

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its links."""
        spread = np.zeros((*batch.target_out.shape, batch.source.shape[1]), dtype=np.float32)
        source_lengths, target_lengths = (batch.source_lengths - 1).tolist(), (batch.target_mask.sum(1) - 1).tolist()
        for at, row in enumerate(batch.rows.tolist()):
            sources = self._tokenizer.source.words(batch.source[at, : source_lengths[at]].tolist())
            targets = self._tokenizer.target.words(batch.target_out[at, : target_lengths[at]].tolist())
            counts = (max(sources, default=-1) + 1, max(targets, default=-1) + 1)
            sure = parse_links(self._links[row]).sure
            if not sure or counts != (len(self._split.source[row].split()), len(self._split.target[row].split())):
                continue
            # The extra row and column stay zero: they are for pieces outside words, which have the index -1.
            words = np.zeros((counts[1] + 1, counts[0] + 1), dtype=np.float32)
            for source, target in sure:
                words[target, source] = 1
            pieces = words[np.ix_(targets, sources)]
            pieces /= np.maximum(pieces.sum(1, keepdims=True), 1)
            spread[at, : len(targets), : len(sources)] = pieces
        return batch._replace(links=torch.from_numpy(spread))
