"""What `scripts/benchmark.py` is made of; none of it is part of the package.

`settings` says what is measured; `rounds` leads, in a process that stays small; `crew` starts a process for each case,
in which `work` measures; `peers` runs other programs; `report` prints.
"""
