"""What every room may use: errors, files, limits, memory, processes, signals, terminal; nothing about translation."""
