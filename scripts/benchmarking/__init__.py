"""The parts of `scripts/benchmark.py`, which are not part of the package.

`settings` defines the measurements. `rounds` controls them, in a process that stays small. `crew` starts a process for
each case, in which `work` measures. `peers` runs other programs, and `report` prints.
"""
