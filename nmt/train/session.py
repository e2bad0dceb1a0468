"""From a recipe to a trained run folder: text -> tokenizer -> batches -> model -> loop, after all checks."""

import contextlib
import functools
import io
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from nmt.alignment.word_weights import links
from nmt.build.approximations import MINUTES, measured
from nmt.build.open import unchecked
from nmt.build.parts import build_model, build_optimizer
from nmt.build.paths import pipes_of
from nmt.config.quotes import pasteable, python, unquoted
from nmt.data.document_lines import contexts_of
from nmt.data.habits import habits
from nmt.data.languages import doubts
from nmt.data.pairs import length_ratio
from nmt.data.sources import UserFiles
from nmt.data.streams import keeping_pipes
from nmt.data.token_batches import TokenBatches
from nmt.links import linked
from nmt.model import Seq2Seq
from nmt.model.weights import lost
from nmt.runs.run import EXAMPLE_FOLLOWS, Run, TakenError, free_name
from nmt.system.errors import UserError
from nmt.system.files import remove_unfinished
from nmt.system.integrity import replacing
from nmt.system.locks import LockedError, locked
from nmt.system.memory import give_memory_back
from nmt.system.platform import peak_memory
from nmt.system.processes import Processes, joined
from nmt.system.terminal import print_message, printable
from nmt.text.tokenizer import Tokenizer
from nmt.train.advice import CHANGEABLE, in_words, verdict
from nmt.train.finished import size_note
from nmt.train.kept_text import examples, keep_text
from nmt.train.preparation import check_documents, guiding_links, prepared, read_splits, tokenizer_for
from nmt.train.recipe import Recipe, opened, own_settings, possible, resumed_recipe, with_own_vocabularies
from nmt.train.transfer import Transfer
from nmt.training.captured import has_fixed_shapes
from nmt.training.checkpoint import Counters, check_state, load_state
from nmt.training.followers import follow
from nmt.training.learner import Learner
from nmt.training.loop import Outcome, TrainingLoop
from nmt.training.validation import Validation, greedy_scores, judged_by, look_at
from nmt.translation.translator import EXTRA_LENGTH
from nmt.translation.types import Translation

if TYPE_CHECKING:
    from omegaconf import DictConfig


def train(config: "DictConfig", overrides: Sequence[str]) -> int:
    """Train or resume a run with all processes of torchrun; return 0, or 128 + the signal that interrupted it."""
    return trained(config, overrides)[0]


def trained(config: "DictConfig", overrides: Sequence[str]) -> tuple[int, Path | None]:
    """Train as `train` does; return the exit status, and the run folder or None if nothing was left to train."""
    with joined() as processes:
        if not processes.leads:
            return _follow(processes), None
        with (
            keeping_pipes(),
            contextlib.ExitStack() as lock,  # for a run that gets its name only when its folder is created
            processes.leading() as followers,
            opened(config, overrides) as recipe,
        ):
            session = None if recipe is None else _Session(recipe, lock, processes, followers)
            status = session.train() if session else 0
            return status, session.run.folder if session and session.run else None


def _follow(processes: Processes) -> int:
    """Take part in the training of the leader's run, whose folder all processes can read; return 0."""
    folder = processes.share()
    if folder is None:
        return 0
    run = Run(Path(folder))
    recipe = resumed_recipe(run.config(), run)
    compute = recipe.place.compute
    splits = read_splits(recipe, lambda _: None)
    tokenizer = tokenizer_for(recipe, splits[0], lambda _: None)
    with _enough_memory():
        model = build_model(recipe.config, tokenizer).to(compute.device)
        optimizer = build_optimizer(recipe.config, model)
        batches = prepared(recipe, tokenizer, splits, lambda _: None).batches
        learner = Learner(model, optimizer, recipe.schedule, recipe.settings, compute, processes)
        follow(learner, batches, recipe.place.seed, load_state(run.state) if run.state.exists() else None)
    return 0


class _Session:
    """One session of one run. The run's log gets all messages, including those from before the run folder exists."""

    def __init__(
        self, recipe: Recipe, lock: contextlib.ExitStack, processes: Processes, followers: contextlib.ExitStack
    ) -> None:
        self.recipe, self.lock, self.processes, self.followers = recipe, lock, processes, followers
        self.run: Run | None = None
        self.lines: list[str] = []  # messages from before the run exists
        self.transfer = Transfer(recipe, self.say)
        self.restored = False  # whether the last state is damaged, and the state before it is used

    def say(self, line: str) -> None:
        """Print a line on standard error, and write it to the run's log."""
        line = printable(line)
        print_message(line)
        if self.run is not None:
            self.run.log(line)
        else:
            self.lines.append(line)

    def train(self) -> int:
        """Train; see the function `train`."""
        source, compute, settings = self.recipe.source, self.recipe.place.compute, self.recipe.settings
        state = self._saved_state()
        source.check()
        train_split, valid_split = both = read_splits(self.recipe, self.say)
        links = guiding_links(self.recipe, train_split)
        check_documents(self.recipe, both)
        self.recipe, reasons = with_own_vocabularies(self.recipe, train_split)
        for note in [*source.notes(), *doubts(source.languages, (train_split.source, train_split.target)), *reasons]:
            self.say(note)
        give_memory_back()
        tokenizer = tokenizer_for(self.recipe, train_split, self.say)
        give_memory_back()
        with _enough_memory(), possible():
            model = build_model(self.recipe.config, tokenizer).to(compute.device)
        optimizer = build_optimizer(self.recipe.config, model)
        pairs, own_pairs, batches, valid_batches = prepared(self.recipe, tokenizer, both, self.say)
        if state is not None and self.recipe.run is not None:
            check_state(self.recipe.run.state, state, model)
            self._check_best(self.recipe.run, state)
        count, language = settings.validate_sentences, source.languages[1]
        sources, references = list(valid_split.source[:count]), list(valid_split.target[:count])
        contexts = contexts_of(sources, valid_split.documents, model.context_sentences)
        ratio = length_ratio(pairs, EXTRA_LENGTH)
        translate = greedy_scores(sources, references, language, tokenizer, compute, ratio, contexts)
        splits = [valid_split, train_split, *map(source.read, source.tests())]
        facts = {"pairs": own_pairs, "text": {split.name: split.fingerprint() for split in splits}}
        facts |= {} if links is None else {"links": links}
        with _enough_memory():
            texts = (train_split, valid_split) if self.recipe.learns_all else (valid_split, None)
            facts |= self.transfer.begin(model, tokenizer, translate, texts, ratio, fresh=state is None)
        if has_fixed_shapes(model, settings, compute):
            batches.fix_shapes()
        self._describe(model, tokenizer, batches)
        give_memory_back()
        run = self._open(tokenizer, facts)
        self.processes.share(str(run.folder))
        keep_text(self.recipe, run, pairs, tokenizer, train_split.source)
        metric, notes = judged_by(references, language)
        run.note(
            length_ratio=ratio,
            source_lines=habits(train_split.source, source.languages[0]),
            judged_by=metric,
            examples=examples(valid_split.source, valid_split.target),
        )
        for note in notes:
            self.say(note)
        with _enough_memory():
            learner = Learner(model, optimizer, self.recipe.schedule, settings, compute, self.processes)
            look = look_at(settings.samples if settings.tensorboard else 0, tokenizer, compute)
            validation = Validation(valid_batches, translate, compute, look)
            loop = TrainingLoop(settings, learner, batches, validation, run)
            goes_on = self.recipe.starts and state is None
            outcome = loop.run(self.recipe.place.seed, state, validate_first=goes_on)
            self.followers.close()
        compare = functools.partial(measured, run, compute, sources, references, language, contexts)
        return self._finish(run, outcome, own_pairs, compare)

    def _saved_state(self) -> dict[str, Any] | None:
        """Load the saved state of earlier sessions, after a check of their history; None if there is no state yet."""
        run = self.recipe.resumed
        if run is None:
            return None
        run.history()
        if run.is_unchecked():
            self.say(unchecked(run))
        if not run.state.exists() and run.facts().get("status") in ("begun", "running"):
            self.say(f"{run.folder} has no saved state yet: training starts from the beginning.")
            return None
        try:
            return load_state(run.state)
        except UserError:
            if not run.earlier_state.exists():
                raise
            state = load_state(run.earlier_state)
        self.say(
            f"{run.state} is damaged: training continues from {run.earlier_state.name}, the state of step "
            f"{state.get('step')}."
        )
        self.restored = True
        return state

    def _check_best(self, run: Run, state: dict[str, Any]) -> None:
        """Forget the best validation if its weights are lost, so that the next one replaces them."""
        problem = lost(run.best)
        if problem and run.best_step() is not None:
            self.say(f"{run.best} is {problem}: the next validation counts as the best and writes it again.")
            state.update(best=Counters().best, bad_validations=0)

    def _describe(self, model: Seq2Seq, tokenizer: Tokenizer, batches: TokenBatches) -> None:
        compute, settings = self.recipe.place.compute, self.recipe.settings
        parameters = sum(parameter.numel() for parameter in model.parameters())
        threads, count = f"{compute.threads} CPU threads", self.processes.count
        hands = threads if count == 1 else f"{count} processes of {threads} each"
        sizes = f"{tokenizer.source.size:,}"
        if not tokenizer.joint:
            sizes += f" and {tokenizer.target.size:,}"
        kind, reach = "no attention", model.decoder.max_positions
        if model.decoder.heads:
            choices = self.recipe.config.choices
            axes = (choices.get(f"attention/{axis}", "soft") for axis in ("score", "window", "normaliser", "read"))
            unusual = [name for name in axes if name not in ("global", "softmax", "soft")]
            kind = f"{choices['encoder']} encoder, {choices['decoder']} decoder, {' '.join(unusual)}"
        self.say(
            f"Model: {kind}, {parameters:,} parameters, {sizes} pieces, on {compute.device} "
            f"({hands}) in {'bfloat16' if compute.dtype else 'float32'}"
            f"{model.describe()}."
        )
        if tokenizer.target.folds_case:
            self.say(
                "The tokenizer writes lower case: validation ignores case. On test sets read BLEU, lower-cased and "
                "tokenised."
            )
        if compute.emulates:
            self.say("This CPU has no bfloat16 instructions, so training is many times slower. Give precision=float32.")
        if reach is not None and settings.max_source_length >= reach:
            self.say(
                f"The attention sees only the first {reach:,} pieces of a sentence "
                f"(attention.score.positions), but trainer.max_source_length is {settings.max_source_length:,}."
            )
        for part, longest in (("encoder", settings.max_source_length), ("decoder", settings.max_target_length)):
            known = getattr(model, part).learned_positions
            if known is not None and longest >= known:
                side = "source" if part == "encoder" else "target"
                self.say(
                    f"Pieces beyond {known:,} share the last position ({part}.positions.count), and "
                    f"trainer.max_{side}_length is {longest:,}."
                )
        source_padding, target_padding = batches.padding
        budget = [f"{name} {limit:.10g}" for name, limit in settings.budget.limits.items()]
        shapes = f" of {len(batches.shapes(0))} shapes" if batches.shapes(0) else ""
        self.say(
            f"Training: {len(batches.plan(0)):,} batches an epoch{shapes}, padding {source_padding:.1%} source and "
            f"{target_padding:.1%} target; budget {', '.join(budget)}."
        )

    def _open(self, tokenizer: Tokenizer, facts: dict[str, Any]) -> Run:
        """Create the folder of a new run, or open that of a resumed run; `facts` are for run.json of a new run."""
        run = self.recipe.resumed
        if run is not None:
            run.write_config(self.recipe.config)
            remove_unfinished(run.folder)
            if self.restored:
                with replacing(run.folder, run.state.name) as temporary:
                    shutil.copyfile(run.earlier_state, temporary)
            run.log("resumed")
        else:
            run = self._create(tokenizer, facts)
        run.note_start()
        self.run = run
        for line in self.lines:
            run.log(line)
        self.say(f"Run folder: {run.folder}")
        return run

    def _create(self, tokenizer: Tokenizer, facts: dict[str, Any]) -> Run:
        recipe, source = self.recipe, self.recipe.source
        facts = {
            **facts,
            "data": source.name,
            "languages": list(source.languages),
            "folder": str(Path.cwd()),
        }
        if recipe.run is not None:
            recipe.run.create(recipe.config, recipe.words, facts, tokenizer)
            return recipe.run
        config = recipe.config.copy()
        while True:
            config.name = free_name(recipe.place.checkpoints, recipe.stem)
            run = Run(recipe.place.checkpoints / config.name)
            try:
                self.lock.enter_context(locked(run.folder))
                run.create(config, recipe.words, facts, tokenizer)
                return run
            except LockedError:  # another training has just taken this name: try the next one
                continue
            except TakenError:
                if not run.folder.exists():
                    raise

    def _finish(self, run: Run, outcome: Outcome, pairs: int, compare: Callable[[], list[str]]) -> int:
        """Print and save how the session ended; return the exit status.

        `compare` translates validation sentences, to fit the doubt model and to compare faster precisions with the
        exact one. It is called only if the training took at least MINUTES.
        """
        compute = self.recipe.place.compute
        run.note(
            status="interrupted" if outcome.interrupted else "finished",
            finished_by=outcome.finished_by,
            step=outcome.step,
            minutes=outcome.minutes,
            epochs=outcome.history[-1]["epoch"] if outcome.history else 0,
            device=str(compute.device),
            threads=compute.threads,
            **self._peaks(run),
        )
        if outcome.interrupted:
            elsewhere = str(run.folder.parent) != "checkpoints"
            place = f" {pasteable('checkpoints', run.folder.parent)}" if elsewhere else ""
            self.say(
                f"Stopped by {outcome.finished_by} at step {outcome.step}; everything is saved. Resume with:\n"
                f"  {python()} -m nmt.train {pasteable('name', run.folder.name)}{place} resume=true"
            )
            return 128 + signal.Signals[outcome.finished_by]
        best = next((entry for entry in reversed(outcome.history) if entry["best"]), None)
        if best is not None:
            name = "At the end" if self.recipe.settings.select == "last" else "Best"
            self.say(
                f"Finished after {outcome.step:,} steps and {outcome.minutes:.1f} minutes ({outcome.finished_by}). "
                f"{name}: {in_words(best)}, perplexity {best['valid_perplexity']:.2f} at step {best['step']:,.0f}."
            )
        if outcome.example is not None:
            self._show(outcome.example)
        for line in compare() if best is not None and outcome.minutes >= MINUTES else ():
            self.say(line)
        self.transfer.finish(run, outcome.step)
        if isinstance(self.recipe.source, UserFiles) and not self.recipe.starts:
            self._judge(run, outcome, pairs)
        else:
            self.say("Next:")
            if self.recipe.source.tests():
                self.say(f"  {python()} -m nmt.evaluate {pasteable('run', run.folder)}")
            self.say(f"  {python()} -m nmt.translate {pasteable('run', run.folder)} input=FILE output=FILE")
        self.say(size_note(run.folder))
        return 0

    def _show(self, example: Translation) -> None:
        """Print a translation with its links."""
        self.say(EXAMPLE_FOLLOWS)
        word_links = [] if example.weights is None else links(example)
        words = example.source.split(), example.text.split()
        screen_lines, log_lines = (linked(*words, word_links, stream) for stream in (sys.stderr, io.StringIO()))
        for line, plain in zip(screen_lines, log_lines, strict=True):
            print(f"  {line}", file=sys.stderr, flush=True)
            if self.run is not None:
                self.run.log(f"  {plain}")

    def _judge(self, run: Run, outcome: Outcome, pairs: int) -> None:
        """Print how the training went, and what to try next."""
        lines = verdict(
            outcome.history,
            pairs,
            outcome.finished_by,
            str(run.folder),
            [unquoted(word) for word in self.recipe.user_words],
            own_settings(self.recipe, CHANGEABLE),
            free_name(run.folder.parent, run.folder.name),
            bool(pipes_of(self.recipe.config.data)),
        )
        for line in lines:
            self.say(line)

    def _peaks(self, run: Run) -> dict[str, int]:
        """The peak memory of the process and of the GPU over all sessions of the run, in bytes."""
        compute, facts = self.recipe.place.compute, run.facts()
        peaks = {"peak_memory": peak_memory()}
        if compute.on_gpu:
            peaks["peak_gpu_memory"] = torch.cuda.max_memory_allocated(compute.device)
        return {name: max(amount, int(facts.get(name, 0))) for name, amount in peaks.items()}


@contextlib.contextmanager
def _enough_memory() -> Iterator[None]:
    """Convert torch's out-of-memory error to UserError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"The GPU's memory is full ({str(error).splitlines()[0]}). Halve trainer.tokens_per_batch and "
            f"double trainer.accumulate, which keeps the size of an update, or use a smaller model."
        ) from error
