"""The family of Vaswani et al. 2017: layers of self-attention, attention to the source and feed-forward networks."""
