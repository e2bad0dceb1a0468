"""A shortlist: the target pieces that the sources of a batch can be expected to need, the only ones that search sees.

The softmax over all pieces is most of a step's arithmetic. Jean et al. 2015, section 3.3: the commonest pieces and,
for each source piece, its likeliest translations.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.model.seq2seq import Output
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.text.tokenizer import EOS

COMMON = 200  # of the commonest pieces


class Candidates(NamedTuple):
    """ids [C]: pieces, smallest first, and so the specials in their own places. outputs: each model's rows for them."""

    ids: Tensor
    outputs: tuple[Output, ...]


class Shortlist:
    """Chooses the candidates of a batch."""

    def __init__(self, lexicon: Lexicon, count: int, joint: bool) -> None:
        """`count` translations of each source piece; with `joint` vocabularies the source's own pieces too.

        Raises:
            UserError: the lexicon does not have so many.
        """
        if not 1 <= count <= TRANSLATIONS:
            raise UserError(
                f"shortlist={count}: give a number from 1 to {TRANSLATIONS}, or 0 to search the whole vocabulary."
            )
        self.translations = torch.from_numpy(lexicon.translations[:, :count]).long()
        specials = torch.arange(EOS + 1)
        self.always = torch.cat([specials, torch.from_numpy(lexicon.common[:COMMON]).long()])
        self.joint = joint

    def candidates(self, source: Tensor, also: Iterable[int] = ()) -> Tensor:
        """The ids [C], smallest first, for source [B, S], with those of `also`."""
        seen = source.unique().cpu()
        found = [self.always, self.translations[seen].flatten(), *([seen] if self.joint else [])]
        found.append(torch.tensor(list(also), dtype=torch.int64))
        ids = torch.unique(torch.cat(found)).to(source.device)
        wanted: Tensor = ids[ids >= 0]
        return wanted


def rows_of(output: nn.Linear, ids: Tensor) -> Output:
    """The weight [C, F] and the bias [C] of an output layer for these pieces, in the type that products run in."""
    weight, device = output.weight[ids], ids.device.type
    if torch.is_autocast_enabled(device):
        weight = weight.to(torch.get_autocast_dtype(device))
    return weight, output.bias[ids]
