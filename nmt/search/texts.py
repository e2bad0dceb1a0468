"""Merging of hypotheses with equal texts: among the tokenisations of a text, the search keeps only the best."""

from collections.abc import Sequence

from torch import Tensor


class Merging:
    """The text of each row of a search, and the best log-probability of each text that a sentence has reached."""

    def __init__(self, shows: Sequence[bytes], eos: int, count: int) -> None:
        """`shows` is the text of each token; runs of spaces count as one."""
        self._shows, self._eos = shows, eos
        self._rows = [b" "] * count
        self._best: list[dict[bytes, float]] = [{} for _ in range(count)]

    def restrict(self, values: Tensor, words: Tensor, log_probs: Tensor, sentences: Tensor, most: int) -> None:
        """Set the log-probability of candidates whose text a better hypothesis has reached to -inf, in place.

        Args:
            values, words: [b, K', k] and [b, K' k]: log-probabilities and tokens, k for each open hypothesis.
            log_probs: [b, K'] of the open hypotheses.
            sentences: [b] the numbers of the sentences.
            most: the number of candidates to keep for each sentence.
        """
        width, each = values.shape[1:]
        totals, order = (log_probs.unsqueeze(2) + values).flatten(1).sort(1, descending=True)
        worse: tuple[list[int], list[int]] = ([], [])
        for row, sentence in enumerate(sentences.tolist()):
            best, survivors, tokens = self._best[sentence], 0, words[row].tolist()
            for place, total in zip(order[row].tolist(), totals[row].tolist(), strict=True):
                if survivors == most or total == float("-inf"):
                    break
                text = self._after(row * width + place // each, tokens[place])
                if total > best.get(text, float("-inf")):
                    best[text], survivors = total, survivors + 1
                else:
                    worse[0].append(row)
                    worse[1].append(place)
        values.view(len(sentences), -1)[worse] = float("-inf")

    def _after(self, row: int, token: int) -> bytes:
        """The text of a row with one more token; a line feed marks the end."""
        text = self._rows[row]
        return text.strip() + b"\n" if token == self._eos else (text + self._shows[token]).replace(b"  ", b" ")

    def select(self, rows: Tensor, tokens: Tensor) -> None:
        """Continue with the rows [N'] and their next tokens [N']."""
        self._rows = [self._after(row, token) for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
