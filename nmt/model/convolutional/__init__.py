"""The family of Gehring et al. 2017: gated convolutions with attention to the source in every decoder layer."""
