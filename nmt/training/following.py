"""Training in several processes: how they start alike, which batches each of them takes, and what a follower does."""

import io
from typing import Any

import torch

from nmt.data.batch import Batch
from nmt.data.token_batches import TokenBatches
from nmt.memory import give_memory_back
from nmt.processes import Order, Processes, Task
from nmt.signals import handling, stop_signals
from nmt.training.learner import Learner

#: Steps between returns of free memory to the system: about every half minute, for some tenths of a second.
TIDY_EVERY = 100


def start(learner: Learner, state: dict[str, Any] | None = None) -> None:
    """Give every process the leader's weights and, where the leader resumes from a state, all else that it has.

    Args:
        learner: of this process.
        state: the state from which the leader resumes.
    """
    processes = learner.processes
    if processes.count == 1:
        return
    file = io.BytesIO()
    if state is not None:
        learned = {key: value for key, value in learner.state().items() if key != "averaging"}
        torch.save(learned, file)
    sent = io.BytesIO(processes.share(file.getvalue()))
    processes.equalise(list(learner.model.parameters()))
    if processes.leads or not sent.getvalue():
        return
    received = torch.load(sent, map_location="cpu", weights_only=True)
    learner.restore({**received, "averaging": learner.averaging.state_dict()})


def own_batches(batches: TokenBatches, order: Order, processes: Processes) -> list[Batch]:
    """The share of a follower in the batches of an update: every `processes.count`-th, from its rank on."""
    plan = batches.plan(order.epoch)[order.batch : order.batch + order.batches]
    return [batches.collate(indices, order.epoch) for indices in plan[processes.rank :: processes.count]]


def follow(learner: Learner, batches: TokenBatches, seed: int) -> None:
    """Make the leader's updates until it stops; signals are left to the leader, whom they reach as well.

    Args:
        learner: a model that is built like the leader's.
        batches: the training batches, those of the leader.
        seed: of the run.

    Raises:
        LostProcessError: another process has ended.
    """
    processes = learner.processes
    start(learner)
    learner.model.train()
    with handling(stop_signals(), lambda *_: None):
        while (order := processes.receive()).task != Task.STOP:
            processes.seed(seed, order.step)
            learner.update(own_batches(batches, order, processes), order.step, order.share)
            if order.step % TIDY_EVERY == 0 and not learner.compute.on_gpu:
                give_memory_back()
