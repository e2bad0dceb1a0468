"""Forced decoding of existing translations: attention weights or saliency of the source pieces for each target piece.

`attention` and `saliency` return [B, H, T, S] with a row for each target piece: the attention weights of the step that
predicts this piece, or the saliency of the source pieces for it. `look` also returns the weights of self-attention.
`pins` has the pins of each sentence, () for none. The translator batches the sentences.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Pins, observing
from nmt.data.batch import Batch
from nmt.model import Decoded, Seq2Seq, Source
from nmt.model.layered import all_heads


class Forced(NamedTuple):
    """Log-probabilities [B, T] of the target tokens, zero at padding, and weights or saliency [B, H, T, S].

    `others` [B, T] has the log-probability of the most probable other token at the same place.
    """

    log_probs: Tensor
    weights: Tensor | None
    others: Tensor


class Looks(NamedTuple):
    """The weights of every kind of attention of a model, for its H heads over all layers; None for a missing kind.

    Rows are queries, columns are keys. Rows sum to one unless a window has a factor; padded keys have weight zero. Rows
    of padded queries mean nothing. Names of heads are `Encoder.heads`, `Decoder.self_heads` and `Decoder.heads`.

    encoder [B, H, S, S]: self-attention of the encoder.
    decoder [B, H, T, T]: masked self-attention of the decoder. Row t predicts target piece t. Column t is the decoder's
        input at step t: the beginning of the sentence for 0, else target piece t - 1.
    cross [B, H, T, S]: attention of the decoder to the source. If the decoder attends to previous sentences, their
        slots follow the slots of the source.
    context [B, H, T, X]: if previous sentences are merged into the slots of the source instead, the share of each
        context token in the context vector of step t: the sum over slots of the slot's weight times the token's share.
    """

    encoder: Tensor | None
    decoder: Tensor | None
    cross: Tensor | None
    context: Tensor | None = None


def look(model: Seq2Seq, batch: Batch, pins: Sequence[Pins] = ()) -> Looks:
    """Return the weights of all attention while the model reads the sources and predicts the targets."""
    with torch.no_grad(), observing(model) as seen:
        decoded: Decoded = model(Source.of(batch, pins), batch.target_in)
        before = model.before(batch.context)
    layers = [calls for name, calls in seen.items() if name.startswith("encoder.")]
    context_calls = [calls for name, calls in seen.items() if name.startswith("context.")]
    if model.context is None or before is None:
        encoder, merged = all_heads([calls[0] for calls in layers]), None
    else:
        encoder, merged = model.context.shares(layers, context_calls, batch.source_mask, before.mask)
    decoder = [
        _over_steps([call.weights for call in calls if call.weights is not None])
        for name, calls in seen.items()
        if name.startswith("decoder.") and model.get_submodule(name) not in model.decoder.source_attentions
    ]
    through = None
    if merged is not None and decoded.weights is not None:
        through = decoded.weights @ merged.unsqueeze(1).to(decoded.weights.dtype)
    return Looks(encoder, torch.cat(decoder, 1) if decoder else None, decoded.weights, through)


def _over_steps(weights: Sequence[Tensor]) -> Tensor:
    """The weights [B, H, T, T] of masked self-attention, from one tensor for all steps or one [B, H, 1, t] per step."""
    most = weights[-1].shape[-1]
    return torch.cat([nn.functional.pad(each, (0, most - each.shape[-1])) for each in weights], 2)


def attention(model: Seq2Seq, batch: Batch, pins: Sequence[Pins] = ()) -> Forced:
    """Forced decoding with attention weights; `weights` is None for a model without attention."""
    with torch.no_grad():
        decoded = model(Source.of(batch, pins), batch.target_in)
        log_probs, others = _log_probs(model, decoded, batch)
        return Forced(log_probs, decoded.weights, others)


def saliency(
    model: Seq2Seq,
    batch: Batch,
    pins: Sequence[Pins] = (),
    words: Tensor | None = None,
    check: Callable[[], None] = lambda: None,
) -> Forced:
    """Forced decoding with saliency, gradient times input: the influence of each source piece on each target piece.

    psi(x_j, y_t) = sum_d x_jd * d log p(y_t | y_<t, x) / d x_jd with x_j the embedding of source piece j: the word
    saliency of Ding, Xu and Koehn 2019, "Saliency-driven word alignment interpretation for neural machine translation",
    which is the gradient with respect to a factor that scales the embedding. Here the gradient is of log p instead of
    p, which only scales each row. Saliency has a sign, unlike the mean absolute gradient of Li et al. 2016. The result
    has one head. Each target position takes one backward pass. `words` [W, T] has the shares of the target pieces in W
    words; rows are then sums over the pieces of a word, with one pass per word. `check` is called between passes.

    The standard deviation by which LayerNorm divides is treated as a constant (Ali et al. 2022, "XAI for Transformers:
    better explanations through conservative propagation", section 4.2). A normalised vector does not depend on the
    length of its input, so otherwise the saliency would say almost nothing about the words of a pre-norm Transformer.
    """
    # cuDNN supports the backward pass of recurrent layers in training mode only.
    no_cudnn = torch.backends.cudnn.flags(enabled=False)
    with torch.enable_grad(), no_cudnn, _constant_deviations(model), model.kernels():
        embedded = model.source_embedding(batch.source).detach().requires_grad_()
        memory, state = model.encode(Source.of(batch, pins)._replace(tokens=embedded))
        decoded = model.decoder(model.target_embedding(batch.target_in), state, memory)
        log_probs, others = _log_probs(model, decoded, batch)
        rows = []
        shares = torch.eye(log_probs.shape[1], device=log_probs.device) if words is None else words
        for number, row in enumerate(shares, 1):
            check()
            # Sentences are independent, so one pass computes this position for the whole batch.
            (gradient,) = torch.autograd.grad((log_probs * row).sum(), embedded, retain_graph=number < len(shares))
            rows.append((embedded.detach() * gradient).sum(2))
    return Forced(log_probs.detach(), torch.stack(rows, 1).unsqueeze(1), others)


def _constant_deviations(model: Seq2Seq) -> contextlib.ExitStack:
    """Stop gradients through the standard deviations of layer normalisation until the context ends."""

    def normalised(norm: nn.Module, arguments: tuple[Tensor, ...], _: Tensor) -> Tensor:
        assert isinstance(norm, nn.LayerNorm)
        centred = arguments[0] - arguments[0].mean(-1, keepdim=True)
        deviations = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt().detach()
        return centred / deviations * norm.weight + norm.bias

    hooks = contextlib.ExitStack()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            hooks.enter_context(module.register_forward_hook(normalised))
    return hooks


def _log_probs(model: Seq2Seq, decoded: Decoded, batch: Batch) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the target tokens and of the most probable other tokens, [B, T] each, zero at padding."""
    mask = batch.target_mask
    log_probs = torch.log_softmax(model.target_logits(decoded, mask), -1)
    targets = batch.target_out[mask].unsqueeze(1)
    at_targets = log_probs.gather(1, targets).squeeze(1)
    others = log_probs.detach().scatter(1, targets, float("-inf")).amax(-1)
    padded = at_targets.new_zeros(mask.shape)
    return padded.masked_scatter(mask, at_targets), padded.masked_scatter(mask, others)
