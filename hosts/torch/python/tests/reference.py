"""The Functions of the module, written in Python: what they are compared with."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import Function

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

# What a Function can say of its gradient: nothing, "as it comes", or a dtype.
DECLARATIONS = ["undeclared", "any", *DTYPES]


def name_of(declaration) -> str:
    """`float32` for torch.float32; the words as they are."""
    return str(declaration).removeprefix("torch.")


class Received:
    """The interface of gradpact_torch.Received."""

    def __init__(self):
        self.grads: list[Tensor] = []

    def note(self, grad: Tensor):
        self.grads.append(grad.detach().clone())

    def take(self) -> list[Tensor]:
        grads, self.grads = self.grads, []
        return grads


class Silu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_output_grad_dtype(torch.float32)
        ctx.save_for_backward(x)
        return torch.nn.functional.silu(x.float()).half()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.float()
        s = x.sigmoid()
        return grad * s * (1.0 + x * (1.0 - s))


class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, received):
        ctx.set_output_grad_dtype(torch.float32)
        ctx.save_for_backward(x, w)
        ctx.received = received
        return x.float().matmul(w).half()

    @staticmethod
    def backward(ctx, grad):
        if ctx.received is not None:
            ctx.received.note(grad)
        x, w = ctx.saved_tensors
        return grad.matmul(w.mT), x.float().mT.matmul(grad), None


class Widen(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_output_grad_dtype(torch.float32)
        return x.float()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Narrow(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_output_grad_dtype(torch.float32)
        return x.half()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Scale(Function):
    @staticmethod
    def forward(ctx, x, w, declaration, received):
        if declaration == "any":
            ctx.set_output_grad_dtype(None)
        elif declaration != "undeclared":
            ctx.set_output_grad_dtype(declaration)
        ctx.save_for_backward(x, w)
        ctx.received = received
        return x if w is None else x * w

    @staticmethod
    def backward(ctx, grad):
        ctx.received.note(grad)
        x, w = ctx.saved_tensors
        if w is None:
            return grad, None, None, None
        return grad * w, grad * x, None, None


class Split(Function):
    @staticmethod
    def forward(ctx, x, received):
        ctx.set_output_grad_dtype(torch.float32, torch.float64)
        ctx.received = received
        half = x.half()
        return half, half * 2.0

    @staticmethod
    def backward(ctx, once, twice):
        ctx.received.note(once)
        ctx.received.note(twice)
        return once + (twice * 2.0).float(), None


class Sends(Function):
    """A consumer whose backward sends this gradient, whatever the dtype of its input."""

    @staticmethod
    def forward(ctx, x, grad):
        ctx.grad = grad
        return x.new_zeros((), dtype=torch.float32)

    @staticmethod
    def backward(ctx, _):
        return ctx.grad, None


class Python:
    """These Functions under the names and signatures that gradpact_torch has."""

    Received = Received
    silu = staticmethod(Silu.apply)
    narrow = staticmethod(Narrow.apply)
    widen = staticmethod(Widen.apply)

    @staticmethod
    def linear(x, w, received=None):
        return Linear.apply(x, w, received)

    @staticmethod
    def scale(x, w, declaration, received):
        return Scale.apply(x, w, declaration, received)

    @staticmethod
    def split(x, received):
        return Split.apply(x, received)


class Rust:
    """Those of gradpact_torch."""

    import gradpact_torch as module

    Received = module.Received
    silu = staticmethod(module.silu)
    narrow = staticmethod(module.narrow)
    widen = staticmethod(module.widen)
    linear = staticmethod(module.linear)
    split = staticmethod(module.testing.split)

    @classmethod
    def scale(cls, x, w, declaration, received):
        out, grad = name_of(x.dtype), name_of(declaration)
        return cls.module.testing.scale(x, w, out, grad, received)


def bits(tensor: Tensor | None):
    """Dtype, shape and bit pattern: equal only for tensors that are the same in every bit."""
    if tensor is None:
        return None
    tensor = tensor.detach().cpu().contiguous()
    return name_of(tensor.dtype), tuple(tensor.shape), tensor.flatten().view(torch.uint8).tolist()
