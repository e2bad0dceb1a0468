"""Training in several processes: what the leader tells the others, and what they do."""

from typing import Any, NamedTuple

from nmt.data.shapes import Shape
from nmt.data.token_batches import TokenBatches
from nmt.system.memory import give_memory_back
from nmt.system.signals import handling, stop_signals
from nmt.training.learner import Learner

#: Steps between returns of free memory to the system: about every half minute, for some tenths of a second.
TIDY_EVERY = 100


class Order(NamedTuple):
    """An update that the leader shares with the other processes; None ends the training.

    Attributes:
        epoch: whose batches are next.
        batch: number of the first of them in the epoch.
        batches: how many there are for all processes.
        step: number of the update.
        share: of the budget that is used.
    """

    epoch: int
    batch: int
    batches: int
    step: int
    share: float


def use_shapes(batches: TokenBatches, learner: Learner, state: dict[str, Any] | None) -> None:
    """Fill batches of few shapes if the updates of this device are to have them.

    The current epoch of a `state` goes on with the batches that it began with, wherever that was.
    """
    known = [] if state is None else [Shape(*sizes) for sizes in state["shapes"]]
    if state is not None:
        batches.keep_shapes(state["epoch"], known)
    if learner.fixed is None:
        return
    batches.fix_shapes()
    learner.fixed.shapes = batches.shapes(state["epoch"] + 1 if state is not None else 0)


def follow(learner: Learner, batches: TokenBatches, seed: int, state: dict[str, Any] | None) -> None:
    """Make the leader's updates until it stops; signals are left to the leader, whom they reach as well.

    Args:
        learner: a model that is built like the leader's.
        batches: the training batches, those of the leader.
        seed: of the run.
        state: the state from which the leader resumes; None at the start of a training.

    Raises:
        LostProcessError: another process has ended.
    """
    processes = learner.processes
    use_shapes(batches, learner, None)
    if state is not None:
        use_shapes(batches, learner, state)
        learner.restore({**state, "averaging": learner.averaging.state_dict()})
    processes.equalise(learner.model)
    learner.model.train()
    order: Order | None
    with handling(stop_signals(), lambda *_: None):
        while (order := processes.share()) is not None:
            processes.seed(seed, order.step)
            plan = batches.plan(order.epoch)[order.batch : order.batch + order.batches]
            group = [batches.collate(indices, order.epoch) for indices in plan[processes.rank :: processes.count]]
            learner.update(group, order.step, order.share)
            if order.step % TIDY_EVERY == 0:
                learner.read()  # the leader shows the numbers
                if not learner.compute.on_gpu:
                    give_memory_back()
