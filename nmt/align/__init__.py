"""The command that links the words of sentences and their existing translations."""
