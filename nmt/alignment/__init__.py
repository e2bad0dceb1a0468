"""Word alignment: words of texts, weights over words, links from weights, and their agreement with gold links."""
