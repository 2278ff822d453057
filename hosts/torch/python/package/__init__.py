"""Functions written in Rust with gradpact, on torch.Tensor."""

from pathlib import Path

# First: the libraries of torch that the module needs are then those of this torch.
import torch

_built_for = Path(__file__).with_name("torch_version").read_text().strip()
if torch.__version__ != _built_for:
    raise ImportError(
        f"gradpact_torch was built for torch {_built_for} and this is {torch.__version__}: run hosts/torch/python/build.sh again"
    )

from ._native import Received, grad_dtype, linear, narrow, silu, testing, widen  # noqa: E402

__all__ = ["Received", "grad_dtype", "linear", "narrow", "silu", "testing", "widen"]
