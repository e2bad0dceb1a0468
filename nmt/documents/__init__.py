"""Documents to translate: readers of file formats, and writers that change nothing but the translated text."""
