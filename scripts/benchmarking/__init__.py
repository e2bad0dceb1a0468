"""What `scripts/benchmark.py` and `scripts/quality_over_time.py` are made of; none of it is part of the package.

`settings` says what is measured and `flops` counts its arithmetic; `rounds` and `quality` lead, each in one process
that stays small; `crew` starts a process a case, in which `work` measures; `peers` runs other programs; `report` prints
and draws; `commands` is what the two command lines have in common.
"""
