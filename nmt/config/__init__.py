"""From the words of a command line to a checked configuration: composition, messages, help, exit status."""
