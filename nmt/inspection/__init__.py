"""The inspection room: a finished translation -> all that a person can look at, as one JSON document.

Translation -steps.inspect-> probabilities, alternatives, stages of the weights
Translation -doubt.DoubtModel.add-> how likely each word is right
search      -search_tree.BeamRecord-> the tree of hypotheses
all of it   -document.document-> JSON, for the page, programs, reports and notebooks
"""
