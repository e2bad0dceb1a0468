"""Training in several processes: the leader's orders, and how the other processes follow them."""

from typing import Any, NamedTuple

from nmt.data.shapes import Shape
from nmt.data.token_batches import TokenBatches
from nmt.system.memory import give_memory_back
from nmt.system.signals import handling, stop_signals
from nmt.training.learner import Learner

#: Steps between returns of free memory to the system: about every half minute; a return takes some tenths of a second.
TIDY_EVERY = 100


class Order(NamedTuple):
    """An update that the leader shares with the other processes; None ends the training.

    Attributes:
        epoch: the epoch of the batches.
        batch: the number in the epoch of the first batch.
        batches: the number of batches for all processes.
        step: the number of the update.
        share: the used share of the budget.
    """

    epoch: int
    batch: int
    batches: int
    step: int
    share: float


def use_shapes(batches: TokenBatches, learner: Learner, state: dict[str, Any] | None) -> None:
    """Use batches of few shapes if updates have fixed shapes on this device.

    The current epoch of a resumed `state` keeps the batches with which it began, even on another device.
    """
    known = [] if state is None else [Shape(*sizes) for sizes in state["shapes"]]
    if state is not None:
        batches.keep_shapes(state["epoch"], known)
    if learner.fixed is None:
        return
    batches.fix_shapes()
    learner.fixed.shapes = batches.shapes(state["epoch"] + 1 if state is not None else 0)


def follow(learner: Learner, batches: TokenBatches, seed: int, state: dict[str, Any] | None) -> None:
    """Make the leader's updates until the leader stops. Signals are ignored, because they reach the leader as well.

    Args:
        learner: built like the leader's learner.
        batches: the same training batches as the leader's.
        seed: the seed of the run.
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
                learner.read()  # discards the numbers: the leader shows them
                if not learner.compute.on_gpu:
                    give_memory_back()
