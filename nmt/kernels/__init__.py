"""The kernels room: every fast computation beside the readable computation that defines it.

Each file has `plain_NAME`, `fast_NAME`, a function that uses `fast_NAME` if possible, and a pointer to
`docs/benchmarks.md`. With `model.fast=false` only the plain ones run. The room imports torch and nothing of `nmt`.
"""
