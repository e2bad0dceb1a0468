"""Drawing of attention maps and plots, with text in any script."""
