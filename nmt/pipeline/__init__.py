"""What the verbs do, from a configuration to files: training, translating, evaluating, aligning."""
