"""The kernels room: every computation that has a fast form, beside the readable one that defines it.

Each file holds `plain_NAME`, `fast_NAME`, a function that takes the fast one where it applies, and a pointer to
`docs/benchmarks.md`. With `model.fast=false` only the plain ones run. The room knows torch and nothing of `nmt`.
"""
