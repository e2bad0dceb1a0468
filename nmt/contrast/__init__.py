"""The command that tests whether correct translations are more probable than wrong translations."""
