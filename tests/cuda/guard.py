"""Compiles and loads `guard.cpp`, with which a torch without CUDA accepts tensors on cuda:0; imports no torch."""

import ctypes
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("guard.cpp")


def torch_folder() -> Path:
    """The folder of the installed torch."""
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def compiled(folder: Path) -> Path:
    """The shared library of `guard.cpp` in `folder`, compiled unless it is there."""
    library, home = folder / "guard.so", torch_folder()
    if not library.exists():
        unfinished = folder / f"guard-{os.getpid()}.so"
        includes = [f"-I{home / 'include'}", f"-I{home / 'include/torch/csrc/api/include'}"]
        command = ["g++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", *includes, str(SOURCE), "-o", str(unfinished)]
        subprocess.run([*command, f"-L{home / 'lib'}", "-lc10", "-ltorch_cpu"], check=True)
        unfinished.replace(library)
    return library


def load(library: str) -> None:
    """Load the library into this process, which must not have imported torch."""
    assert "torch" not in sys.modules, "torch asks for the guards of its devices when it is imported"
    ctypes.CDLL(str(torch_folder() / "lib" / "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
