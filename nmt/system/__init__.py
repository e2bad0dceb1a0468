"""What every room may use: errors, files, limits, memory, processes, signals, terminal. Knows nothing of translation."""
