"""From the words of a command line to a checked configuration, and from a verb to its exit status. Imports no torch."""
