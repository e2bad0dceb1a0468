"""Translate lines: python translate.py INPUT OUTPUT (needs the packages ctranslate2 and sentencepiece)."""

from pathlib import Path
from typing import Any

import ctranslate2

from nmt.export.program_lines import ExportedFolder, run, spelled


class CTranslate2Translator(ExportedFolder):
    """The model of a folder, and a beam search with the settings of its manifest.json."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Read a folder; `threads` is the number of threads per batch, 0 for CTranslate2's default."""
        super().__init__(folder)
        self.model = ctranslate2.Translator(str(folder), intra_threads=threads)

    def translate(self, lines: list[str]) -> list[str]:
        """The translations of lines."""
        texts = ["" for _ in lines]
        rows = {at: pieces for at, line in enumerate(lines) if (pieces := self.encode(line)) is not None}
        if not rows:
            return texts
        limits = {at: min(self.longest(len(row)), self.settings["positions"]) - 1 for at, row in rows.items()}
        results = dict(zip(rows, self.search([*rows.values()], max(limits.values())), strict=True))
        for at, limit in limits.items():  # translate_batch has one limit for all lines: search again with a line's own
            if any(len(hypothesis) > limit for hypothesis in results[at].hypotheses):
                (results[at],) = self.search([rows[at]], limit)
        for at, result in results.items():
            # CTranslate2's own length penalty divides by pieces ** penalty.
            ranks = [self.rank(score, len(row) + 1) for score, row in zip(result.scores, result.hypotheses)]
            texts[at] = spelled(result.hypotheses[ranks.index(max(ranks))])
        return texts

    def search(self, rows: list[list[str]], longest: int) -> Any:
        """Search translations of rows of pieces, with at most `longest` pieces without the end of sentence."""
        size = self.settings["beam_size"]
        settings = {"beam_size": size, "num_hypotheses": size, "length_penalty": 0, "return_scores": True}
        return self.model.translate_batch(rows, max_batch_size=64, max_decoding_length=longest, **settings)


if __name__ == "__main__":
    run(CTranslate2Translator(Path(__file__).resolve().parent).translate)
