"""The command that links the words of existing translations."""
