"""Inspection of finished translations: everything that can be shown about a translation, as one JSON document.

Translation -steps.inspect-> probabilities, alternatives, stages of the weights
Translation -doubt.DoubtModel.add-> confidence of each word
search      -search_tree.BeamRecord-> the tree of hypotheses
all details -document.document-> JSON, for the page, programs, reports and notebooks
"""
