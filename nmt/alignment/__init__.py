"""The alignment room: what a word is, weights over words, links read off them, and their agreement with gold."""
