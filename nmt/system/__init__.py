"""Utilities for all code: errors, files, limits, memory, processes, signals, terminal; nothing about translation."""
