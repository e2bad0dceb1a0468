"""What a training that goes on from a run gains on its own text, and what it forgets of the run's: scores of both.

Both validation sets are translated greedily before the first update, and again with the best weights at the end.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.data.dataset import Split
from nmt.data.document_lines import contexts_of
from nmt.model import Seq2Seq
from nmt.runs.run import Run
from nmt.system.compute import Compute
from nmt.system.errors import UserError
from nmt.text.tokenizer import Tokenizer
from nmt.train.ancestor import Ancestor
from nmt.training.board import Board
from nmt.training.validation import Figures, Translate, greedy_scores

#: Scores by the text that they are of, OWN or EARLIER, and by metric.
Scores = Mapping[str, Mapping[str, float]]
OWN, EARLIER = "own", "earlier"


class Exam(NamedTuple):
    """A validation set: its title and what translates it."""

    title: str
    translate: Translate


def exams(
    ancestor: Ancestor,
    own: Translate,
    tokenizer: Tokenizer,
    compute: Compute,
    sentences: int,
    known: Mapping[str, str],
) -> tuple[dict[str, Exam], dict[str, str], str]:
    """The validation sets of both texts, the fingerprint of the earlier one, and a message if it cannot be read.

    Args:
        ancestor: the run that a training goes on from.
        own: translates the training's own validation set.
        tokenizer: of both.
        compute: where to translate.
        sentences: how many of a set are translated.
        known: the fingerprint of the earlier text that was translated before the first update, in a resumed run.
    """
    result = {OWN: Exam("this text", own)}
    try:
        split = ancestor.text("valid")
        if known.get("valid", split.fingerprint()) != split.fingerprint():
            raise UserError("it is not the text that was translated before the first update.")
    except UserError as error:
        return result, {}, f"What is forgotten of the validation text of {ancestor.folder} is not measured: {error}"
    sources, references = split.source[:sentences], split.target[:sentences]
    translate = greedy_scores(
        *(list(sources), list(references), ancestor.run.languages[1], tokenizer, compute),
        float(ancestor.run.facts.get("length_ratio", 1.0)),
        contexts_of(sources, _head(split, sentences), int(ancestor.run.config.context.sentences)),
    )
    return {**result, EARLIER: Exam(f"text of {ancestor.folder}", translate)}, {"valid": split.fingerprint()}, ""


def _head(split: Split, sentences: int) -> Sequence[int] | None:
    return None if split.documents is None else split.documents[:sentences]


def marks(exams: Mapping[str, Exam], model: Seq2Seq) -> dict[str, dict[str, float]]:
    """The scores of a model in all exams."""
    return {name: exam.translate(model)[1].entries() for name, exam in exams.items()}


def compared(exams: Mapping[str, Exam], before: Scores, after: Scores) -> list[str]:
    """Lines that show the scores of before and after."""
    lines = []
    for name, exam in exams.items():
        if name in before and name in after:
            old, new = (Figures(**each[name]) for each in (before, after))
            lines.append(f"  {exam.title}: {old} before, {new} now ({new.score - old.score:+.2f})")
    return [
        "Translations of the validation sets, by the run that this one goes on from and by its best weights:",
        *lines,
    ]


def show(run: Run, on: bool, step: int, before: Scores, after: Scores) -> None:
    """Add the scores to the curves in TensorBoard, unless they are off."""
    board = Board(run.folder / "tensorboard", on)
    for at, scores in ((0, before), (step, after)):
        board.scalars(
            at, {f"start/{name}_{key}": value for name, each in scores.items() for key, value in each.items()}
        )
    board.close()
