"""What must hold for every wiring, score and readout, found through their yaml."""

import itertools
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.kernels import attentive_gru, input_feeding_gru, plain
from nmt.model import Decoded, Encoded, Seq2Seq, Source
from nmt.model.recurrent.bahdanau import Bahdanau
from nmt.model.recurrent.conditional import Conditional
from nmt.model.recurrent.first_state import FirstState
from nmt.model.recurrent.luong import Luong
from tests.catalogue import (
    READS,
    SCORES,
    WINDOWED,
    WIRED_READOUTS,
    WIRINGS,
    WITH_ATTENTION,
    model,
    recurrent,
    searched,
    sentences,
    thinned,
)

#: Attention in every layer.
MULTI_STEP = ("decoder.layers=3", "decoder.multi_step=true")
COMBINATIONS = [
    *((f"decoder={wiring}", f"attention/score={score}") for wiring, score in itertools.product(WITH_ATTENTION, SCORES)),
    *((f"decoder={wiring}", "attention.heads=2") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", "attention.project=true") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", "attention/score=scaled_dot", "attention.project=false") for wiring in WITH_ATTENTION),
    ("decoder=luong", "attention.project=true", "attention/read=hard", "attention.read.objective=enumerate"),
    *((f"decoder={wiring}", "decoder.layers=3") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *window) for wiring in WITH_ATTENTION for window in WINDOWED),
    *((f"decoder={wiring}", f"attention/read={read}") for wiring in WITH_ATTENTION for read in READS),
    *((f"decoder={wiring}", "attention.coverage=true", "attention.heads=2") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", "attention/read=hard", "attention.read.objective=enumerate") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", f"decoder/readout={readout}") for wiring, readout in WIRED_READOUTS if wiring != "none"),
    *((f"decoder={wiring}", f"decoder.first_state={kind}") for wiring in WITH_ATTENTION for kind in FirstState.KINDS),
    *((f"decoder={wiring}", "encoder=lstm", "encoder.layers=2") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", "encoder.bidirectional=false", "decoder.size=5") for wiring in WITH_ATTENTION),
    # Queries of another size than what is remembered, which a dot product cannot have without heads.
    *((f"decoder={wiring}", "decoder.size=13") for wiring in WIRINGS),
    *((f"decoder={wiring}", "decoder.size=13", "decoder.first_state=last") for wiring in WIRINGS),
    *(
        (f"decoder={wiring}", "decoder.size=13", "attention/score=dot", "attention.heads=2")
        for wiring in WITH_ATTENTION
    ),
    *((f"decoder={wiring}", "decoder.size=13", "attention/score=general") for wiring in WITH_ATTENTION),
    ("decoder=bahdanau", "decoder.size=13", "attention/score=concat"),
    ("decoder=luong", "decoder.size=13", "attention/score=general", "decoder.readout.word=true"),
    ("decoder=luong", "attention/score=dot"),
    ("decoder=luong", "decoder.size=13", "attention/score=location", "attention/window=local_p"),
    ("decoder=luong", "decoder.size=13", "decoder.input_feeding=false"),
    ("decoder=bahdanau", "attention/window=forced", "attention.window.slots=[0,[1,2],null,5]"),
    ("decoder=luong", "decoder.input_feeding=false"),
    ("decoder=luong", "decoder.input_feeding=false", "attention.coverage=true"),
    ("decoder=luong", "decoder.input_feeding=false", "attention/read=hard"),
    ("decoder=luong", "decoder.input_feeding=false", "attention/read=hard", "attention.read.objective=enumerate"),
    ("decoder=luong", "decoder.input_feeding=false", "attention/window=local_m", "attention.window.radius=1"),
    ("decoder=bahdanau", "decoder.previous_state=true"),
    ("decoder=conditional", "attention/score=concat"),
    ("decoder=conditional", "decoder/readout=tanh", "decoder.readout.word=true"),
    *((f"decoder={wiring}", *MULTI_STEP) for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "decoder.layers=2") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "attention/score=general", "decoder.size=13") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "attention.coverage=true") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "attention.heads=2") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "attention/read=hard") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "attention/window=local_p") for wiring in WITH_ATTENTION),
    *((f"decoder={wiring}", *MULTI_STEP, "encoder=conv") for wiring in WITH_ATTENTION),
    ("decoder=luong", *MULTI_STEP, "decoder.input_feeding=false"),
    ("decoder=luong", *MULTI_STEP, "decoder.input_feeding=false", "attention.coverage=true"),
    ("decoder=luong", *MULTI_STEP, "decoder.input_feeding=false", "attention.heads=2"),
    ("decoder=bahdanau", *MULTI_STEP, "decoder.previous_state=true"),
    ("decoder=none",),
    ("decoder=none", "decoder.summary=first"),
    ("decoder=none", "decoder.layers=2", "decoder/readout=tanh"),
]
every = pytest.mark.parametrize("overrides", thinned(COMBINATIONS, 2), ids=" ".join)
# Drawing slots makes training random; what it does is tested in tests/training/test_hard_attention.py.
certain = [own for own in COMBINATIONS if "attention/read=hard" not in own]
every_certain = pytest.mark.parametrize("overrides", thinned(certain, 2), ids=" ".join)

LENGTHS = [6, 1, 4]


def run(made: Seq2Seq, source: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, Decoded]:
    """Log-probabilities [B, T, V] and what was decoded."""
    decoded: Decoded = made(Source(source, mask), target)
    if decoded.mixture is None:
        return torch.log_softmax(made.logits(decoded.features), -1), decoded
    everywhere = torch.ones(target.shape, dtype=torch.bool)
    return made.target_logits(decoded, everywhere).unflatten(0, target.shape), decoded


def targets(batch: int = 3, steps: int = 5) -> Tensor:
    return sentences([steps] * batch, 29, seed=9)[0]


@every
def test_padding_changes_nothing(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    source, mask, _ = sentences(LENGTHS, 23)
    before, _ = run(made, source, mask, targets())
    wider_mask = nn.functional.pad(mask, (0, 2))
    wider = nn.functional.pad(source, (0, 2)).masked_fill(~wider_mask, 17)
    after, decoded = run(made, wider, wider_mask, targets())
    torch.testing.assert_close(before, after)
    if decoded.weights is not None:
        assert (decoded.weights.masked_select(~wider_mask[:, None, None]) == 0).all()


@every
def test_step_by_step_equals_the_whole_sequence(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    source, mask, lengths = sentences(LENGTHS, 23)
    target = targets()
    decoded = run(made, source, mask, target)[1]
    whole = searched(made, decoded)
    memory, state = made.encode(Source(source, mask, lengths))
    for t in range(target.shape[1]):
        stepped = made.step(target[:, t], state, memory)
        state = stepped.state
        torch.testing.assert_close(stepped.log_probs, whole[:, t].float())
        if decoded.weights is None:
            assert stepped.weights is None
        else:
            assert stepped.weights is not None
            torch.testing.assert_close(stepped.weights, decoded.weights[:, :, t])


def test_every_wiring_that_has_a_fast_path_is_compared_with_its_reference() -> None:
    compared = {own[0] for own in certain if recurrent(model(*own)).has_fast_path}
    assert compared == {"decoder=bahdanau", "decoder=conditional", "decoder=luong", "decoder=none"}


@pytest.mark.long
def test_no_model_goes_step_by_step_that_need_not() -> None:
    for own in certain:
        decoder = recurrent(model(*own))
        if isinstance(decoder, Luong) and not decoder.input_feeding:
            expected = not decoder.attention.coverage
        elif isinstance(decoder, Luong | Bahdanau | Conditional):  # which attentions are fused is tested below
            expected = decoder.attends_plainly and decoder.has_fast_path
        else:
            expected = True
        assert decoder.has_fast_path == expected, own
        with plain():
            assert not decoder.has_fast_path, own


@pytest.mark.parametrize("overrides", [own for own in certain if recurrent(model(*own)).has_fast_path], ids=" ".join)
def test_the_fast_path_equals_the_reference(overrides: tuple[str, ...]) -> None:
    """Losses, weights and every gradient, with padding on both sides."""
    results = []
    for fast in ("true", "false"):
        made = model(*overrides, f"model.fast={fast}", train=True)
        source, mask, _ = sentences(LENGTHS, 23)
        log_probs, decoded = run(made, source, mask, targets())
        loss = log_probs.gather(2, targets().unsqueeze(2)).sum()
        if decoded.weights is not None:  # something that looks at the weights must get its gradient too
            loss = loss + (decoded.weights**2).sum()
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in made.named_parameters()}
        results.append((log_probs.detach(), gradients, decoded.weights))
    torch.testing.assert_close(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][2], results[1][2])
    for name, gradient in results[0][1].items():
        assert (gradient is None) == (results[1][1][name] is None), name
        if gradient is not None:
            torch.testing.assert_close(gradient, results[1][1][name], msg=name)


def test_the_fast_path_gives_no_weight_where_there_is_nothing_to_look_at() -> None:
    made = model("decoder=bahdanau")
    values, mask = torch.randn(2, 4, 10, dtype=torch.float64), torch.tensor([[True] * 4, [False] * 4])
    memory, state = made.decoder.start(Encoded(values, mask, last=values[:, :1]))
    assert recurrent(made).has_fast_path
    weights = made.decoder(torch.randn(2, 3, 7, dtype=torch.float64), state, memory).weights
    torch.testing.assert_close(weights[:, 0].sum(2), torch.tensor([[1.0] * 3, [0.0] * 3], dtype=torch.float64))


@every
def test_a_batch_equals_its_sentences_one_by_one(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    source, mask, _ = sentences(LENGTHS, 23)
    whole, _ = run(made, source, mask, targets())
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        alone, _ = run(made, source[one, :length], mask[one, :length], targets()[one])
        torch.testing.assert_close(alone[0], whole[row])


@every
def test_rows_of_a_beam_share_the_memory(overrides: tuple[str, ...]) -> None:
    """N = B * K rows against a memory of B sentences give what each row gives alone."""
    made = model(*overrides)
    source, mask, lengths = sentences(LENGTHS, 23)
    memory, state = made.encode(Source(source, mask, lengths))
    hypotheses = 4
    rows = torch.arange(3).repeat_interleave(hypotheses)
    tokens = sentences([12], 29, seed=4)[0][0]
    first = made.step(tokens, state.select(rows), memory)
    second = made.step(tokens.flip(0), first.state, memory)
    for row in range(12):
        sentence = slice(row // 4, row // 4 + 1)
        own_memory, own_state = made.encode(Source(source[sentence], mask[sentence], lengths[sentence]))
        own = made.step(tokens[row : row + 1], own_state, own_memory)
        own = made.step(tokens.flip(0)[row : row + 1], own.state, own_memory)
        torch.testing.assert_close(own.log_probs[0], second.log_probs[row])


#: What other modules hold their decoders to.
every_property = pytest.mark.parametrize(
    "holds",
    [
        test_padding_changes_nothing,
        test_step_by_step_equals_the_whole_sequence,
        test_a_batch_equals_its_sentences_one_by_one,
        test_rows_of_a_beam_share_the_memory,
    ],
)


@every_certain
def test_every_parameter_gets_a_gradient(overrides: tuple[str, ...]) -> None:
    made = model(*overrides, train=True)
    source, mask, _ = sentences(LENGTHS, 23)
    log_probs, _ = run(made, source, mask, targets())
    log_probs[..., 3].sum().backward()
    unused = {name for name, parameter in made.named_parameters() if parameter.grad is None}
    assert unused == set(), "no gradient: refuse this combination, and add the pair to USELESS if a readout is why"


def agrees_with_finite_differences(made: Seq2Seq, *names: str) -> None:
    """Whether the gradients of these parameters are right, for a model of 7 and 5 pieces."""
    source, mask, _ = sentences([3, 1], 7)
    target = sentences([2, 2], 5)[0]
    parameters = dict(made.named_parameters())

    def loss(*values: Tensor) -> Tensor:
        own = dict(zip(names, values, strict=True))
        features: Tensor = torch.func.functional_call(made, own, (Source(source, mask), target)).features
        return (features**2).sum(-1)[:, -1] + features[:, -1, 0]

    inputs = tuple(parameters[name].detach().clone().requires_grad_() for name in names)
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_gradients_of_the_whole_model_agree_with_finite_differences(wiring: str) -> None:
    names = ("decoder.rnn.bias_hh_l0", "encoder.rnn.bias_ih_l0", "decoder.readout.linear.weight")
    agrees_with_finite_differences(model(f"decoder={wiring}", pieces=(7, 5)), *names)


def sees_no_later_word(overrides: tuple[str, ...]) -> None:
    """Another target word changes the features of its step, and of none before it."""
    made = model(*overrides)
    for position in range(5):
        changed = changed_by_a_word(made, position)
        assert not changed[:, :position].any()
        assert changed[:, position].all()


def changed_by_a_word(made: Seq2Seq, position: int, steps: int = 5) -> Tensor:
    """Whether another target word at `position` changes the features of each step, [B, T]."""
    source, mask, _ = sentences(LENGTHS, 23)
    target = targets(steps=steps)
    other = target.clone()
    other[:, position] = 4 + (target[:, position] - 3) % 25
    before, after = (made(Source(source, mask), words).features for words in (target, other))
    changed: Tensor = (before - after).abs().amax(2) > 1e-12
    return changed


@pytest.mark.parametrize(
    ("wiring", "module", "name"),
    [
        ("bahdanau", attentive_gru, "fast_attentive_gru"),
        ("conditional", attentive_gru, "fast_attentive_gru"),
        ("luong", input_feeding_gru, "fast_input_feeding_gru"),
    ],
    ids=["bahdanau", "conditional", "luong"],
)
def test_the_fused_recurrence_is_used_where_it_can_be(
    wiring: str, module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fused recurrence runs for additive scores and dot products as they come, and for nothing else."""
    called: list[str] = []

    def spy(*arguments: Any) -> Any:
        called.append("fused")
        return fused(*arguments)

    fused = getattr(module, name)
    monkeypatch.setattr(module, name, spy)
    combinations = set()
    for overrides in [(f"attention/score={score}",) for score in SCORES] + [
        *WINDOWED,
        *((f"attention/read={read}",) for read in READS),
        ("attention.coverage=true",),
        ("attention.heads=2",),
        ("decoder.layers=2",),
        ("attention.dropout=0.1",),
        ("attention.project=true",),
        ("model.fast=false",),
        *([("decoder/readout=maxout",)] if wiring == "luong" else []),
    ]:
        called.clear()
        source, mask, _ = sentences(LENGTHS, 23)
        model(f"decoder={wiring}", *overrides, train=True)(Source(source, mask), targets())
        if called:
            combinations.add(overrides[0])
    assert combinations == {
        *(f"attention/score={score}" for score in ("additive", "concat", "general", "dot")),
        *("attention/window=global", "attention/read=soft"),
    }
