"""A shortlist: search uses only the target pieces that the sources of a batch probably need.

The softmax over all pieces is most of a step's arithmetic. As in Jean et al. 2015, section 3.3, the shortlist has the
most frequent pieces and, for each source piece, its likeliest translations.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.model.seq2seq import Output
from nmt.search import Hypothesis, Prefix
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.text.tokenizer import EOS

COMMON = 200  # number of most frequent pieces


class Candidates(NamedTuple):
    """ids [C]: the pieces in ascending order, so that specials keep their ids. outputs: rows of each model for them."""

    ids: Tensor
    outputs: tuple[Output, ...]


class Shortlist:
    """Selects the candidates of a batch."""

    def __init__(self, lexicon: Lexicon, count: int, joint: bool) -> None:
        """`count` translations of each source piece; with a `joint` vocabulary, also the source pieces.

        Raises:
            UserError: the lexicon has fewer.
        """
        if not 1 <= count <= TRANSLATIONS:
            raise UserError(f"shortlist={count}: must be from 1 to {TRANSLATIONS}, or 0 for the whole vocabulary.")
        self.translations = torch.from_numpy(lexicon.translations[:, :count]).long()
        specials = torch.arange(EOS + 1)
        self.always = torch.cat([specials, torch.from_numpy(lexicon.common[:COMMON]).long()])
        self.joint = joint

    def candidates(self, source: Tensor, also: Iterable[int] = ()) -> Tensor:
        """The ids [C] for source [B, S], in ascending order, with those of `also`."""
        source_pieces = source.unique().cpu()
        parts = [self.always, self.translations[source_pieces].flatten(), *([source_pieces] if self.joint else [])]
        parts.append(torch.tensor(list(also), dtype=torch.int64))
        ids = torch.unique(torch.cat(parts)).to(source.device)
        wanted: Tensor = ids[ids >= 0]
        return wanted


def rows_of(output: nn.Linear, ids: Tensor) -> Output:
    """The weight [C, F] and the bias [C] of an output layer for these pieces, in the type of matrix products."""
    weight, device = output.weight[ids], ids.device.type
    if torch.is_autocast_enabled(device):
        weight = weight.to(torch.get_autocast_dtype(device))
    return weight, output.bias[ids]


def among(prefix: Prefix, ids: Sequence[int]) -> Prefix:
    """The prefix with tokens replaced by their indices among the candidates."""
    places = {token: place for place, token in enumerate(ids)}
    return [{places[token]: state for token, state in row.items() if token in places} for row in prefix]


def named(hypothesis: Hypothesis, ids: Tensor) -> Hypothesis:
    """The hypothesis with indices among the candidates replaced by pieces."""
    return hypothesis._replace(tokens=ids[hypothesis.tokens].tolist())
