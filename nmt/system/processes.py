"""The processes of one command that torchrun starts, on one or several machines: their ranks and their communication.

Every process holds the complete model. Process 0 is the leader: it decides, validates and writes; the others follow.
"""

import contextlib
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from nmt.system.errors import UserError

#: Followers must wait for long validations. A dead process is noticed at once, since its connection closes.
_PATIENCE = timedelta(days=7)
#: Maximum seconds for one attempt to connect to the leader.
_TRIAL = 5.0


class LostProcessError(UserError):
    """Another process of the command has ended."""


@dataclass(frozen=True)
class Processes:
    """The processes of a command, seen from one of them.

    Attributes:
        rank: rank of this process, 0 for the leader.
        count: number of processes.
    """

    rank: int = 0
    count: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process decides, validates and writes."""
        return self.rank == 0

    def seed(self, seed: int, step: int) -> None:
        """Seed the random numbers of this process for an update, such as dropout; a single process is not seeded.

        A process then draws the same numbers in this update even if the processes were restarted before.
        """
        if self.count > 1:
            (drawn,) = np.random.SeedSequence((seed, self.rank, step)).generate_state(1, np.uint64)
            torch.manual_seed(int(drawn))

    @contextlib.contextmanager
    def leading(self) -> Iterator[contextlib.ExitStack]:
        """Lead the other processes. They get None from `share` when the context ends or the stack is closed."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._stop)
            yield stack

    def _stop(self) -> None:
        with contextlib.suppress(LostProcessError):
            self.share(None)

    def share(self, value: Any = None) -> Any:
        """Broadcast the leader's value; return it in every process."""
        if self.count == 1:
            return value
        values = [value]
        with _connected():
            dist.broadcast_object_list(values)
        return values[0]

    def gather(self, value: Any) -> list[Any]:
        """Gather the values of all processes: the leader gets them by rank, the others get an empty list."""
        if self.count == 1:
            return [value]
        values: list[Any] | None = [None] * self.count if self.leads else None
        with _connected():
            dist.gather_object(value, values)
        return values or []

    def equalise(self, model: torch.nn.Module) -> None:
        """Broadcast the leader's weights to the models of all processes."""
        with _connected():
            for weight in model.parameters() if self.count > 1 else ():
                dist.broadcast(weight.data, 0)

    def total(self, number: int) -> int:
        """The sum of a number over the processes."""
        if self.count == 1:
            return number
        numbers = torch.tensor(number)
        with _connected():
            dist.all_reduce(numbers)
        return int(numbers)

    def sum_in_place(self, numbers: torch.Tensor) -> None:
        """Replace numbers, the same count in all processes, by their sums; the host does not wait for a GPU."""
        if self.count > 1:
            with _connected():
                dist.all_reduce(numbers)

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter], further: Sequence[float]) -> list[float]:
        """Replace gradients by their sums over the processes; return the sums of further numbers.

        All sums take one exchange. A parameter without a gradient in any process keeps None. `DistributedDataParallel`
        would deadlock if a process has no batch in an update, or halves a batch because its memory is full.
        """
        if self.count == 1:
            return list(further)
        device = parameters[0].device
        there = [float(parameter.grad is not None) for parameter in parameters]
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in parameters
        ]
        numbers = torch.tensor([*there, *further], dtype=torch.float32, device=device)
        flat = torch.cat([*(gradient.reshape(-1) for gradient in gradients), numbers])
        with _connected():
            dist.all_reduce(flat)
        sizes = [parameter.numel() for parameter in parameters]
        *parts, numbers = flat.split([*sizes, len(numbers)])
        values: list[float] = numbers.tolist()
        for parameter, part, holders in zip(parameters, parts, values, strict=False):
            parameter.grad = part.view_as(parameter) if holders else None
        return values[len(parameters) :]


ALONE = Processes()


@contextlib.contextmanager
def joined() -> Iterator[Processes]:
    """Connect the processes of torchrun while the context is open; yield `ALONE` without torchrun.

    Tensors are sent by gloo on CPUs and by NCCL on GPUs.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    rank = int(os.environ["RANK"])
    with _connected(), _store(rank) as store:
        dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=_PATIENCE)
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        with contextlib.suppress(RuntimeError):  # the connection is lost already
            dist.destroy_process_group()


@contextlib.contextmanager
def _store(rank: int) -> Iterator[Any]:
    """The store in which processes exchange their addresses; None for torch's default.

    The store of torchrun survives a restart, together with the addresses of ended processes (pytorch issue 135712). So
    each start uses its own name in the store. The leader writes this name there, and a port on which it listens until
    all are connected. While no process listens at the port, the name is from an earlier start, and the others retry.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        yield None
        return
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

    host = os.environ["MASTER_ADDR"]
    shared = TCPStore(host, int(os.environ["MASTER_PORT"]), is_master=False, timeout=_PATIENCE)
    with contextlib.ExitStack() as stack:
        if rank == 0:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            both = family == socket.AF_INET6
            listening = stack.enter_context(socket.create_server(("", 0), family=family, dualstack_ipv6=both))
            shared.set("nmt/leader", f"{listening.getsockname()[1]} {uuid.uuid4().hex}")
        while True:
            port, name = shared.get("nmt/leader").decode().split()
            if _listens(host, int(port)):
                break
            time.sleep(0.1)
        yield PrefixStore(f"nmt/{name}", shared)


def _listens(host: str, port: int) -> bool:
    """Whether a process listens at a port."""
    try:
        with socket.create_connection((host, port), timeout=_TRIAL):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def _connected() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch raises DistBackendError for NCCL, RuntimeError for gloo
        # The library's message begins with a location in its source code.
        reason = re.sub(r"^\[\S+\] ", "", str(error).splitlines()[0]).partition(". ")[0][:200]
        raise LostProcessError(
            f"The connection to another process of this command is lost ({reason}). See that process's messages, then "
            "start all of them again with resume=auto, training also with the run's name=."
        ) from error
