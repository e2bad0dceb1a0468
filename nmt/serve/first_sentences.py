"""The sentences that the page offers first: short ones that the model knows, the best translated first.

Reads nothing outside the run folder: its settings name files of text, but a stranger may have written them.
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

COUNT = 3  # sentences that are offered
_TRIED = 24  # sentences that are translated, of those below
_LINES = 300  # of an evaluation
_LOG = 65_536  # bytes at the end of a log, where a sentence stands
_WORDS, _CHARACTERS, _LENGTH = range(3, 10), range(4, 26), range(4, 81)


def first_sentences(run: Run, translator: Translator, words: KnownWords | None) -> list[str]:
    """Up to three sentences of three to nine words whose words the model knows, the best translated first.

    Of the validation set or an evaluation; else the one that stands in the log of the training, else a date. None of
    all these if no one knows the run's source language.
    """
    known = [pair for pair in _pairs(run) if words is None or not words.unseen(pair[0])][:_TRIED]
    if known:
        ranked = translator.translate_chunk([source for source, _ in known])
        quality = [sentence_chrf(best.text, target) for (best, *_), (_, target) in zip(ranked, known, strict=True)]
        # Of equals the longer one, which has more to see.
        order = sorted(range(len(known)), key=lambda at: (-round(quality[at]), -len(known[at][0])))
        return [known[at][0] for at in order[:COUNT]]
    languages = run.facts().get("languages", [])
    one = _validated(run) or (sample(str(languages[0])) if languages else "")
    if one:  # the first request need not wait for what is loaded on first use
        translator.translate_chunk([one])
    return [one] if one else []


def _pairs(run: Run) -> list[tuple[str, str]]:
    """Short sources with their references, each source once."""
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
    """The sentence of the validation set that stands at the end of the log of a finished training."""
    with contextlib.suppress(OSError, UserError), inside(run.folder, "train.log").open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _LOG))
        _, mark, rest = file.read().decode("utf-8", errors="replace").rpartition(f"{EXAMPLE_FOLLOWS}\n")
        # The log numbers the words that are linked: "Ein[1] Hund[2]".
        sentence = re.sub(r"(?<=\S)\[\d+\](?=\s|$)", "", rest.partition("\n")[0].strip())
        return sentence if mark and len(sentence) in _LENGTH else ""
    return ""
