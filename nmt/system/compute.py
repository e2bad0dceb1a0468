"""Device, precision and CPU threads of models."""

import os
from dataclasses import dataclass
from typing import Literal

import torch

from nmt.system.errors import UserError
from nmt.system.limits import Positive
from nmt.system.memory import keep_memory

#: Maximum number of parallel searches: each needs memory, and all share Python's global lock.
PARALLEL_SEARCHES = 4
Precision = Literal["auto", "float32", "bf16", "int8"]


@dataclass(frozen=True)
class Compute:
    """A device, and the type of matrix products."""

    device: torch.device
    #: type of matrix products under autocast; None for float32 everywhere
    dtype: torch.dtype | None = None
    #: whether the type was chosen automatically (precision=auto)
    automatic: bool = False
    #: whether search computes the output layer in int8
    int8: bool = False

    @classmethod
    def choose(
        cls,
        device: str = "auto",
        precision: Precision = "auto",
        threads: Positive | None = None,
        deterministic: bool = False,
    ) -> "Compute":
        """Choose device and type by settings; set torch's threads, its current GPU and this process's allocator.

        Args:
            device: auto (a CUDA GPU if there is one), cpu, cuda or cuda:N.
            precision: auto (bfloat16 on a GPU that supports it), float32, bf16, or int8 for search on a CPU: the output
                layer in int8, the rest in bfloat16 if the processor has instructions for it.
            threads: number of CPU threads; None for torch's default.
            deterministic: whether torch must use deterministic algorithms.

        Raises:
            UserError: the device is missing, or the device or its precision is not supported.
        """
        keep_memory()
        if threads is not None:
            torch.set_num_threads(threads)
        place = choose_device(device)
        _be_deterministic(deterministic)
        if place.index is not None and place.type == "cuda":
            torch.cuda.set_device(place)
        dtype = _choose_dtype(precision, place)
        if place.type == "cuda":
            _set_float32_products("ieee" if dtype is None else "tf32")
        return cls(place, dtype, precision == "auto", precision == "int8")

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a CUDA GPU."""
        return self.device.type == "cuda"

    def free_memory(self) -> int:
        """The free memory of the GPU in bytes, including unused memory that torch has reserved."""
        free, _ = torch.cuda.mem_get_info(self.device)
        return free + torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)

    @property
    def compiles_shapes(self) -> bool:
        """Whether oneDNN compiles a kernel for each new matrix shape, which takes milliseconds."""
        return self.device.type == "cpu" and (self.dtype is not None or self.int8)

    @property
    def threads(self) -> int:
        """The CPU threads that torch uses."""
        return torch.get_num_threads()

    @property
    def parallel_searches(self) -> int:
        """The number of batches that are searched in parallel threads, which divide the CPU threads; 1 on a GPU."""
        return 1 if self.on_gpu else min(self.threads, PARALLEL_SEARCHES)

    @property
    def emulates(self) -> bool:
        """Whether bfloat16 products are emulated, on a CPU without instructions for them; this is many times slower."""
        return self.dtype is not None and not self.on_gpu and not _multiplies_bfloat16()

    def check_searches_not(self) -> None:
        """Raise UserError for precision=int8; for commands that do not search."""
        if self.int8:
            raise UserError("precision=int8 is for search only. Give precision=auto, float32 or bf16.")

    def autocast(self) -> torch.autocast:
        """A context in which matrix products use the type `dtype`."""
        return torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not None)


CPU = Compute(torch.device("cpu"))


def choose_device(name: str) -> torch.device:
    """The device with this name; auto is a CUDA GPU if there is one. Each process of torchrun gets its own GPU.

    Raises:
        UserError: the device is missing or not supported.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"device={name}: must be auto, cpu, cuda or cuda:N.") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device={name} is not supported. Give device=auto, cpu, cuda or cuda:N.")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if device.index is None and count and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            place = int(os.environ["LOCAL_RANK"])
            if place >= count:
                raise UserError(
                    f"This machine has {count} GPUs, fewer than the processes that torchrun started on it. Give "
                    f"torchrun --nproc-per-node {count}."
                )
            return torch.device("cuda", place)
        if count == 0:
            raise UserError(
                f"device={name}: torch finds no CUDA GPU on this machine. Give device=cpu, or install a driver and a "
                f"torch built for CUDA."
            )
        if (device.index or 0) >= count:
            last = f" to cuda:{count - 1}" * (count > 1)
            raise UserError(f"device={name} is not on this machine. Give device=cuda:0{last}.")
    return device


def _choose_dtype(precision: Precision, device: torch.device) -> torch.dtype | None:
    capable_gpu = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "bf16" and device.type == "cuda" and not capable_gpu:
        raise UserError("precision=bf16: this GPU does not support bfloat16. Give precision=float32.")
    if precision == "int8":
        if device.type == "cuda" or not has_int8():
            raise UserError("precision=int8 needs an x86 processor with AVX2, and device=cpu. Give precision=float32.")
        return torch.bfloat16 if _multiplies_bfloat16() else None
    return torch.bfloat16 if precision == "bf16" or (precision == "auto" and capable_gpu) else None


def has_int8() -> bool:
    """Whether the processor and torch support int8 products."""
    x86 = "fbgemm" in torch.backends.quantized.supported_engines  # implies AVX2
    return x86 and torch.backends.mkldnn.is_available() and hasattr(torch.ops.onednn, "qlinear_pointwise")


def _multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for bfloat16."""
    supported: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return supported


def _set_float32_products(precision: Literal["ieee", "tf32"]) -> None:
    """Set the precision of float32 matrix products on a GPU.

    torch's default is TF32 in cuDNN's recurrent layers and convolutions, and float32 elsewhere: two precisions in one
    model. `precision=float32` means float32 everywhere. Next to bfloat16, which is coarser, TF32 loses nothing.
    """
    torch.backends.cuda.matmul.fp32_precision = precision
    torch.backends.cudnn.fp32_precision = precision
    torch.backends.cudnn.rnn.fp32_precision = precision  # type: ignore[attr-defined]
    torch.backends.cudnn.conv.fp32_precision = precision  # type: ignore[attr-defined]


def _be_deterministic(deterministic: bool) -> None:
    """Make torch use deterministic algorithms, or its default algorithms."""
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it starts
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if deterministic != torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(deterministic)
