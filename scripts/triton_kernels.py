"""Compile the Triton kernels for a GPU on a machine without GPU, and print the resources that they need.

    python scripts/triton_kernels.py [--capability 90] [--slots 24,64] [--space 512] [--size 512] [--words 10000]

Prints a Markdown table: registers per thread, bytes per thread that are spilled to memory, and bytes of shared memory
per block, with keys and products in float32 and in bfloat16. Registers limit how many programs a GPU runs in parallel.
The script needs Triton, which is installed with torch for CUDA.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from verbs import script

from nmt.system.errors import UserError

#: Names of pointers whose type is that of the products; other pointers are float32 or in INTEGERS.
LOW = {"keys", "shares", "projected", "rounded", "through_product", "projected_grad", "logits", "gradients"}
INTEGERS = {"mask": "*i8", "real": "*i8", "targets": "*i64", "S": "i32", "smoothing": "fp32"}


class Kernel(NamedTuple):
    """A kernel, its sizes, and the number of warps per program."""

    name: str
    function: Any
    sizes: dict[str, int]
    warps: int


def kernels(slots: int, space: int, size: int, words: int) -> Iterator[Kernel]:
    """Yield the kernels with the sizes that training uses for a memory of `slots` slots."""
    from nmt.kernels.gpu import triton_attentive_gru, triton_cross_entropy

    blocks = triton_attentive_gru.blocks(slots, space, size)
    warps = blocks.pop("num_warps")
    for name in ("_forward_step", "_backward_step"):
        sizes = {"A": space, "D": size, **blocks}
        yield Kernel(f"`{name}`, {slots} slots", getattr(triton_attentive_gru, name), sizes, warps)
    for name in ("_losses", "_gradients"):
        sizes = {"V": words, "BLOCK": triton_cross_entropy.block_of(words)}
        yield Kernel(f"`{name}`, {words} words", getattr(triton_cross_entropy, name), sizes, 4)


def compiled(kernel: Kernel, low: str, capability: int) -> Any:
    """Compile a kernel for an NVIDIA GPU of this compute capability, with products in the type `low`."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.function.arg_names
    signature = {
        name: "constexpr" if name in kernel.sizes else INTEGERS.get(name, f"*{low if name in LOW else 'fp32'}")
        for name in names
    }
    constants = {(names.index(name),): value for name, value in kernel.sizes.items()}
    # At a launch, Triton detects pointers that are multiples of 16 bytes, and reads 16 bytes at once.
    aligned = {(place,): [["tt.divisibility", 16]] for place, name in enumerate(names) if signature[name][0] == "*"}
    source = ASTSource(kernel.function, signature, constants, aligned)
    return triton.compile(source, GPUTarget("cuda", capability, 32), {"num_warps": kernel.warps})


def usage(binary: bytes) -> dict[str, int]:
    """The resource usage of a cubin: registers, and bytes of stack, shared and local memory."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        dump = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True)
    return {name: int(value) for name, value in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", dump.stdout)}


def numbers(text: str) -> list[int]:
    """Parse comma-separated whole numbers."""
    return [int(word) for word in text.split(",")]


def main(words: list[str]) -> int:
    """Compile each kernel and print its row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", type=int, default=90, help="of the GPU, 90 for an H100 or H200")
    parser.add_argument("--slots", type=numbers, default=[24, 64], help="source positions, with commas between")
    parser.add_argument("--space", type=int, default=512, help="attention.size")
    parser.add_argument("--size", type=int, default=512, help="decoder.size")
    parser.add_argument("--words", type=int, default=10000, help="pieces of the target vocabulary")
    options = parser.parse_args(words)
    if find_spec("triton") is None:
        raise UserError("Triton is not installed. Install it: pip install --no-deps triton")
    import triton

    print(
        f"Triton {triton.__version__}, compute capability {options.capability}, attention.size={options.space}, "
        f"decoder.size={options.size}\n\n"
        "| kernel | products | warps | registers | spilled bytes | shared bytes |\n"
        "|---|---|---:|---:|---:|---:|"
    )
    rows = []
    for slots in options.slots:
        for kernel in kernels(slots, options.space, options.size, options.words):
            for low, spelled in (("fp32", "float32"), ("bf16", "bfloat16")):
                done = compiled(kernel, low, options.capability)
                resources = usage(done.asm["cubin"])
                spilled = resources.get("STACK", 0) + resources.get("LOCAL", 0)
                figures = (kernel.warps, resources["REG"], spilled, done.metadata.shared)
                row = f"| {kernel.name} | {spelled} | {' | '.join(map(str, figures))} |"
                if row not in rows:
                    rows.append(row)
                    print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(script("triton_kernels.py", main))
