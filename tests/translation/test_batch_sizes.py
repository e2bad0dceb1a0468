"""Batches on a GPU: as many sentences as its free memory holds, and halves where it does not."""

import dataclasses
from collections.abc import Sequence

import pytest
import torch

from nmt.search import BeamSearch, Hypothesis
from nmt.system.compute import Compute
from nmt.system.processes import Processes
from nmt.translation.batch_sizes import ON_GPU, batches_of, bytes_per_sentence
from nmt.translation.request import SourcePart
from nmt.translation.translator import Translator
from tests.catalogue import model
from tests.test_configs import tokenizer
from tests.translation.test_translator import SENTENCES, small


def test_the_bytes_of_a_sentence_by_hand() -> None:
    """The widest matrix of a small `bahdanau` is that of the gates, [3 * 10, 7 + 10]; it has 29 words and one head."""
    made = model("decoder=bahdanau")
    assert bytes_per_sentence(made, 1, 5, 8, weights=False) == 4 * (4 * 29 + 2 * 5 * 30 + 4 * 5 * 30)
    without, with_weights = (bytes_per_sentence(made, 3, 5, 8, weights) for weights in (False, True))
    assert with_weights - without == 4 * 3 * 8 * 1 * 5


def test_a_transformer_keeps_what_self_attention_needs_of_each_step() -> None:
    made = model("decoder=transformer")
    short, long = (bytes_per_sentence(made, 2, 5, steps, weights=False) for steps in (10, 11))
    width = max(max(weight.shape) for weight in made.decoder.parameters() if weight.ndim > 1)
    assert long - short == 4 * 2 * (2 * 3 * 2 * width)  # two layers, keys and values, three versions


@pytest.mark.parametrize(("free", "longest"), [(2**40, ON_GPU), (2**22, 80), (1, 1)])
def test_batches_are_as_large_as_the_memory_allows(free: int, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compute, "free_memory", lambda _: free)
    translator = Translator([small()], tokenizer("unigram"), BeamSearch(5), batch_sentences=ON_GPU)
    translator = dataclasses.replace(translator, compute=Compute(torch.device("cuda", 0)), fits=True)
    lengths = [*range(60, 3, -1)] * 40
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    batches = batches_of(translator, lengths, order)
    assert [row for batch in batches for row in batch] == order
    sizes = list(map(len, batches))
    assert max(sizes) <= longest
    assert sizes[:-1] == sorted(sizes[:-1])  # shorter sentences take less memory
    assert (len(set(sizes[:-1])) > 1) == (1 < longest < ON_GPU)
    shared = dataclasses.replace(translator, processes=Processes(0, 8))
    assert max(map(len, batches_of(shared, lengths, order))) <= len(order) // 8


def test_a_chosen_number_of_sentences_and_a_cpu_do_not_ask_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Compute, "free_memory")
    on_cpu = Translator([small()], tokenizer("unigram"), BeamSearch(5), batch_sentences=3, fits=True)
    on_gpu = dataclasses.replace(on_cpu, compute=Compute(torch.device("cuda", 0)), fits=False)
    assert list(map(len, batches_of(on_gpu, [1] * 7, range(7)))) == [3, 3, 1]
    assert max(map(len, batches_of(on_cpu, [1] * 7, range(7)))) <= 3


def test_a_batch_that_is_too_large_for_the_memory_is_searched_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, most, sizes = Translator._search, 2, []

    def limited(self: Translator, parts: Sequence[SourcePart], watch: None, shows: Sequence[bytes]) -> object:
        sizes.append(len(parts))
        if len(parts) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        found: list[list[Hypothesis]] = whole(self, parts, watch, shows)
        return found

    translator = Translator([small()], tokenizer("unigram"), BeamSearch(3))
    expected = [nbest[0].text for nbest in translator.translate([*SENTENCES, "rot blau"])]
    monkeypatch.setattr(Translator, "_search", limited)
    assert [nbest[0].text for nbest in translator.translate([*SENTENCES, "rot blau"])] == expected
    assert sizes == [4, 2, 2]
    most = 0
    with pytest.raises(torch.OutOfMemoryError):
        list(translator.translate(SENTENCES))
