"""A CUDA device that the CPU plays: tensors that say cuda:0 and hold real numbers, to be run in a process of its own.

Every ATen operation, forward and backward, is refused where a GPU would refuse it, and computed by the CPU otherwise.
Each wait of the host for the device is noted with its place in the program, and launches of kernels are counted. What
this cannot show: the kernels themselves, their rounding, memory, speed. See `docs/gpu.md`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
#: Operations that only make another view of memory, allocate or ask.
_FREE = """
    detach view _unsafe_view _reshape_alias t transpose permute select slice expand unsqueeze squeeze squeeze_
    split unbind split_with_sizes as_strided alias lift_fresh lift narrow diagonal unfold empty empty_like
    new_empty empty_strided new_empty_strided set_ _local_scalar_dense is_pinned _pin_memory is_same_size
"""
FREE = frozenset(_FREE.split())
#: Operations that move numbers between devices.
_MOVES = frozenset({"_to_copy", "copy_", "_copy_from"})
#: Operations that index with tensors.
_INDEXES = frozenset({"index", "index_put", "index_put_", "_index_put_impl_"})
#: Operations whose result's shape, or whose check, depends on numbers.
_DEPENDS = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount", "multinomial"}
#: Operations that take no 0-dimensional tensor of the CPU beside tensors of a GPU.
_NO_NUMBERS = {"mm", "bmm", "addmm", "baddbmm", "cat", "stack", "embedding", "gather", "scatter", "index_select"}
#: The argument of packing that must be on the CPU.
_LENGTHS = {"_pack_padded_sequence": 1, "_pack_padded_sequence_backward": 2}


class MixedDevicesError(RuntimeError):
    """An operation got tensors of both devices."""


class OnGpu(Tensor):
    """A tensor on the played GPU; `numbers` is the CPU's tensor behind it."""

    numbers: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, numbers: Tensor) -> OnGpu:
        make: Any = torch.Tensor._make_wrapper_subclass
        layout = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset(), "layout": numbers.layout}
        made: OnGpu = make(cls, numbers.size(), dtype=numbers.dtype, device=GPU, requires_grad=False, **layout)
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        assert PlayedGpu.current is not None, f"{func} on the GPU outside PlayedGpu"
        return PlayedGpu.current.run(func, args, kwargs or {})

    def data_ptr(self) -> int:
        return self.numbers.data_ptr()

    def __deepcopy__(self, memo: dict[int, Any]) -> OnGpu:
        with mock.patch.object(OnGpu, "data_ptr", return_value=0):  # torch then clones it
            copied: OnGpu = super().__deepcopy__(memo)  # type: ignore[no-untyped-call]
            return copied

    def __tensor_flatten__(self) -> tuple[list[str], None]:  # lets Module.to change parameters in place
        return ["numbers"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *_: Any) -> OnGpu:
        return OnGpu(inner["numbers"])

    def __reduce_ex__(self, protocol: Any) -> Any:  # saved as torch.load with map_location="cpu" reads it
        return self.numbers.detach().clone().__reduce_ex__(protocol)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"OnGpu({tuple(self.shape)}, {self.dtype})"


#: Operations in their order, with the numbers that they read and wrote.
Recording = list[tuple[Any, Any, dict[str, Any], Any]]


class PlayedGraph:
    """A CUDA graph: repeats the operations that were captured, with the same memory and whatever is in it.

    The CPU computes them while they are captured, a GPU does not: the memory that they change is restored.
    """

    def __init__(self, gpu: PlayedGpu) -> None:
        self.gpu = gpu
        self.operations: Recording = []
        self._before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def pool(self) -> tuple[int, int]:
        """The name of its memory."""
        return 0, 1

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        """Record operations from here on."""
        self.gpu.recording = self

    def capture_end(self) -> None:
        """Record no more; change nothing."""
        self.gpu.recording = None
        for storage, before in self._before.values():
            storage.copy_(before)
        self._before.clear()

    def keep(self, func: Any, args: Any) -> None:
        """Keep the memory that an operation is about to change."""
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for storage in (leaf.untyped_storage() for leaf in tree_leaves(value) if isinstance(leaf, Tensor)):
                    if storage.data_ptr() not in self._before:
                        self._before[storage.data_ptr()] = storage, storage.clone()

    def replay(self) -> None:
        """One launch."""
        self.gpu.launches += 1
        self.gpu.replays += 1
        with _disable_current_modes(), torch.no_grad():
            for func, args, kwargs, out in self.operations:
                results = zip(tree_leaves(out), tree_leaves(func(*args, **kwargs)), strict=True)
                read = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
                for old, new in results:
                    if isinstance(old, Tensor) and not any(_shares(old, tensor) for tensor in read):
                        old.copy_(new.view(old.shape))  # some are squeezed in place later


class PlayedGpu(TorchDispatchMode):
    """A context in which torch has one GPU.

    Attributes:
        waits: places where the host waited, "file.py function: kind".
        launches: kernels, one for each operation that computes. replays: of graphs, whenever.
        casts: those that only change a type.
    """

    current: PlayedGpu | None = None

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits: Counter[str] = Counter()
        self.launches = self.casts = self.replays = 0
        self.recording: PlayedGraph | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> PlayedGpu:
        from tests.cuda.recurrent import CudnnLayers

        super().__enter__()  # type: ignore[no-untyped-call]
        PlayedGpu.current = self
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") makes it on the CPU and moves it
        for patch in _answers(self):
            self._stack.enter_context(patch)
        self._stack.enter_context(CudnnLayers(self))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()
        torch._C._set_only_lift_cpu_tensors(False)
        PlayedGpu.current = None
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def clear(self) -> None:
        """Forget waits and launches."""
        self.waits.clear()
        self.launches = self.casts = 0

    def wait(self, kind: str) -> None:
        """Note that the host waits; while a graph is captured, that is refused."""
        if self.recording is not None:
            raise RuntimeError(f"operation not permitted when stream is capturing ({_place()}: {kind})")
        self.waits[f"{_place()}: {kind}"] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Carry out one ATen operation where its tensors are."""
        name = func.overloadpacket.__name__
        if torch.is_inference_mode_enabled() and _is_composite(func):  # there, they arrive whole
            TorchDispatchMode.__enter__(self)
            try:
                return func.decompose(*args, **kwargs)
            finally:
                TorchDispatchMode.__exit__(self, None, None, None)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        asked = kwargs.get("device")
        asked = None if asked is None else torch.device(asked)
        if not any(isinstance(tensor, OnGpu) for tensor in tensors) and (asked is None or asked.type != "cuda"):
            if name == "_pin_memory" and self.recording is not None:
                self.wait("pinning")
            return _pinning(func, name, args, kwargs)
        _check(func, name, args, tensors)
        self._note_wait(name, args, kwargs, asked)
        self.launches += name not in FREE
        moves = asked is not None and asked.type == "cpu"
        self.casts += name == "_to_copy" and isinstance(args[0], OnGpu) and not moves
        inner: Any = tree_map(lambda leaf: leaf.numbers if isinstance(leaf, OnGpu) else leaf, (args, kwargs))
        own = {**inner[1], **({} if asked is None else {"device": CPU})}
        if own.get("pin_memory"):
            own["pin_memory"] = False
        if self.recording is not None:
            self.recording.keep(func, inner[0])
        out = func(*inner[0], **own)
        if name == "_to_copy" and out.numel() and any(_shares(out, tensor) for tensor in tensors):
            out = out.clone()
        if self.recording is not None and name not in FREE:
            self.recording.operations.append((func, inner[0], own, out))
        stays = asked.type == "cpu" if asked is not None else name == "copy_" and not isinstance(args[0], OnGpu)
        if stays:
            return out
        if name == "_pack_padded_sequence":
            return OnGpu(out[0]), out[1]  # the rows of each step stay on the CPU
        with contextlib.ExitStack() as stack:
            if torch.is_inference_mode_enabled() and isinstance(args[0], Tensor) and not args[0].is_inference():
                stack.enter_context(torch.inference_mode(False))  # a view of what autograd knows
            wrapped = tree_map(lambda leaf: OnGpu(leaf) if type(leaf) is Tensor else leaf, out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)

    def _note_wait(self, name: str, args: Any, kwargs: dict[str, Any], asked: torch.device | None) -> None:
        if name in ("_local_scalar_dense", "equal"):
            self.wait("number")
        elif name in _DEPENDS or (name == "repeat_interleave" and kwargs.get("output_size") is None):
            self.wait(name)
        elif name in _INDEXES:
            indices = [leaf for leaf in tree_leaves(args[1]) if isinstance(leaf, Tensor)]
            if any(index.dtype is torch.bool for index in indices):
                self.wait("boolean mask")
            elif not all(isinstance(index, OnGpu) for index in indices):
                self.wait("indices of the CPU")
        elif name == "copy_" and isinstance(args[0], OnGpu) != isinstance(args[1], OnGpu):
            if not (getattr(args[1], "pinned", False) and args[2:3] == (True,)):
                self.wait("copy")
        elif name == "_to_copy" and asked is not None and args[0].numel():
            pinned = getattr(args[0], "pinned", False) and kwargs.get("non_blocking")
            if isinstance(args[0], OnGpu) != (asked.type == "cuda") and not pinned:
                self.wait("copy")


def _place() -> str:
    """The file and the function of the program that is running; "backward" on autograd's thread."""
    frame = sys._getframe(1)
    while frame is not None:
        if "/nmt/" in frame.f_code.co_filename:
            return f"{frame.f_code.co_filename.rpartition('/nmt/')[2]} {frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "backward"


def _shares(out: Tensor, tensor: Tensor) -> bool:
    numbers = tensor.numbers if isinstance(tensor, OnGpu) else tensor
    return numbers.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()


def _pinning(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation on the CPU, which remembers what is pinned."""
    if name == "is_pinned":
        return getattr(args[0], "pinned", False)
    if name == "_pin_memory":
        pinned = args[0].clone()
        pinned.pinned = True
        return pinned
    return func(*args, **kwargs)


def _check(func: Any, name: str, args: Any, tensors: list[Tensor]) -> None:
    """MixedDevicesError if a GPU would refuse the operation."""
    if name in _MOVES:
        return
    if name in _LENGTHS:
        if isinstance(args[_LENGTHS[name]], OnGpu):
            raise MixedDevicesError(f"{func}: lengths must be on the CPU ({_place()})")
        return
    if name in _INDEXES:  # a tensor on the GPU takes indices of the CPU, but not the other way round
        indices = [leaf for leaf in tree_leaves(args[1]) if isinstance(leaf, Tensor)]
        tensors = [tensor for tensor in tensors if isinstance(tensor, OnGpu) or not any(tensor is i for i in indices)]
    strangers = [tensor for tensor in tensors if not isinstance(tensor, OnGpu)]
    if any(tensor.ndim or name in _NO_NUMBERS for tensor in strangers):
        raise MixedDevicesError(f"{func}: tensors of both devices ({_place()})")
    for argument, value in zip(func._schema.arguments, args, strict=False):
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes and any(value is tensor for tensor in strangers):
            raise MixedDevicesError(f"{func}: writes a tensor of the CPU ({_place()})")


@functools.cache
def _is_composite(func: Any) -> bool:
    answer: bool = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    return answer


def _answers(gpu: PlayedGpu) -> list[Any]:
    """Patches, with which torch.cuda answers as with one GPU."""
    made = torch.Generator

    class Generator:
        def __new__(cls, device: Any = "cpu") -> Any:
            return made("cpu")

    state = torch.get_rng_state
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "_lazy_init": lambda: None,
        "is_bf16_supported": lambda including_emulation=True: True,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_rng_state": lambda device=0: state(),
        "set_rng_state": lambda state, device=0: None,
        "mem_get_info": lambda device=None: (8 << 30, 16 << 30),
        "memory_reserved": lambda device=None: 0,
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None,
        "get_device_name": lambda device=None: "the CPU",
        "synchronize": lambda device=None: gpu.wait("synchronize"),
        "empty_cache": lambda: None,
        "Stream": lambda: mock.Mock(),
        "current_stream": lambda: mock.Mock(),
        "stream": lambda stream: contextlib.nullcontext(),
        "CUDAGraph": lambda: PlayedGraph(gpu),
        "is_current_stream_capturing": lambda: gpu.recording is not None,
    }
    patches: list[Any] = [mock.patch.object(torch.cuda, name, answer) for name, answer in answers.items()]
    # Optimizers ask here whether a graph is captured.
    stream = mock.Mock(is_capturing=answers["is_current_stream_capturing"])
    patches.append(mock.patch.object(torch.accelerator, "current_accelerator", return_value=GPU))
    patches.append(mock.patch.object(torch.accelerator, "current_stream", return_value=stream))
    patches.append(mock.patch.object(torch.backends.cudnn, "is_acceptable", return_value=False))
    return [*patches, mock.patch.object(torch, "Generator", Generator)]
