"""torch's recurrent layers on the played GPU, as cuDNN runs them: one call forward, one backward, with its refusals."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from tests.cuda.device import MixedDevicesError, OnGpu, PlayedGpu

#: cuDNN's backward pass of a GRU fails on gradients at other addresses (https://github.com/pytorch/pytorch/issues/54307).
ALIGNMENT = 16


class CudnnLayers(TorchFunctionMode):
    """Takes over `nn.GRU` and `nn.LSTM` on the GPU, and what reads a tensor's numbers."""

    def __init__(self, gpu: PlayedGpu) -> None:
        super().__init__()
        self.gpu = gpu

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if args and isinstance(args[0], OnGpu):
            if func in (torch._VF.gru, torch._VF.lstm):
                return self._layers(func, args)
            if func is Tensor.tolist:
                return args[0].cpu().tolist()
            if func is Tensor.numpy:
                raise TypeError("a tensor of a GPU has no numpy(): use .cpu() first")
        return func(*args, **(kwargs or {}))

    def _layers(self, func: Any, args: Any) -> Any:
        inputs, *others = args
        sizes: list[Tensor] = []
        if isinstance(others[0], Tensor) and not others[0].is_floating_point():  # packed
            sizes = [others.pop(0)]
        hidden, weights, *rest = others
        is_lstm = func is torch._VF.lstm
        hiddens = list(hidden) if is_lstm else [hidden]
        tensors = [inputs, *hiddens, *weights]
        if any(isinstance(of_steps, OnGpu) for of_steps in sizes):
            raise MixedDevicesError("cuDNN takes the rows of each step on the CPU")
        if not all(isinstance(tensor, OnGpu) for tensor in tensors):
            raise MixedDevicesError("cuDNN takes input, states and weights on the GPU")
        if len({tensor.dtype for tensor in tensors}) > 1:
            raise TypeError("cuDNN takes tensors of one type")
        if torch.is_autocast_enabled("cuda"):
            raise TypeError("autocast would run cuDNN in float16")
        if not all(state.is_contiguous() for state in hiddens):
            raise ValueError("cuDNN takes contiguous states")
        needs_gradient = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if needs_gradient and not rest[3]:
            raise ValueError("cuDNN has no backward pass in evaluation mode")
        self.gpu.launches += 1

        def call(inputs: Tensor, *others: Tensor) -> Any:
            states, own = others[: len(hiddens)], list(others[len(hiddens) :])
            return func(inputs, *sizes, tuple(states) if is_lstm else states[0], own, *rest)

        return _Layers.apply(call, *tensors)  # type: ignore[no-untyped-call]


class _Layers(torch.autograd.Function):
    """Computed by torch's layers of the CPU."""

    @staticmethod
    def forward(ctx: Any, call: Any, *tensors: OnGpu) -> Any:
        with _disable_current_modes(), torch.enable_grad(), torch.inference_mode(False):
            ctx.inputs = [tensor.numbers.detach().clone().requires_grad_() for tensor in tensors]
            ctx.outputs = call(*ctx.inputs)
        return tuple(OnGpu(output.detach()) for output in ctx.outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        for gradient in gradients:
            if gradient.storage_offset() * gradient.element_size() % ALIGNMENT:
                raise ValueError("cuDNN got a gradient that is not aligned")
        assert PlayedGpu.current is not None
        PlayedGpu.current.launches += 1
        with _disable_current_modes(), torch.enable_grad():
            own = [gradient.numbers for gradient in gradients]
            found = torch.autograd.grad(ctx.outputs, ctx.inputs, own, allow_unused=True)
        return None, *(None if gradient is None else OnGpu(gradient) for gradient in found)
