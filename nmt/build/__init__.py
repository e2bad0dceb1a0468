"""Configuration or run folder -> objects: parts of a model, translators, data, requests, files of a command."""
