"""What the processes of a training draw in an update."""

import torch

from nmt.system.processes import Processes


def drawn(processes: Processes, seed: int, step: int) -> float:
    processes.seed(seed, step)
    return torch.rand(()).item()


def test_an_update_draws_by_seed_process_and_step_whatever_was_drawn_before() -> None:
    first = {
        (rank, seed, step): drawn(Processes(rank, 2), seed, step)
        for rank in (0, 1)
        for seed in (0, 1)
        for step in (0, 1)
    }
    assert len(set(first.values())) == 8
    torch.rand(7)
    assert {key: drawn(Processes(key[0], 2), *key[1:]) for key in reversed(first)} == first


def test_one_process_goes_on_with_its_random_state() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    assert [drawn(Processes(), 0, 0), drawn(Processes(), 0, 0)] == expected
