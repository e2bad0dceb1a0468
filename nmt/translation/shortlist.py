"""A shortlist: search uses only the target pieces that a sentence probably needs.

The softmax over all pieces is most of a step's arithmetic. As in Jean et al. 2015, section 3.3, the shortlist has the
most frequent pieces and, for each source piece, its likeliest translations. The sentences of a batch share one product
with all candidates; biases exclude the other sentences' candidates, so that translations do not depend on the batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.model.seq2seq import Output
from nmt.search import Constraint, Edges, Hypothesis, Limits, Prefix
from nmt.system.errors import UserError
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.text.tokenizer import EOS, PAD

COMMON = 200  # number of most frequent pieces in every shortlist


class Candidates(NamedTuple):
    """The candidates of a batch: ids [C], ascending, so that specials keep their ids; mask [B, C] for each sentence."""

    ids: Tensor
    mask: Tensor

    def output(self, layer: nn.Linear) -> Output:
        """The weight [C, F] of an output layer in the type of matrix products, and the biases [B, C].

        The bias of a piece that is not a candidate of the sentence is -inf.
        """
        weight, device = layer.weight[self.ids], self.ids.device.type
        if torch.is_autocast_enabled(device):
            weight = weight.to(torch.get_autocast_dtype(device))
        return weight, torch.where(self.mask, layer.bias[self.ids].float(), -torch.inf)

    def limits(self, limits: Limits) -> Limits:
        """The limits with pieces replaced by their indices among the candidates."""
        places = {token: place for place, token in enumerate(self.ids.tolist())}
        prefixes = [
            [{places[token]: state for token, state in row.items() if token in places} for row in prefix]
            for prefix in limits.prefixes
        ]
        return limits._replace(
            forbidden=[places[token] for token in limits.forbidden if token in places],
            prefixes=prefixes,
            shows=[limits.shows[token] for token in places] if limits.shows else (),
            constraints=[
                [each._replace(alternatives=[[places[t] for t in way] for way in each.alternatives]) for each in some]
                for some in limits.constraints
            ],
            edges=limits.edges and Edges(*([side[token] for token in places] for side in limits.edges)),
        )

    def named(self, nbest: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The hypotheses with indices among the candidates replaced by token ids."""
        return [hypothesis._replace(tokens=self.ids[hypothesis.tokens].tolist()) for hypothesis in nbest]


class Shortlist:
    """Selects the candidates of each sentence."""

    def __init__(self, lexicon: Lexicon, count: int, size: int, joint: bool) -> None:
        """Use `count` translations of each source piece, and the source pieces themselves if vocabularies are `joint`.

        `size` is the size of the target vocabulary.

        Raises:
            UserError: `count` is out of range.
        """
        if not 1 <= count <= TRANSLATIONS:
            raise UserError(f"shortlist={count}: must be from 1 to {TRANSLATIONS}, or 0 for the whole vocabulary.")
        translations = torch.from_numpy(lexicon.translations[:, :count]).long()
        translations[PAD] = PAD  # padding is not a piece of the sentence
        self.translations = translations.clamp(min=PAD)
        specials = torch.arange(EOS + 1)
        self.always = torch.cat([specials, torch.from_numpy(lexicon.common[:COMMON]).long()])
        self.size, self.joint = size, joint

    def candidates(
        self, source: Tensor, prefixes: Sequence[Prefix], constraints: Sequence[Sequence[Constraint]] = ()
    ) -> Candidates:
        """The candidates for source [B, S], including all tokens of the prefixes and constraints."""
        pieces = source.cpu()
        mask = torch.zeros(len(pieces), self.size, dtype=torch.bool)
        mask[:, self.always] = True
        mask.scatter_(1, self.translations[pieces].flatten(1), True)
        if self.joint:
            mask.scatter_(1, pieces, True)
        for row, prefix in zip(mask, prefixes, strict=True):
            row[[next(iter(state)) for state in prefix]] = True  # the first token of a state belongs to the prefix
        for row, of_row in zip(mask, constraints, strict=False):
            row[[token for each in of_row for way in each.alternatives for token in way]] = True
        ids = mask.any(0).nonzero().squeeze(1)
        return Candidates(ids.to(source.device), mask[:, ids].to(source.device))
