"""The command that translates lines and documents: its request, its input, its output."""
