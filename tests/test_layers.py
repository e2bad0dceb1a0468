"""Imports run one way, and each outside library has one door: read from the source, no import needed."""

import ast
import functools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "nmt"
FILES = sorted(PACKAGE.rglob("*.py"))

# The nouns, each with the rooms that it stands on, and below them what is for all.
EVERYWHERE = {"system", "links"}
ROOMS = {
    "kernels": set[str](),
    "config": {"nmt"},  # for the version
    "text": set[str](),
    "attention": {"kernels"},
    "search": {"kernels"},
    "data": {"text", "documents"},  # documents on request
    "model": {"kernels", "attention"},
    "translation": {"text", "data", "attention", "model", "search"},
    "alignment": {"text", "data", "translation"},
    "inspection": {"text", "data", "search", "attention", "model", "translation", "alignment"},
    "drawing": {"translation", "alignment"},
    "viewer": set[str](),
    "evaluation": {"text", "translation", "alignment", "drawing", "viewer"},
    "training": {"kernels", "text", "attention", "search", "data", "model", "translation", "drawing", "evaluation"},
    "runs": {"nmt", "config", "text", "model", "data"},
}
ROOMS["build"] = {*ROOMS}
ROOMS["documents"] = {"text", "alignment"}
#: One folder for each command. No command imports another, but `compare` asks `evaluate` to score.
VERBS = {
    verb: set[str]() for verb in ("train", "translate", "evaluate", "align", "contrast", "check", "export", "serve")
}
VERBS["compare"] = {"evaluate"}
VERBS["translate"] = VERBS["serve"] = {"documents"}  # on request
TOP = {
    "links": set[str](),
    "notebook": {"viewer", "drawing", "translation", "alignment", "inspection"},
    "followed_text": {"data", "notebook"},
    "api": {
        *("text", "data", "alignment", "drawing", "inspection", "translation", "config", "build"),
        *("notebook", "followed_text"),
    },
    "hub": {"nmt", "api", "data", "runs"},  # nmt for the version
    "__init__": {"api", "notebook", "train"},  # on request
    "__main__": {"nmt", "config"},
    **{verb: {*ROOMS, *more, "nmt"} - ({"documents"} - more) for verb, more in VERBS.items()},
}

DOORS = {
    **{library: {"data/streams", "system/files"} for library in ("gzip", "bz2", "lzma")},  # text, packed
    "hydra": {"config"},
    # whoever holds a configuration names its type
    "omegaconf": {"config", "build", "runs", "train"},
    "sentencepiece": {"text", "export"},
    "datasets": {"data"},
    "huggingface_hub": {"data", "hub"},
    "filelock": {"system/locks"},
    "psutil": {"system/platform"},
    "yaml": {"system/foreign", "config/help_text", "documents"},
    "markdown_it": {"documents"},
    "charset_normalizer": {"system/encodings"},
    "sacrebleu": {"evaluation"},
    "sacremoses": {"alignment"},
    "matplotlib": {"drawing", "compare"},
    "PIL": {"drawing"},
    "fontTools": {"drawing", "text"},
    "scipy": {"compare", "data", "inspection", "serve"},
    "arabic_reshaper": {"drawing"},
    "bidi": {"drawing"},
    "ctranslate2": {"export"},
    "onnx": {"export"},
    "triton": {"kernels/gpu/triton_attentive_gru", "kernels/gpu/triton_cross_entropy"},
    "onnxruntime": {"export"},
    "fastapi": {"serve"},
    "h11": {"serve"},
    "prometheus_client": {"serve"},
    "starlette": {"serve"},
    "pydantic": {"serve"},
    "uvicorn": {"serve"},
    "tensorboard": {"training"},
    "torch.utils.tensorboard": {"training"},
}


# Packages that may be deleted with their tests: nothing else imports them.
EXTRAS = {"compare", "documents", "export", "serve"}


# Who may ask for the class that a choice stands for. The command line refuses to set it.
READS_CLASSES = {"config/configuration", "config/choices", "config/composition", "build/parts"}


def place(path: Path) -> str:
    """Returns the room a file belongs to, or the name of a file at the top."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (line, dotted name) for every import of a file, wherever in it, type checking included."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from nmt import text` names a room, `from nmt.text import x` has it in the module already.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "import_module",
            "__import__",
        ):
            yield from (
                (node.lineno, argument.value)
                for argument in node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )


def test_no_arrow_runs_back() -> None:
    for path in FILES:
        here = place(path)
        allowed = {here, *EVERYWHERE, *ROOMS.get(here, TOP.get(here, set[str]()))}
        for line, name in imports(path):
            parts = name.split(".")
            if parts[0] != "nmt":
                continue
            is_room = len(parts) > 1 and (parts[1] in EXTRAS or (PACKAGE / parts[1]).exists())  # perhaps deleted
            there = parts[1] if is_room else ""
            there = there or (parts[1] if len(parts) > 1 and (PACKAGE / f"{parts[1]}.py").exists() else "nmt")
            assert there in allowed, f"{path}:{line} imports {name}; {here} may import {sorted(allowed)}"


def test_each_library_has_one_door() -> None:
    for path in FILES:
        here = place(path)
        file = path.relative_to(PACKAGE).with_suffix("").as_posix()
        for line, name in imports(path):
            for library, doors in DOORS.items():
                if name == library or name.startswith(f"{library}."):
                    assert {here, file} & doors, f"{path}:{line} imports {name}, whose door is {sorted(doors)}"
            if here == "text":
                assert name.split(".")[0] != "torch", f"{path}:{line}: text knows no torch"


def test_every_file_says_where_it_stands() -> None:
    assert [path for path in FILES if not ast.get_docstring(parsed(path))] == [], "no docstring"


def test_only_text_knows_how_a_piece_is_spelled() -> None:
    marks = ("\u2581", "\\u2581", "<0x", "</s>", "<unk>")
    # An exported program has its own copy of what it needs.
    own = PACKAGE / "export" / "program_lines.py"
    others = {path: path.read_text(encoding="utf-8") for path in FILES if place(path) != "text" and path != own}
    assert [(path, mark) for path, source in others.items() for mark in marks if mark in source] == []


def test_only_building_knows_the_classes_of_choices() -> None:
    for path in FILES:
        file = path.relative_to(PACKAGE).with_suffix("").as_posix()
        if file not in READS_CLASSES:
            asked = {name for _, name in imports(path)}
            assert "nmt.config.configuration.TARGET" not in asked, f"{path} asks for the class of a choice"
        if file != "config/configuration":
            constants = [node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)]
            assert "_target_" not in constants, path


def test_no_class_name_is_used_twice() -> None:
    nodes = (node for path in FILES for node in ast.walk(parsed(path)))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


#: What every verb has. Any other module is found by its name.
OF_VERBS = {"request", "work"}


def test_modules_have_names_of_their_own_and_no_gerunds() -> None:
    modules = [path.relative_to(PACKAGE).with_suffix("") for path in FILES if not path.stem.startswith("__")]
    names = Counter(module.name for module in modules)
    assert {name for name, count in names.items() if count > 1} <= OF_VERBS
    assert [module for module in modules if module.name.endswith("ing")] == []


#: What happened to a thing is not its name. Fields of these names are keys of JSON that people read.
NOT_NAMES = {"found", "own", "kept", "chosen", "said", "told", "made", "shown", "here", "now", "looked"}
FIELDS = {("notebook", "kept"), ("blocks", "shown")}


def defined(path: Path) -> set[str]:
    """The variables, parameters, functions and fields of a module."""
    names = set[str]()
    for node in ast.walk(parsed(path)):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.arg(name) | ast.MatchAs(name=str(name)):
                names.add(name)
            case ast.Name(name, ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
    return names


def test_names_say_what_a_thing_is() -> None:
    names = {(path.stem, name.strip("_")) for path in FILES for name in defined(path)}
    assert {(module, name) for module, name in names if name in NOT_NAMES} == FIELDS


#: The most lines of a file, and of each room together; of the files at the top in "", and of the two folders beside
#: the package. What grows must cut.
MOST_LINES = 400
BUDGETS = {
    "": 1102, "align": 438, "alignment": 1138, "attention": 1640, "build": 1742, "check": 122, "compare": 4767,
    "config": 1409, "contrast": 195, "data": 4531, "documents": 2346, "drawing": 795, "evaluate": 664,
    "evaluation": 1078, "export": 1101, "inspection": 1790, "kernels": 1523, "model": 3249, "runs": 589,
    "scripts/": 7502, "search": 1418, "serve": 2919, "system": 2079, "tests/": 39587, "text": 1848, "train": 2585,
    "training": 2130, "translate": 1325, "translation": 2325, "viewer": 448,
}  # fmt: skip


def test_no_room_grows() -> None:
    beside = [path for folder in ("tests", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (*FILES, *beside)}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
    rooms = Counter[str]()
    for path, count in lines.items():
        if PACKAGE in path.parents:
            rooms["" if path.parent == PACKAGE else place(path)] += count
        else:
            rooms[path.relative_to(ROOT).parts[0] + "/"] += count
    assert {room: count for room, count in rooms.items() if count > BUDGETS.get(room, 0)} == {}


def test_scripts_import_each_other_one_way() -> None:
    """Imports inside functions count too."""
    scripts = ROOT / "scripts"
    names = {".".join(path.relative_to(scripts).with_suffix("").parts): path for path in scripts.rglob("*.py")}
    stands_on = {
        name: {
            known
            for _, imported in imports(path)
            for known in (imported, imported.rpartition(".")[0])
            if known in names and known != name
        }
        for name, path in names.items()
    }
    assert stands_on["benchmark"], "the scripts are read"
    list(TopologicalSorter(stands_on).static_order())


HEAVY = ("datasets", "sacrebleu", "sacremoses", "matplotlib", "tensorboard", "babel", "pandas", "pyarrow", "scipy")
LOADS = {
    "nmt": ("torch", "hydra", "numpy", *HEAVY),
    "nmt.api": HEAVY,
    "nmt.config.program": ("torch", "hydra", *HEAVY),
    "nmt.system.limits": ("torch", "hydra", "omegaconf", *HEAVY),
    "nmt.train.advice": ("torch", "hydra", *HEAVY),
    "nmt.text": ("torch", "hydra", *HEAVY),
    "nmt.train": ("torch", *HEAVY),
    "nmt.evaluate": ("torch", *HEAVY),
    "nmt.align": ("torch", *HEAVY),
    "nmt.compare": ("torch", *HEAVY),
    "nmt.export.__main__": ("torch", "ctranslate2", "onnx", "onnxruntime", *HEAVY),
    "nmt.serve": ("torch", "fastapi", "uvicorn", *HEAVY),
    "nmt.inspection": ("torch", "hydra", *HEAVY),
    "nmt.translate": HEAVY,
    "nmt.translation": HEAVY,
    "nmt.viewer.embed": ("torch", "hydra", *HEAVY),
}


@pytest.mark.parametrize("module", LOADS)
def test_importing_loads_only_what_is_needed(module: str) -> None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    extra = module.split(".")[1:2]
    if EXTRAS.intersection(extra) and not PACKAGE.joinpath(*extra).exists():
        pytest.skip("this extra was deleted")
    assert path.is_dir() or path.with_suffix(".py").is_file()
    program = f"import sys, {module}; print(*sorted(name for name in sys.modules if '.' not in name))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=600
    )
    assert set(done.stdout.split()) & set(LOADS[module]) == set()
