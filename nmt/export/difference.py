"""How far the probabilities of an exported model are from those of the run."""

from pathlib import Path

import numpy as np
import torch

from nmt.data.batch import make_batch
from nmt.export.format import ExportFormat
from nmt.model import Seq2Seq, Source
from nmt.text.tokenizer import EOS, Tokenizer

#: Lengths in pieces of the sources that a model is checked on, batch by batch: with padding and without.
_LENGTHS = ([1, 5, 20, 12, 3, 8, 17, 20], [1], [49])
#: Pieces of a target, without the end of sentence.
_TARGET = 12


def largest_difference(format_: ExportFormat, folder: Path, model: Seq2Seq, tokenizer: Tokenizer) -> float:
    """The largest difference of a log-probability between a model and its export in `folder`.

    Over random pieces of the target, each given those before it and a source of random pieces.
    """
    generator = np.random.default_rng(1)
    forbidden = list(tokenizer.target.forbidden)
    allowed = np.setdiff1d(np.arange(tokenizer.target.size), [*forbidden, EOS])
    differences = []
    for lengths in _LENGTHS:
        sources = [generator.integers(EOS + 1, tokenizer.source.size, length).tolist() for length in lengths]
        batch = make_batch(sources, [generator.choice(allowed, _TARGET).tolist() for _ in lengths])
        with torch.no_grad():
            decoded = model(Source.of(batch), batch.target_in, weights=False)
            logits = model.target_logits(decoded, batch.target_mask)
            if format_.only_allowed:
                logits[:, forbidden] = -torch.inf
            words = batch.target_out[batch.target_mask].unsqueeze(1)
            ours = logits.log_softmax(-1).gather(1, words).squeeze(1)
        differences.append(np.abs(ours.numpy() - format_.log_probs(folder, tokenizer, batch)).max())
    return float(np.max(differences))  # NaN stays NaN
