"""Gain and forgetting of a fine-tuning: scores on the new text and on the text of the ancestor (start=).

Both validation sets are translated greedily before the first update, and again with the best weights at the end. If no
pair is held out, the training pairs are translated instead. They get no scores, only a count of exact matches.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nmt.build.open import open_model, open_run
from nmt.data.dataset import Split
from nmt.data.document_lines import contexts_of
from nmt.model import Seq2Seq
from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.text.tokenizer import Tokenizer
from nmt.train.advice import SCORED
from nmt.train.recipe import Recipe
from nmt.training.board import Board
from nmt.training.validation import Figures, Translate, greedy_scores

#: The names in run.json of the new text and of the ancestor's text.
OWN, EARLIER = "own", "earlier"


class Transfer:
    """The extra steps at the beginning and the end of a fine-tuning; they do nothing in other trainings."""

    def __init__(self, recipe: Recipe, say: Callable[[str], None]) -> None:
        self.recipe, self.say = recipe, say
        self._exams: dict[str, Translate] = {}
        self._sentences: dict[str, int] = {}

    def begin(
        self,
        model: Seq2Seq,
        tokenizer: Tokenizer,
        translate: Translate,
        texts: tuple[Split, Split | None],
        length_ratio: float,
        fresh: bool,
    ) -> dict[str, Any]:
        """Copy the ancestor's weights into a model and score them, if no state of the training is saved yet (`fresh`).

        `texts` are the text that measures the gain, and the text that measures forgetting, or None if the validation
        set is not the ancestor's. `translate` scores the last text that is given. `length_ratio` is for the new text.

        Returns:
            Facts for run.json: the ancestor, the checksum of its weights, fingerprints of texts, and the scores.

        Raises:
            UserError: the ancestor is missing or damaged, or has changed since this training began.
        """
        recipe, ancestor, run = self.recipe, self.recipe.ancestor, self.recipe.resumed
        if not recipe.starts:
            return {}
        if ancestor is None:
            if fresh:
                raise UserError(
                    f"{recipe.config.start} is missing or damaged, and nothing of this training is saved yet. Restore "
                    "it, or train a new run with another name=."
                )
            self.say(f"{recipe.config.start} is missing or damaged, so what is forgotten is not measured.")
            return {}
        known = {} if run is None else run.facts().get("start", {})
        if texts[1] is None:
            fingerprints = self._prepare(tokenizer, translate, known.get("text", {}).get("valid"))
        else:
            learnt = self._exam(texts[0], tokenizer, length_ratio)
            same = texts[0].fingerprint() == texts[1].fingerprint()
            self._exams = {OWN: learnt} if same else {OWN: learnt, EARLIER: translate}
            fingerprints = {} if same else {"valid": texts[1].fingerprint()}
        count = self.recipe.settings.validate_sentences
        self._sentences[OWN] = min(len(texts[0].source), count)
        if texts[1] is not None:
            self._sentences[EARLIER] = min(len(texts[1].source), count)
        if not fresh:
            return {}
        old, notes = ancestor.pass_on(model)
        facts = ancestor.facts(old)
        if known.get("weights", facts["weights"]) != facts["weights"]:
            raise UserError(f"The weights of {ancestor.folder} have changed since this run began. Train a new run.")
        for line in [f"Going on from {ancestor.folder}.", *notes]:
            self.say(line)
        if ancestor.mix:
            fingerprints["train"] = ancestor.texts.read_for_mix("start_mix", None, lambda _: None).fingerprint()
        before = self._scores(old.to(recipe.place.compute.device))
        return {"start": {**facts, "text": fingerprints, "before": before}}

    def finish(self, run: Run, step: int) -> None:
        """Print and save the scores of the best weights next to the earlier scores, also in TensorBoard."""
        facts, settings = run.facts().get("start", {}), self.recipe.settings
        if not self._exams or "before" not in facts:
            return
        model, _ = open_model(open_run(run.folder), "best", self.recipe.place.compute)
        before, after = facts["before"], self._scores(model)
        run.note(start={**facts, "after": after})
        self.say("Validation sets, translated by the run that this one goes on from, and by the best weights now:")
        for name in (name for name in after if name in before):
            self.say(f"  {self._compared(name, before[name], after[name])}")
        if self.recipe.learns_all and EARLIER not in after:
            self.say("  The validation above was on these pairs: its scores say nothing of other text.")
        board = Board(run.folder / "tensorboard", settings.tensorboard)
        for at, scores in ((0, before), (step, after)):
            board.scalars(at, {f"start/{name}_{key}": value for name in scores for key, value in scores[name].items()})
        board.close()

    def _compared(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
        """The scores of a text before and now in words; without BLEU, the numbers of exact matches."""
        sentences = self._sentences[name]
        title = "this text" if name == OWN else f"text of {self.recipe.config.start}"
        if "bleu" in before and "bleu" in after:
            old, new = Figures(**before), Figures(**after)
            return f"{title} ({sentences:,} sentences): {old} before, {new} now ({new.score - old.score:+.2f})"
        old_count, new_count = (round(each["exact"] * sentences / 100) for each in (before, after))
        why = "pairs that were learnt" if name == OWN and self.recipe.learns_all else "sentences, too few for BLEU"
        return f"{title} ({sentences:,} {why}): {old_count:,} translated as in the text before, {new_count:,} now"

    def _prepare(self, tokenizer: Tokenizer, exam: Translate, known: str | None) -> dict[str, str]:
        """Prepare scoring of both validation sets; return the fingerprint of the ancestor's set if it is readable.

        `known` is the fingerprint of the set that was translated before the first update, or None.
        """
        self._exams = {OWN: exam}
        ancestor = self.recipe.ancestor
        assert ancestor is not None
        try:
            split = ancestor.texts.read("valid")
            if known not in (None, split.fingerprint()):
                raise UserError("it has changed since this run began.")
        except UserError as error:
            self.say(f"What is forgotten of the validation text of {ancestor.folder} is not measured: {error}")
            return {}
        self._exams[EARLIER] = self._exam(split, tokenizer, float(ancestor.run.facts.get("length_ratio", 1.0)))
        self._sentences[EARLIER] = min(len(split.source), self.recipe.settings.validate_sentences)
        return {"valid": split.fingerprint()}

    def _exam(self, split: Split, tokenizer: Tokenizer, length_ratio: float) -> Translate:
        count, ancestor = self.recipe.settings.validate_sentences, self.recipe.ancestor
        assert ancestor is not None
        sources, references = list(split.source[:count]), list(split.target[:count])
        documents = None if split.documents is None else split.documents[:count]
        contexts = contexts_of(sources, documents, int(ancestor.run.config.context.sentences))
        compute, language = self.recipe.place.compute, ancestor.run.languages[1]
        return greedy_scores(sources, references, language, tokenizer, compute, length_ratio, contexts)

    def _scores(self, model: Seq2Seq) -> Mapping[str, Mapping[str, float]]:
        scores = {name: translate(model)[1].entries() for name, translate in self._exams.items()}
        few = {name for name in scores if self._sentences[name] < SCORED} | ({OWN} if self.recipe.learns_all else set())
        return {name: {"exact": each["exact"]} if name in few else each for name, each in scores.items()}
