"""What `scripts/benchmark.py` is made of; none of it is part of the package.

`settings` says what is measured and `flops` counts its arithmetic; `rounds` leads, in one process that stays small;
`crew` starts a process a case, in which `work` measures; `peers` runs other programs; `report` prints and draws.
"""
