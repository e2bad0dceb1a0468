"""Document context: mechanisms that show a model the previous sentences of the source document."""
