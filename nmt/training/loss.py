"""The loss: label-smoothed cross-entropy over real target tokens, and the terms of the attention mechanism."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import LOG_PROB, Read
from nmt.data.batch import Batch
from nmt.kernels.cross_entropy import smoothed_cross_entropy
from nmt.kernels.r_drop import r_drop_loss
from nmt.model import Seq2Seq, Source, real_steps
from nmt.model.contract import Decoded
from nmt.training.guidance import guided_alignment, guided_heads
from nmt.training.settings import TrainerSettings

#: The share of tokens that SimCut cuts (Gao et al. 2022, section 4.1).
CUT = 0.05


class Loss(NamedTuple):
    """Sums over a batch's real target tokens: loss, negative log-likelihood without smoothing, number of tokens."""

    total: Tensor
    negative_log_likelihood: Tensor
    tokens: int


def score_function(log_prob: Tensor, rewards: Tensor, mask: Tensor, baseline: float | Tensor, carried: bool) -> Tensor:
    """The score-function term of the loss (Xu et al. 2015, eq. 12 and 13): its value is zero, its gradient is not.

    The gradient of -sum_t log p(y_t) treats the samples as constants. With this term added, its expectation over the
    samples is the gradient of the expected loss, for any baseline.

    Args:
        log_prob: [B, T] log-probability of each step's sample.
        rewards: log p(y_t), 0 at padding. A sample's advantage is its reward minus the baseline.
        mask: true where the target is real.
        baseline: the expected log p(y_t), one for all steps or [B, T].
        carried: whether a sample also influences later steps, so that its reward includes theirs.
    """
    advantages = (rewards - baseline) * mask
    if carried:
        advantages = advantages.flip(1).cumsum(1).flip(1)
    return -(advantages.detach() * mask * (log_prob - log_prob.detach())).sum()


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    label_smoothing: float = 0.0,
    scheduled_sampling: float = 0.0,
    baseline: float | Tensor = 0.0,
    guided: float = 0.0,
    r_drop: float = 0.0,
    simcut: float = 0.0,
    guided_head: str | None = None,
) -> Loss:
    """The loss of a batch, with teacher forcing unless `scheduled_sampling` > 0; it is zero at padding.

    `baseline` is the expected log p(y_t), for mechanisms that sample. Their reward is the log-likelihood without label
    smoothing. `guided` is the weight of the guided-alignment loss, if the batch has links. `guided_head` selects its
    heads (see `guided_heads`).

    With `r_drop`, each pair passes twice with separate dropout, and the loss is half of L_NLL + r_drop L_KL (Liang et
    al. 2021, eq. 1 to 4): the mean of both losses, and r_drop / 4 times the sum of both divergences.

    With `simcut`, the second pass sees the pairs without some tokens, and the loss is L_CE of the first pass p plus
    simcut KL(p || q) (Gao et al. 2022, section 3.2). Attention terms are the mean over both passes.
    """
    twice = bool(r_drop or simcut)
    if twice:
        batch = batch.twice()
    with cut_tokens(model) if simcut else contextlib.nullcontext():
        weights = bool(guided and batch.links.numel())
        decoded = model(Source.of(batch), batch.target_in, scheduled_sampling, weights=weights)
    targets = real_steps(batch.target_out, batch.real_targets)
    real = batch.target_mask.flatten() if batch.has_every_place else None
    with model.kernels():
        logits = model.target_logits(decoded, batch.real_targets, as_computed=True)
        if simcut:
            total, plain = r_drop_loss(logits, targets, label_smoothing, simcut, real, cut=True)
            total = 2 * total  # cancels the division below: only the first pass has a cross-entropy
        elif r_drop:
            total, plain = r_drop_loss(logits, targets, label_smoothing, r_drop, real)
        else:
            total, plain = smoothed_cross_entropy(logits, targets, label_smoothing, real)
    for term in _terms(model, batch, decoded, plain, baseline, guided, guided_head):
        total = total + term
    likelihood = 2 * plain.chunk(2)[0].sum() if simcut else plain.sum()  # only pairs without cut tokens count
    loss = Loss(total, likelihood, targets.shape[0])
    return Loss(loss.total / 2, loss.negative_log_likelihood / 2, loss.tokens // 2) if twice else loss


def training_loss(model: Seq2Seq, batch: Batch, settings: TrainerSettings, baseline: float | Tensor) -> Loss:
    """The loss of a batch with the settings of a training; see `batch_loss`."""
    return batch_loss(
        model,
        batch,
        settings.label_smoothing,
        settings.scheduled_sampling,
        baseline,
        guided=settings.guided_alignment,
        r_drop=settings.r_drop,
        simcut=settings.simcut,
        guided_head=settings.guided_head,
    )


def cut_tokens(model: Seq2Seq, share: float = CUT) -> contextlib.ExitStack:
    """Zero the embeddings of a random share of the tokens, of both sides, in the second half of each batch."""

    def cut(_embedding: nn.Module, _tokens: object, embedded: Tensor) -> Tensor:
        first, second = embedded.chunk(2)
        remains = torch.rand(second.shape[:-1], device=second.device) >= share
        return torch.cat([first, second * remains.unsqueeze(-1)])

    hooks = contextlib.ExitStack()
    for each in {model.source_embedding, model.target_embedding}:
        hooks.enter_context(each.register_forward_hook(cut))
    return hooks


def _terms(
    model: Seq2Seq,
    batch: Batch,
    decoded: Decoded,
    plain: Tensor,
    baseline: float | Tensor,
    guided: float,
    guided_head: str | None,
) -> Iterator[Tensor]:
    """The terms to add to the cross-entropy: those of the attention, and the guided-alignment loss."""
    mask = batch.target_mask
    for name, term in decoded.terms.items():
        if name == LOG_PROB:
            rewards = batch.padded(-plain.to(term.dtype))
            compared = (
                soft_rewards(model, batch) if any(read.baseline == "soft" for read in _draws(model)) else baseline
            )
            yield score_function(term, rewards, mask, compared, model.decoder.carries_contexts)
        else:
            yield (term * mask).sum()
    if guided and batch.links.numel() and decoded.weights is not None:
        heads = guided_heads(model.decoder.heads, guided_head)
        source_weights = decoded.weights[..., : batch.links.shape[-1]]  # later slots are document context
        yield guided * guided_alignment(source_weights, batch.links, heads).sum()


def _draws(model: Seq2Seq) -> list[Read]:
    return [module for module in model.modules() if isinstance(module, Read) and module.draws]


def soft_rewards(model: Seq2Seq, batch: Batch) -> Tensor:
    """log p(y_t) [B, T] with soft attention instead of draws, without dropout and gradients; 0 at padding."""
    training = model.training
    for read in _draws(model):
        read.softly = True
    model.eval()
    try:
        with torch.no_grad():
            decoded = model(Source.of(batch), batch.target_in, weights=False)
            log_probs = torch.log_softmax(model.target_logits(decoded, batch.real_targets), -1)
    finally:
        model.train(training)
        for read in _draws(model):
            read.softly = False
    targets = real_steps(batch.target_out, batch.real_targets)
    of_targets = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return batch.padded(of_targets)
