"""Lines of more pieces than a model takes: cut or translated in parts, with a note and reports of the progress."""

import pytest

from nmt.search import GreedySearch
from nmt.text.tokenizer_trainer import TokenizerTrainer
from nmt.translation import batches, nbest
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.translation.views import END
from tests.catalogue import model

LINE = " ".join(f"word{number % 7}" for number in range(60))


def translated(long_lines: str) -> tuple[Translation, list[str]]:
    """The translation of a long line, and the reports of its progress."""
    tokenizer, _ = TokenizerTrainer("unigram", vocabulary_size=300).train([LINE], [LINE])
    reports: list[str] = []
    translator = Translator(
        [model(pieces=(tokenizer.source.size, tokenizer.target.size))],
        tokenizer,
        GreedySearch(),
        batch_sentences=2,
        length_ratio=1,
        extra_length=1,
        max_source_length=20,
        long_lines=long_lines,
    )
    ((best,),) = translator.translate_chunk([LINE], report=reports.append)
    assert best.source == LINE
    return best, reports


def test_parts_are_counted_and_their_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "REPORT_SECONDS", -1)
    best, reports = translated("split")
    (note,) = best.notes
    parts = int(note.split(" parts")[0].split()[-1])
    assert parts > 3
    assert note.endswith(f"more than max_source_length=20. It is translated in {parts} parts.")
    assert reports == [
        f"{min(2 * number, parts)} of {parts} parts are translated." for number in range(1, (parts + 1) // 2 + 1)
    ]


def test_quick_and_cut_lines_report_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "REPORT_SECONDS", 1e9)
    assert translated("split")[1] == []
    monkeypatch.setattr(batches, "REPORT_SECONDS", -1)
    best, reports = translated("truncate")
    assert reports == []
    assert best.notes[0].endswith("more than max_source_length=20. It is cut.")


def test_a_line_that_is_too_long_for_weights_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nbest, "JOINED_WEIGHTS", 100)
    best, _ = translated("split")
    assert best.notes[1:] == ("is too long for attention weights: it gets no word links and no picture.",)


@pytest.mark.parametrize("long_lines", ["split", "truncate"])
def test_a_translation_of_as_many_pieces_as_allowed_was_cut(long_lines: str) -> None:
    best, _ = translated(long_lines)
    assert best.pieces[-1] == END
    assert best.cut  # a model without training does not end by itself
