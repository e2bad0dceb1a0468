"""A sweep: one run for each combination of values on the command line, each in its own process, several at a time.

Processes have advantages over threads or a pool. A run that fails or is killed does not stop the other runs. Each run
can save its state and stop. The queue of a cluster can start the same commands (`sweep.launcher=slurm`). The run
folders are the only state of a sweep.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.build.parts import build_source
from nmt.build.paths import pipes_of
from nmt.build.requests import read
from nmt.config.combinations import Combination, expand
from nmt.config.composition import compose
from nmt.config.keys import SHARED_KEYS
from nmt.config.quotes import pasteable, python, quote, shell_word, unquoted
from nmt.data.sources import UserFiles
from nmt.runs.run import Run, check_name, settings
from nmt.system import platform as system
from nmt.system.compute import choose_device
from nmt.system.errors import UserError
from nmt.system.limits import NotNegative, checked
from nmt.system.locks import SWEEP, locked
from nmt.system.terminal import print_message
from nmt.train.ancestor import choices_of_start
from nmt.train.cluster import Cluster, submit
from nmt.train.finished import already_finished
from nmt.train.recipe import check_model, resumed, with_ancestor
from nmt.train.workers import Launcher, Planned

MEMORY = 4 << 30  # bytes per run, if no run of the sweep is finished
_LONGEST = 100  # characters of a name


@dataclass(frozen=True)
class Sweeping:
    """How to train the runs of a sweep; `configs/sweep.yaml` explains the settings."""

    jobs: NotNegative
    dry_run: bool
    sweep: Mapping[str, Any]

    @property
    def cluster(self) -> Cluster:
        """The launcher and its resources (UserError for an invalid setting)."""
        return checked(Cluster, self.sweep, "sweep")()


def sweep(words: Sequence[str]) -> int:
    """Train the unfinished runs of a sweep.

    Returns:
        The exit status: 0; 1 if a run failed or cannot be trained; 128 + the signal that stopped the sweep.

    Raises:
        UserError: the command line is invalid; no run was started.
    """
    sweep_keys = {str(key) for key in compose("sweep", [])}
    ours = [word for word in words if re.split(r"[.=]", word.lstrip("+"), maxsplit=1)[0] in sweep_keys]
    options = read(Sweeping, compose("sweep", ours))
    cluster = options.cluster
    place, prefix, combinations = _read(expand("train", [word for word in words if word not in ours]))
    names = _names([combination.swept for combination in combinations], prefix)
    with contextlib.nullcontext() if options.dry_run else locked(place, SWEEP):
        return _sweep(
            options, cluster, place, names, combinations, threads=any(word.startswith("threads=") for word in words)
        )


def _sweep(
    options: Sweeping,
    cluster: Cluster,
    place: Path,
    names: Sequence[str],
    combinations: Sequence[Combination],
    threads: bool,
) -> int:
    """Do what `sweep` does. Unless the command line sets `threads`, the runs share the cores equally."""
    plan, impossible, done = _check(place, names, combinations)
    local = cluster.launcher == "local"
    jobs = min(options.jobs or _room(place, plan), max(1, len(plan))) if local else options.jobs
    cores = max(1, system.cores() // jobs) if local else cluster.cpus
    if not threads and cores is not None:
        plan = [Planned(planned.name, [*planned.words, f"threads={cores}"]) for planned in plan]
    if plan and not local:
        script = cluster.script(place.absolute(), plan, jobs)
        if options.dry_run:
            print(script, end="")
        else:
            submit(script, place)
    elif options.dry_run:
        for planned in plan:
            print(*map(shell_word, [python(), "-m", "nmt.train", *map(unquoted, planned.words)]))
    if options.dry_run:
        return int(bool(impossible))
    return _train(place, plan, jobs, len(impossible), len(done), local=local)


def _train(place: Path, plan: Sequence[Planned], jobs: int, impossible: int, done: int, *, local: bool) -> int:
    """Train the planned runs, unless a cluster trains them, and print a summary; return the exit status.

    `done` and `impossible` count the runs that were finished before and those that cannot be trained.
    """
    if plan:
        look = f"tail -f {system.shell_quoted(str(place))}/*.log"
        most = f", {jobs} at a time" if jobs else ""
        print_message(f"{len(plan)} {'run' if len(plan) == 1 else 'runs'} to train{most}. Follow with: {look}")
    count = done + len(plan) + impossible
    launcher = Launcher(place, plan if local else [], jobs)
    stopped = launcher.run()
    failures = launcher.failures
    parts = [f"{done + launcher.finished} finished" + (f" ({done} of them before)" if done else "")]
    left = len(plan) - launcher.finished - len(failures)
    parts += [f"{left} left to do"] * bool(left) + [f"{len(failures)} failed"] * bool(failures)
    parts += [f"{impossible} cannot be trained (see above)"] * bool(impossible)
    print_message(f"{count} {'run' if count == 1 else 'runs'} in {place}: {', '.join(parts)}.")
    if stopped:
        print_message("Everything is saved. Run the same command again to resume.")
    elif done + launcher.finished > 1:
        print_message(f"Compare them: {python()} -m nmt.compare {pasteable('runs', place)}")
    for failure in failures:
        where = f" (see {failure.log})" if failure.log is not None else ""
        print_message(f"failed: {failure.name}: {failure.message}{where}")
    return 128 + stopped if stopped else int(bool(failures or impossible))


# From the command line to a plan


def _read(combinations: list[Combination]) -> tuple[Path, str, list[Combination]]:
    """The sweep's folder, the prefix of its runs' names, and the combinations of overrides.

    Raises:
        UserError: the name is missing or invalid, no key has several values, or a shared key has.
    """
    _, swept, fixed = combinations[0]
    for key in swept:
        if key.lstrip("+") in SHARED_KEYS | {"resume"}:
            comma = f", or quote the comma: \"{key}='A,B'\"" if key in SHARED_KEYS else ""
            raise UserError(
                f"{key}= must have one value in a sweep: the runs are named by the values that differ. "
                f"Give one value{comma}."
            )
    name, _, prefix = fixed.get("name", "null").partition("/")
    if name == "null":
        raise UserError("-m needs a name for the sweep: name=SWEEP, the folder of its runs.")
    check_name(name)
    if prefix:
        check_name(prefix)
    if not swept:
        raise UserError("-m needs a key with several values, such as seed=1,2,3. To train one run, leave out -m.")
    place = ("name", "checkpoints", "resume")
    run_combinations = [
        combination._replace(overrides=[word for word in combination.overrides if word.partition("=")[0] not in place])
        for combination in combinations
    ]
    return Path(fixed.get("checkpoints", "checkpoints")) / name, prefix, run_combinations


def _names(swept: Sequence[Mapping[str, str]], prefix: str = "") -> list[str]:
    """Names of runs from their values, easy to type: `additive-bahdanau-1`, `general-heads-2-1`.

    A choice appears with its name, a setting with the last part of its key and its value, the seed with its number at
    the end. A value that is not safe in a shell is simplified and gets a digest, so that names stay unique.
    """
    keys = list(swept[0])
    ends = [key.split(".")[-1] for key in keys]

    def part(key: str, value: str) -> str:
        safe = re.sub(r"[^A-Za-z0-9_.]+", "-", value.strip("[]")).strip("-.")
        if safe != value.strip("[]"):
            safe = f"{safe}-{_digest(value)}".strip("-")
        if "." not in key.partition("@")[0] and key != "seed":
            return safe  # a choice
        end = key.split(".")[-1]
        known = end if ends.count(end) == 1 else key.lstrip("+~").replace(".", "-")
        return safe if key == "seed" and (prefix or len(keys) > 1) else f"{known}-{safe}"

    order = sorted(keys, key=lambda key: key == "seed")
    names = ["-".join([*([prefix] if prefix else []), *(part(key, values[key]) for key in order)]) for values in swept]
    return [
        f"{name[:_LONGEST]}-{_digest(json.dumps(values))}" if len(name) > _LONGEST or names.count(name) > 1 else name
        for name, values in zip(names, [dict(values) for values in swept], strict=True)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _check(
    place: Path, names: Sequence[str], combinations: Sequence[Combination]
) -> tuple[list[Planned], list[str], list[str]]:
    """The runs to train, the names of impossible runs and of finished runs (UserError for an invalid command line)."""
    plan: list[Planned] = []
    impossible: list[str] = []
    done: list[str] = []
    known: dict[str, str] = {}
    configs = []
    for name, combination in zip(names, combinations, strict=True):
        try:
            configs.append(compose("train", [*choices_of_start(combination.overrides), *combination.overrides]))
        except UserError as error:
            raise UserError(f"{error} (In the run {name}; nothing was started.)") from error
    if pipes := pipes_of(configs[0].data):
        raise UserError(f"{pipes}: the runs of a sweep cannot all read one pipe. Write the text to a file.")
    for name, combination, config in zip(names, combinations, configs, strict=True):
        same = known.setdefault(json.dumps(settings(config), sort_keys=True, default=str), name)
        if same != name:
            print_message(
                f"{name} is skipped: it would be the same run as {same}. The settings that differ have no effect."
            )
            continue
        words = [*combination.overrides, *quote([f"name={name}", f"checkpoints={place}"]), "resume=auto"]
        try:
            run = Run(place / name)
            if run.exists():
                message = already_finished(resumed(run, words), run)
                if message:
                    done.append(name)
                    continue
            elif with_ancestor(config, words)[1] is None and not isinstance(build_source(config), UserFiles):
                check_model(config)  # not for a user's files: the sizes then depend on the text
        except UserError as error:
            impossible.append(name)
            print_message(f"{name} cannot be trained: {error}")
            continue
        plan.append(Planned(name, words))
    if done:
        print_message(f"{len(done)} of {len(done) + len(plan) + len(impossible)} runs are already finished.")
    return plan, impossible, done


def _room(place: Path, plan: Sequence[Planned]) -> int:
    """The number of runs to train at a time: one on a GPU, else one per core, as far as the free memory allows."""
    if not plan:
        return 1
    words = plan[0].words
    if choose_device(str(compose("train", [*choices_of_start(words), *words]).device)).type == "cuda":
        return 1
    needed = _needed(place)
    return max(1, min(len(plan), system.cores(), system.free_memory() // needed))


def _needed(place: Path) -> int:
    """The highest peak memory of the sweep's runs so far in bytes; MEMORY if none is known."""
    known = []
    for path in place.glob("*/run.json"):
        with contextlib.suppress(UserError, KeyError, TypeError, ValueError):
            known.append(int(Run(path.parent).facts()["peak_memory"]))
    return max(known, default=MEMORY)
