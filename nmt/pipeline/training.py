"""From a configuration to a trained run folder: corpus -> tokenizer -> batches -> model -> loop, checks first."""

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from nmt import build
from nmt.advice import CHANGEABLE, recommend, separate_vocabularies, verdict
from nmt.command.composing import compose
from nmt.command.quoting import unquoted
from nmt.command.resuming import merge_for_resume
from nmt.compute import Compute
from nmt.data.cache import prepare
from nmt.data.corpus import DataSource, Split, links_fingerprint
from nmt.data.files import UserFiles
from nmt.data.guide import Guide
from nmt.data.languages import doubts
from nmt.data.pairs import EncodedPairs, SampledPairs, length_ratio, lexicon_of
from nmt.data.planning import TokenBatches
from nmt.errors import UserError
from nmt.limits import checked
from nmt.locks import LockedError, locked
from nmt.memory import peak_memory
from nmt.model import Seq2Seq
from nmt.pipeline.opening import describes, note_unused_attention
from nmt.runs import Run, TakenError, attends, check_name, command, free_name, missing_run, shown
from nmt.text.scripts import lengths, script_of
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.training.checkpoint import check_state, load_state
from nmt.training.learner import Learner
from nmt.training.loop import Outcome, TrainingLoop
from nmt.training.settings import TrainerSettings
from nmt.training.validation import Validation, greedy_bleu
from nmt.translation.translator import EXTRA_LENGTH

BUDGETS = ("steps", "epochs", "minutes")
RESUME = ("false", "auto", "true")  # auto: true where there is a run of the name


def train(config: DictConfig, overrides: Sequence[str]) -> int:
    """Trains a run, or goes on with one. Nothing is written before all checks have passed.

    Returns the exit status: 0, or 128 + the signal that interrupted it.
    """
    overrides = list(overrides)
    for key in ("seed", "data.seed"):
        if (OmegaConf.select(config, key) or 0) < 0:
            raise UserError(f"{key} must not be negative, but is {OmegaConf.select(config, key)}.")
    resume = str(config.resume).lower()
    if resume not in RESUME:
        raise UserError(f"resume={config.resume} is not known. Give resume=true, resume=auto or resume=false.")
    if config.name is None:
        if resume != "false":
            raise UserError(f"resume={resume} needs the run's name. Give name= as well.")
        return _begin(config, overrides, None)
    check_name(str(config.name))
    run = Run(Path(str(config.checkpoints)) / str(config.name))
    if not run.exists():
        run.check_free()
        if resume == "true":
            raise UserError(f"{missing_run(run.folder)} To train a new run, leave out resume=true or give resume=auto.")
    with locked(run.folder):
        if not run.exists():
            return _begin(config, overrides, run)
        if resume == "false":
            raise UserError(f"{run.folder} exists already. Go on with it by resume=true, or give another name=.")
        return _resume(overrides, run)


def _resume(overrides: Sequence[str], run: Run) -> int:
    config = resumed(run, overrides)
    finished = already_finished(config, run)
    if finished:
        print(finished, file=sys.stderr)
        return 0
    return _Session(config, run, overrides=run.overrides(), resume=True).train()


def _begin(config: DictConfig, overrides: list[str], run: Run | None) -> int:
    """Trains a new run, named after its data and model unless `run` is given."""
    build.check(config)
    note_unused_attention([config], overrides)
    source = build.build_source(config)
    if isinstance(source, UserFiles):
        config, chosen, source = _fit_to_text(config, overrides, source)
    else:
        chosen = overrides
    _take_named_budget(config, overrides)
    session = _Session(config, run, source=source, overrides=chosen, own=overrides)
    with session.lock:
        return session.train()


def resumed(run: Run, overrides: Sequence[str]) -> DictConfig:
    """The configuration of a run that goes on, with what the command line may change.

    Raises:
        UserError: the run is damaged, or the line would make another run of it.
    """
    with describes(run, "a training"):
        config = merge_for_resume(run.config(), run.overrides(), overrides)
        _take_named_budget(config, overrides)
        build.build_trainer(config)
        build.build_schedule(config)
        build.build_search(config.search)
    return config


def check_model(config: DictConfig) -> None:
    """UserError for sizes that do not fit together, before any text is read."""
    build.check(config)
    trainer = build.build_tokenizer_trainer(config)
    joint = len(trainer.models) == 1 if trainer.models else trainer.joint
    with _possible():
        build.build_optimizer(config, build.assemble(config, 8, 8, joint))


def _fit_to_text(
    config: DictConfig, overrides: list[str], source: UserFiles
) -> tuple[DictConfig, list[str], DataSource]:
    """Chooses sizes by the amount of text; what the command line says comes after and wins."""
    split = source.read("train")
    counts, unit, per_word = lengths(split.source)
    advised, reasons = recommend(
        len(split.source),
        sum(counts) / max(1, len(counts)),
        unit=unit,
        per_word=per_word,
        pieces=None if config.tokenizer.model else str(config.tokenizer.model_type),
        sizes="experiment" not in {override.partition("=")[0] for override in overrides},
    )
    if "size" not in config.encoder:  # an encoder of the embeddings' size
        advised = [word for word in advised if not word.startswith("encoder.size=")]
    chosen = [*advised, *overrides]
    named = {override.lstrip("+").partition("=")[0] for override in overrides}
    if named & {f"trainer.{budget}" for budget in BUDGETS}:
        named |= {f"trainer.{budget}" for budget in BUDGETS}
    for reason in reasons:
        keys = set(re.findall(r"\b[a-z]+\.[a-z_]+", reason)) - {"trainer.patience"}
        if not keys or keys - named:  # else the user has chosen otherwise
            print(reason, file=sys.stderr)
    # Composing again would read the files again: the data set is the same whatever the sizes.
    return compose("train", chosen), chosen, source


def _take_named_budget(config: DictConfig, overrides: Sequence[str]) -> None:
    """A budget that the command line names takes the place of the default ones: 10 minutes are 10 minutes."""
    words = (override.lstrip("+").partition("=") for override in overrides)
    named = {key for key, _, value in words if value != "null"}
    if named & {f"trainer.{budget}" for budget in BUDGETS}:
        for budget in BUDGETS:
            if f"trainer.{budget}" not in named:
                config.trainer[budget] = None


def already_finished(config: DictConfig, run: Run) -> str:
    """What to say of a run that has used its budget; "" where there is something left to do."""
    facts = run.facts()
    if facts.get("status") != "finished":
        return ""
    trainer = config.trainer
    by = str(facts.get("finished_by"))
    done = {
        "steps": facts.get("step", 0),
        "epochs": facts.get("epochs", 0),
        "minutes": facts.get("minutes", 0),
    }
    used = [name for name, amount in done.items() if trainer.get(name) is not None and amount >= trainer[name]]
    patient = by == "patience" and run.config().trainer.get("patience") == trainer.get("patience")
    if not used and not patient:
        return ""
    reached = f"trainer.{used[0]}={trainer[used[0]]} is reached" if used else "patience had ended it"
    return (
        f"{run.folder} is finished already: {reached}. For more, give a larger budget, e.g. "
        f"trainer.{used[0] if used else 'patience'}={_more(trainer.get(used[0] if used else 'patience'))}."
    )


def _more(amount: float | int | None) -> str:
    return f"{(amount or 1) * 2:g}"


class _Session:
    """One session of one run."""

    def __init__(
        self,
        config: DictConfig,
        run: Run | None,
        *,
        source: DataSource | None = None,
        overrides: Sequence[str] = (),
        own: Sequence[str] | None = None,
        resume: bool = False,
    ) -> None:
        self.own = list(overrides if own is None else own)  # without what was chosen for the user
        self.config, self.run, self.resume = config, run, resume
        self.overrides = list(overrides)
        self.source = build.build_source(config) if source is None else source
        self.opened = False
        self.lock = contextlib.ExitStack()  # of a run that is named only when it is made
        self.links: str | None = None  # the fingerprint of those that guide the attention
        self.lines: list[str] = []  # said before the run was opened

    def say(self, line: str) -> None:
        """Prints a line on standard error and keeps it in the run's log."""
        print(line, file=sys.stderr, flush=True)
        if self.opened and self.run is not None:
            self.run.log(line)
        else:
            self.lines.append(line)

    def train(self) -> int:
        """See `train`."""
        config = self.config
        settings = {key: config[key] for key in ("device", "precision", "threads")}
        compute = checked(Compute.choose, settings)()
        trainer, schedule = build.build_trainer(config), build.build_schedule(config)
        build.build_search(config.search)
        check_model(config)
        state = self._saved()
        self.source.check()
        train_split, valid_split = self.source.read("train"), self.source.read("valid")
        self.links = self._links(trainer, train_split)
        for note in [*self.source.notes(), *doubts(self.source.languages, (train_split.source, train_split.target))]:
            self.say(note)
        self._separate_vocabularies(train_split)
        tokenizer = self._tokenizer(train_split)
        with _enough_memory(), _possible():
            model = build.build_model(config, tokenizer).to(compute.device)
        optimizer = build.build_optimizer(config, model)
        pairs, valid_pairs = self._encode(trainer, tokenizer, train_split, valid_split)
        batches = self._batches(trainer, tokenizer, train_split, pairs)
        if state is not None and self.run is not None:
            check_state(self.run.state, state, model)
        self._describe(model, tokenizer, compute, batches, trainer)
        run = self._open(tokenizer, len(pairs))
        ratio = length_ratio(pairs, EXTRA_LENGTH)
        run.note(length_ratio=ratio)
        if not run.lexicon.exists():
            lexicon_of(pairs, tokenizer.source.size).save(run.lexicon)
        validation = Validation(
            TokenBatches(valid_pairs, tokens_per_batch=trainer.tokens_per_batch, shuffle=False),
            greedy_bleu(
                list(valid_split.source[: trainer.validate_sentences]),
                list(valid_split.target[: trainer.validate_sentences]),
                self.source.languages[1],
                tokenizer,
                compute,
                ratio,
            ),
            compute,
        )
        with _enough_memory():
            learner = Learner(model, optimizer, schedule, trainer, compute)
            outcome = TrainingLoop(trainer, learner, batches, validation, run).run(int(config.seed), state)
        run.note(device=str(compute.device), threads=compute.threads, **_peaks(run, compute))
        return self._finish(run, outcome, len(pairs))

    def _separate_vocabularies(self, split: Split) -> None:
        """Give each side its own vocabulary if their scripts differ, unless the command line decides."""
        named = {override.lstrip("+").partition("=")[0] for override in self.own}
        tokenizer, model = self.config.tokenizer, self.config.model
        fixed = "tokenizer.joint" in named or (model.tie_embeddings == "all" and "model.tie_embeddings" in named)
        if self.resume or fixed or tokenizer.model or not tokenizer.joint:
            return
        scripts = script_of(split.source, self.source.languages[0]), script_of(split.target, self.source.languages[1])
        advised, reasons = separate_vocabularies(scripts, tied=model.tie_embeddings == "all")
        self.config.merge_with_dotlist(advised)
        self.overrides = [*advised, *self.overrides]
        for reason in reasons:
            self.say(reason)

    def _links(self, trainer: TrainerSettings, split: Split) -> str | None:
        """The fingerprint of the links that guide the attention; None where it is not guided.

        Raises:
            UserError: there are none, or not those that the run began with.
        """
        _check_guided(trainer, self.config, split, self.source.name)
        if not trainer.guided_alignment or split.links is None:
            return None
        found = links_fingerprint(split.links)
        if self.resume and self.run is not None and self.run.facts().get("links", found) != found:
            raise UserError(
                f"The word links of {split.name} have changed since {self.run.folder} began. Put them back to resume, "
                f"or train anew under another name=."
            )
        return found

    def _saved(self) -> dict[str, Any] | None:
        """The trainer's state that earlier sessions have left, whose validations can be read as well."""
        if not self.resume or self.run is None:
            return None
        self.run.history()
        if not self.run.state.exists() and self.run.facts().get("status") in ("begun", "running"):
            self.say(f"Nothing had been saved in {self.run.folder} yet: it starts from the beginning.")
            return None
        return load_state(self.run.state)

    def _tokenizer(self, split: Split) -> Tokenizer:
        if self.resume and self.run is not None:
            return load_tokenizer(self.run.tokenizer)
        if not split.source:
            raise UserError("The training set is empty. Give files that hold sentence pairs.")
        trainer = build.build_tokenizer_trainer(self.config)
        tokenizer, notes = trainer.train(split.source, split.target)
        for note in notes:
            self.say(note)
        return tokenizer

    def _encode(
        self, trainer: TrainerSettings, tokenizer: Tokenizer, train_split: Split, valid_split: Split
    ) -> tuple[EncodedPairs, EncodedPairs]:
        encoded = []
        for split in (train_split, valid_split):
            pairs = prepare(
                split,
                tokenizer,
                max_source_length=trainer.max_source_length,
                max_target_length=trainer.max_target_length,
                cache=Path(str(self.config.cache)),
                workers=trainer.workers,
            )
            note = pairs.dropped_note()
            self.say(f"{split.name}: {len(pairs):,} pairs.{' ' + note if note else ''}")
            if len(pairs) == 0:
                raise UserError(
                    f"The {split.name} set is empty: {note or 'it holds no pairs'} "
                    f"Give text, or raise trainer.max_source_length and trainer.max_target_length."
                )
            encoded.append(pairs)
        if self.resume and self.run is not None:
            before = self.run.facts().get("text", {})
            for split in (train_split, valid_split):
                if before.get(split.name, split.fingerprint()) != split.fingerprint():
                    raise UserError(
                        f"The text of {split.name} has changed since {self.run.folder} began. "
                        f"Put the text back to resume, or train anew under another name=."
                    )
        return encoded[0], encoded[1]

    def _batches(
        self, trainer: TrainerSettings, tokenizer: Tokenizer, split: Split, pairs: EncodedPairs
    ) -> TokenBatches:
        alpha, seed = float(self.config.tokenizer.sampling), int(self.config.seed)
        sampled = SampledPairs(
            split,
            tokenizer,
            alpha=alpha,
            seed=seed,
            max_source_length=trainer.max_source_length,
            max_target_length=trainer.max_target_length,
        )
        return TokenBatches(
            sampled if alpha > 0 else pairs,
            tokens_per_batch=trainer.tokens_per_batch,
            sentences_per_batch=trainer.sentences_per_batch,
            seed=seed,
            guide=Guide(split, tokenizer) if trainer.guided_alignment else None,
        )

    def _describe(
        self,
        model: Seq2Seq,
        tokenizer: Tokenizer,
        compute: Compute,
        batches: TokenBatches,
        trainer: TrainerSettings,
    ) -> None:
        parameters = sum(parameter.numel() for parameter in model.parameters())
        sizes = f"{tokenizer.source.size:,}"
        if not tokenizer.joint:
            sizes += f" and {tokenizer.target.size:,}"
        kind, reach = "no attention", model.decoder.max_positions
        if model.decoder.heads:
            choices = self.config.choices
            kind = f"{choices['decoder']} wiring, {choices['attention/score']}"
        self.say(
            f"Model: {kind}, {parameters:,} parameters, {sizes} pieces, on {compute.device} "
            f"({compute.threads} CPU threads) in {'bfloat16' if compute.dtype else 'float32'}"
            f"{model.decoder.describe()}."
        )
        if reach is not None and trainer.max_source_length >= reach:
            self.say(
                f"Sentences of {reach:,} pieces and more are looked at up to there alone "
                f"(attention.score.positions), and trainer.max_source_length is {trainer.max_source_length:,}."
            )
        source_padding, target_padding = batches.padding
        budget = [f"{name} {limit:g}" for name, limit in trainer.budget.limits.items()]
        self.say(
            f"Training: {len(batches.plan(0)):,} batches an epoch, padding {source_padding:.1%} source and "
            f"{target_padding:.1%} target; budget {', '.join(budget)}."
        )

    def _open(self, tokenizer: Tokenizer, pairs: int) -> Run:
        """The run folder, made now that all checks have passed."""
        if self.resume and self.run is not None:
            run = self.run
            run.write_config(self.config)
            run.log("resumed")
        else:
            run = self._create(tokenizer, pairs)
        run.note(status="running")
        self.run, self.opened = run, True
        for line in self.lines:
            run.log(line)
        self.say(f"Run folder: {run.folder}")
        return run

    def _create(self, tokenizer: Tokenizer, pairs: int) -> Run:
        facts = {
            "pairs": pairs,
            "data": self.source.name,
            "languages": list(self.source.languages),
            "folder": str(Path.cwd()),
            "text": {name: self.source.read(name).fingerprint() for name in self.source.splits()},
        }
        if self.links is not None:
            facts["links"] = self.links
        if self.run is not None:
            self.run.create(self.config, self.overrides, facts, tokenizer)
            return self.run
        checkpoints = Path(str(self.config.checkpoints))
        while True:
            self.config.name = free_name(checkpoints, self._stem())
            run = Run(checkpoints / str(self.config.name))
            try:
                self.lock.enter_context(locked(run.folder))
                run.create(self.config, self.overrides, facts, tokenizer)
                return run
            except LockedError:  # another training has just taken this name: the next one, then
                continue
            except TakenError:
                if not run.folder.exists():
                    raise

    def _stem(self) -> str:
        """A run's name from data, wiring and score."""
        choices = self.config.choices
        score = [choices["attention/score"]] if attends(self.config) else []
        return "-".join([self.source.name, choices["decoder"], *score])

    def _finish(self, run: Run, outcome: Outcome, pairs: int) -> int:
        python = command()
        epochs = outcome.history[-1]["epoch"] if outcome.history else 0
        run.note(
            status="interrupted" if outcome.interrupted else "finished",
            finished_by=outcome.finished_by,
            step=outcome.step,
            minutes=outcome.minutes,
            epochs=epochs,
        )
        elsewhere = str(self.config.checkpoints) != "checkpoints"
        place = f" {shown('checkpoints', self.config.checkpoints)}" if elsewhere else ""
        if outcome.interrupted:
            self.say(
                f"Stopped by {outcome.finished_by} at step {outcome.step}; everything is saved. Go on with:\n"
                f"  {python} -m nmt.train {shown('name', self.config.name)}{place} resume=true"
            )
            return 130 if outcome.finished_by == "SIGINT" else 143
        best = next((entry for entry in reversed(outcome.history) if entry["best"]), None)
        if best is not None:
            self.say(
                f"Finished after {outcome.step:,} steps and {outcome.minutes:.1f} minutes ({outcome.finished_by}). "
                f"Best: validation BLEU {best['valid_bleu']:.2f}, perplexity {best['valid_perplexity']:.2f} "
                f"at step {best['step']:,.0f}."
            )
        if isinstance(self.source, UserFiles):
            self._judge(run, outcome, pairs)
        else:
            self.say("Next:")
            self.say(f"  {python} -m nmt.evaluate {shown('run', run.folder)}")
            self.say(f"  {python} -m nmt.translate {shown('run', run.folder)} input=FILE output=FILE")
        return 0

    def _judge(self, run: Run, outcome: Outcome, pairs: int) -> None:
        """Says how the training went, and what to try next."""
        lines = verdict(
            outcome.history,
            pairs,
            outcome.finished_by,
            str(run.folder),
            [unquoted(word) for word in self.own],
            {key: OmegaConf.select(self.config, key) for key in CHANGEABLE},
            free_name(run.folder.parent, run.folder.name),
        )
        for line in lines:
            self.say(line)


def _check_guided(trainer: TrainerSettings, config: DictConfig, split: Split, name: str) -> None:
    """UserError for a guided-alignment loss that has no links to go by, or no attention to guide."""
    if not trainer.guided_alignment:
        return
    if not attends(config):
        raise UserError(
            "trainer.guided_alignment draws attention weights to word links, and decoder=none has none. Leave it out, "
            "or take a decoder with attention."
        )
    if split.links is None:
        raise UserError(
            f"trainer.guided_alignment needs word links of the training text, and the data set {name} has none. "
            f"Give data.train_links=FILE, a line a pair (0-0 1-2 ...), where the data set is in files."
        )


def _peaks(run: Run, compute: Compute) -> dict[str, int]:
    """The most memory in bytes that any session of the run has taken, of the process and of the GPU."""
    known = run.facts()
    peaks = {"peak_memory": peak_memory()}
    if compute.on_gpu:
        peaks["peak_gpu_memory"] = torch.cuda.max_memory_allocated(compute.device)
    return {name: max(amount, int(known.get(name, 0))) for name, amount in peaks.items()}


@contextlib.contextmanager
def _possible() -> Iterator[None]:
    """What torch says of impossible settings, as a message to the user."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (ValueError, RuntimeError, ZeroDivisionError) as error:
        raise UserError(f"A model cannot have these settings: {str(error).splitlines()[0]}") from error


@contextlib.contextmanager
def _enough_memory() -> Iterator[None]:
    """A GPU that is full, as a message to the user."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"The GPU's memory is full ({str(error).splitlines()[0]}). Give a smaller trainer.tokens_per_batch "
            f"(with trainer.accumulate for as large an update), or a smaller model."
        ) from error
