"""The command that tests whether right translations are more probable than wrong ones."""
