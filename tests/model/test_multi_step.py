"""Attention in every layer of a recurrent decoder: numbers by hand, the state and the memory of each, what is refused.

The properties of every wiring hold for it, too: `COMBINATIONS` in test_wirings.py has it.
"""

import pytest
import torch
from torch import Tensor, nn

from nmt.model import Source, Words
from nmt.model.recurrent.attentive import RecurrentMemory
from nmt.model.recurrent.conditional import Conditional
from nmt.model.recurrent.recurrent_decoder import RecurrentState
from nmt.system.errors import UserError
from tests.catalogue import WITH_ATTENTION, attentive, model, sentences, started

MULTI_STEP = ("decoder.layers=3", "decoder.multi_step=true")
every_wiring = pytest.mark.parametrize("wiring", WITH_ATTENTION)


def cell_of(weights: dict[str, Tensor], layer: int, inputs: Tensor) -> nn.GRUCell:
    """torch's GRU cell with the weights of a layer; `inputs` are columns for what more goes into it."""
    own = {name[:-3]: value for name, value in weights.items() if name.endswith(f"_l{layer}")}
    own["weight_ih"] = torch.cat([own["weight_ih"], inputs], 1)
    cell = nn.GRUCell(own["weight_ih"].shape[1], 10, dtype=torch.float64)
    cell.load_state_dict(own)
    return cell


@every_wiring
def test_multi_step_attention_by_hand(wiring: str) -> None:
    """Three layers with dot products, each context beside what comes from the layer below, with torch's GRU cells.

    In bahdanau a layer asks with its previous state before it takes the context in, elsewhere with its new state, for
    the layer above.
    """
    made = model(f"decoder={wiring}", "attention/score=dot", "decoder/readout=maxout", *MULTI_STEP)
    memory, state = started(made, Source(*sentences([4], 23)))
    decoder = attentive(made)
    state = state._replace(feed=torch.randn(state.feed.shape, dtype=torch.float64))
    word, values, before = made.target_embedding(torch.tensor([8])), memory.attention.values[0, 0], state.hidden[0]
    weights, nothing = decoder.rnn.state_dict(), torch.zeros(30, 0, dtype=torch.float64)
    shares, contexts, states = [], [], []

    def ask(query: Tensor) -> Tensor:
        shares.append(torch.softmax(values @ query, -1))
        contexts.append(shares[-1] @ values)
        return contexts[-1]

    inputs = [word[0], state.feed[0]]
    for layer in range(3):
        if wiring == "bahdanau":
            inputs.append(ask(before[layer]))
        more = nothing if layer == 0 else decoder.upper[layer - 1].weight
        cell = cell_of(weights, layer, more)
        states.append(cell(torch.cat(inputs).unsqueeze(0), before[layer].unsqueeze(0))[0])
        inputs = [states[-1]]
        if wiring != "bahdanau":
            inputs.append(ask(states[-1]))
    if isinstance(decoder, Conditional):
        second = nn.GRUCell(10, 10, dtype=torch.float64)
        second.load_state_dict({name[:-3]: value for name, value in decoder.second.state_dict().items()})
        states[-1] = second(contexts[-1].unsqueeze(0), states[-1].unsqueeze(0))[0]
    decoded, following = decoder.step(Words(word), state, memory)
    torch.testing.assert_close(following.hidden[0], torch.stack(states))
    assert decoded.weights is not None
    torch.testing.assert_close(decoded.weights[0], torch.stack(shares))
    torch.testing.assert_close(decoded.features[0], decoder.readout(states[-1], word[0], contexts[-1]))
    assert decoder.heads == ("1.1", "2.1", "3.1")


@every_wiring
def test_each_layer_has_a_coverage_of_its_own(wiring: str) -> None:
    """It is the sum of the weights that the slots got in that layer."""
    made = model(f"decoder={wiring}", "attention.coverage=true", *MULTI_STEP)
    source, mask, lengths = sentences([6, 4], 23)
    memory, following = made.encode(Source(source, mask, lengths))
    total = torch.zeros(2, 3, 6, dtype=torch.float64)
    for tokens in torch.tensor([[5, 6], [7, 8], [9, 4]]):
        stepped = made.step(tokens, following, memory)
        following = stepped.state
        assert stepped.weights is not None
        total += stepped.weights
    assert isinstance(following, RecurrentState)
    torch.testing.assert_close(torch.cat(following.attention, 1), total)


@every_wiring
def test_search_keeps_the_memory_of_every_layer_for_sentences_that_are_left(wiring: str) -> None:
    made = model(f"decoder={wiring}", *MULTI_STEP)
    source, mask, lengths = sentences([6, 4, 5], 23)
    memory, state = made.encode(Source(source, mask, lengths), searching=True)
    rows = torch.tensor([2, 0])
    some = made.step(torch.tensor([5, 6]), state.select(rows), memory.select(rows))
    every = made.step(torch.tensor([6, 8, 5]), state, memory)
    torch.testing.assert_close(some.log_probs, every.log_probs[rows])


@every_wiring
def test_contexts_are_multiplied_before_search_in_the_top_layer_alone(wiring: str) -> None:
    made = model(f"decoder={wiring}", *MULTI_STEP)
    memory, _ = made.encode(Source(*sentences([4], 23)), searching=True)
    assert isinstance(memory, RecurrentMemory)
    assert memory.folded
    assert [slots.values.shape[-1] for slots in memory.lower] == [10, 10]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ((), r"decoder\.multi_step=true: needs a second layer\. Give decoder\.layers=2 or decoder\.multi_step=false"),
        (
            ("decoder.layers=2", "attention/read=hard", "attention.read.objective=enumerate"),
            r"multi_step=true has several\. Give attention\.read\.objective=sampled or decoder\.multi_step=false",
        ),
    ],
)
@every_wiring
def test_what_multi_step_attention_cannot_be_is_refused(wiring: str, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        model(f"decoder={wiring}", "decoder.multi_step=true", *overrides)


def test_a_person_pins_every_layer() -> None:
    made = model("decoder=bahdanau", *MULTI_STEP)
    source, mask, _ = sentences([6, 1, 4], 23)
    weights = made(Source(source, mask, pins=[{0: [2]}, {}, {}]), sentences([5] * 3, 29)[0]).weights
    assert weights[0, :, 0].argmax(-1).tolist() == [2, 2, 2]
    assert (weights[0, :, 0, 2] == 1).all()
