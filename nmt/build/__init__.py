"""Configuration or run folder -> objects: parts of models, translators, data, requests, input and output files."""
