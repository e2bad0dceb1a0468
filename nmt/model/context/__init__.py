"""What was said before: mechanisms that show a model the previous sentences of its source's document."""
