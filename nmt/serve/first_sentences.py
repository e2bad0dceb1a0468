"""Example sentences for the start of the page: short sentences of known words, the best translated first.

Only files in the run folder are read: the settings name text files, but may be untrusted.
"""

import contextlib
import re
from itertools import islice

from nmt.data.languages import sample
from nmt.evaluation.metrics import sentence_chrf
from nmt.runs.run import EXAMPLE_FOLLOWS, Run
from nmt.system.errors import UserError
from nmt.system.foreign import inside
from nmt.text.known_words import KnownWords
from nmt.text.scripts import unspaced
from nmt.translation.translator import Translator

COUNT = 3  # maximum number of example sentences
_TRIED = 24  # maximum number of sentences that are translated to choose the examples
_LINES = 300  # maximum number of lines that are read from an evaluation
_LOG = 65_536  # bytes at the end of the training log that are searched for an example
_WORDS, _CHARACTERS, _LENGTH = range(3, 10), range(4, 26), range(4, 81)


def first_sentences(run: Run, translator: Translator, words: KnownWords | None) -> list[str]:
    """Up to three sentences of three to nine known words, the best translated first.

    They come from the validation set or an evaluation; else from the training log; else the sentence is a date. The
    list is empty if the run does not name its source language, either.
    """
    known = [pair for pair in _pairs(run) if words is None or not words.unseen(pair[0])][:_TRIED]
    if known:
        ranked = translator.translate_chunk([source for source, _ in known])
        quality = [sentence_chrf(best.text, target) for (best, *_), (_, target) in zip(ranked, known, strict=True)]
        # Of equally good translations the longer sentence first: it shows more.
        order = sorted(range(len(known)), key=lambda at: (-round(quality[at]), -len(known[at][0])))
        return [known[at][0] for at in order[:COUNT]]
    languages = run.facts().get("languages", [])
    one = _validated(run) or (sample(str(languages[0])) if languages else "")
    if one:  # warm-up, so that the first request is not slow
        translator.translate_chunk([one])
    return [one] if one else []


def _pairs(run: Run) -> list[tuple[str, str]]:
    """Short sources with their references, without duplicate sources."""
    pairs = [(source, target) for source, target in run.facts().get("examples", [])]
    for split in run.splits() if not pairs else ():
        with contextlib.suppress(OSError, UnicodeDecodeError, UserError):
            paths = (inside(run.folder, "evaluation", split, name) for name in ("source.txt", "reference.txt"))
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(path.open(encoding="utf-8")) for path in paths]
                pairs += [
                    (source.strip(), target.strip()) for source, target in islice(zip(*files, strict=False), _LINES)
                ]
    return [*{pair[0]: pair for pair in pairs if _is_short(pair[0]) and pair[1]}.values()]


def _is_short(text: str) -> bool:
    return len(text) in (_CHARACTERS if unspaced(text) else _LENGTH) and (unspaced(text) or len(text.split()) in _WORDS)


def _validated(run: Run) -> str:
    """The example from the validation set at the end of the training log; "" if there is none."""
    with contextlib.suppress(OSError, UserError), inside(run.folder, "train.log").open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _LOG))
        _, mark, rest = file.read().decode("utf-8", errors="replace").rpartition(f"{EXAMPLE_FOLLOWS}\n")
        # The log numbers the words that are linked: "Ein[1] Hund[2]".
        sentence = re.sub(r"(?<=\S)\[\d+\](?=\s|$)", "", rest.partition("\n")[0].strip())
        return sentence if mark and len(sentence) in _LENGTH else ""
    return ""
