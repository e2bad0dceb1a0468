"""Where the whole model drops out, what decoder=none knows of the source, and who asks in bahdanau."""

import pytest
import torch

from nmt.data.batch import make_batch
from nmt.model import Source
from nmt.model.recurrent.recurrent_decoder import RecurrentState
from nmt.training.loss import batch_loss
from tests.catalogue import model, recurrent, sentences


@pytest.mark.parametrize("sampling", [0.0, 1.0], ids=["forced", "sampled"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_embeddings_and_features_drop_out_in_training_and_only_there(dropout: float, sampling: float) -> None:
    """What was dropped gets no gradient: a word's embedding, and the output layer's column of a feature."""
    made = model("model.embedding_size=40", "decoder.readout.size=40", f"model.dropout={dropout}")
    for training in (True, False):
        torch.manual_seed(3)
        made.train(training).zero_grad()
        batch_loss(made, make_batch([[5]], [[]]), scheduled_sampling=sampling).total.backward()
        rows = {"source_embedding": 5, "target_embedding": 2, "output": 3}  # the word, the beginning, any piece
        for name, row in rows.items():
            gradient = made.get_parameter(f"{name}.weight").grad
            assert gradient is not None
            dropped = int((gradient[row] == 0).sum())
            if training and dropout:
                # Half of 40, within four standard deviations of sqrt(40 / 4).
                assert 8 <= dropped <= 32, name
            else:
                assert dropped == 0, name


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], 0.4),
        (["model.output_dropout=0.1"], 0.1),
        (["model.output_dropout=0"], 0.0),
        (["encoder=conv", "decoder=conv"], 0.4),
        (["encoder=transformer", "decoder=transformer"], 0.0),
        (["encoder=transformer", "decoder=transformer", "model.output_dropout=0.1"], 0.1),
    ],
    ids=str,
)
def test_dropout_before_the_softmax(overrides: list[str], expected: float) -> None:
    """A Transformer has dropped already what its features are the sum of."""
    made = model("model.dropout=0.4", *overrides)
    assert (made.dropout.p, made.output_dropout.p) == (0.4, expected)


def test_without_attention_the_context_is_the_last_state_of_the_top_layer() -> None:
    """Both directions of torch's own GRU, each sentence alone: that is every step's input, and the readout's."""
    made = model("decoder=none", "encoder.layers=2")
    lengths = [4, 1, 3]
    source, mask, _ = sentences(lengths, 23)
    target = sentences([3] * 3, 29, seed=9)[0]
    features = made(Source(source, mask), target).features
    for row, length in enumerate(lengths):
        rnn = made.encoder.get_submodule("rnn")
        _, finals = rnn(made.source_embedding(source[row : row + 1, :length]))
        last = finals[-2:].flatten()  # forward and backward
        embedded = made.target_embedding(target[row])
        contexts = last.expand(3, -1)
        states, _ = recurrent(made).rnn(torch.cat([embedded, contexts], -1), last.unsqueeze(0))
        torch.testing.assert_close(features[row], recurrent(made).readout(states, embedded, contexts))


def test_bahdanau_asks_with_the_top_layer_of_the_state() -> None:
    made = model("decoder=bahdanau", "decoder.layers=2")
    source, mask, lengths = sentences([5], 23)
    memory, state = made.encode(Source(source, mask, lengths))
    assert isinstance(state, RecurrentState)
    for layer, changes in ((0, False), (1, True)):
        hidden = state.hidden.clone()
        hidden[:, layer] += 1
        before, after = (
            made.step(torch.tensor([7]), start, memory).weights for start in (state, state._replace(hidden=hidden))
        )
        assert before is not None
        assert after is not None
        assert torch.equal(before, after) != changes
