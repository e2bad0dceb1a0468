"""Word links of the training text -> what the attention weights of a batch should be: beside the batches, for training.

Links are between words and are kept so, by row number; they are spread over the pieces of a batch as it comes, whatever
was dropped and however subword sampling has cut the words this time.
"""

import numpy as np
import torch

from nmt.data.batch import Batch
from nmt.data.dataset import Split
from nmt.links import parse_links
from nmt.text.tokenizer import Tokenizer


class Guide:
    """Adds the links of a split to its batches.

    Every piece of a linked target word is to look at all pieces of the source words that it is linked to, at each of
    them alike: its row of `Batch.links` is uniform over them. That is the normalised alignment matrix of Chen et al.
    2016 ("Guided alignment training for topic-aware neural machine translation"), with word links spread over all
    pieces of both words as Garg et al. 2019 ("Jointly learning to align and translate with Transformer models") do.
    Only sure links count. The rows of words without a link, and of the end of sentence, are zero.

    A pair of which the pieces do not show as many words as it has (unknown characters, a tokenizer with a
    normalisation of its own) has no links rather than wrong ones.
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
            # One row and column more, which stay zero, for pieces of no word.
            words = np.zeros((counts[1] + 1, counts[0] + 1), dtype=np.float32)
            for source, target in sure:
                words[target, source] = 1
            pieces = words[np.ix_(targets, sources)]
            pieces /= np.maximum(pieces.sum(1, keepdims=True), 1)
            spread[at, : len(targets), : len(sources)] = pieces
        return batch._replace(links=torch.from_numpy(spread))
