"""The command that translates lines: its request, its input, its output."""
