"""Trains on the digits in several processes. The layers are Functions written in Rust, stored in f16 with f32 gradients.

torchrun starts it (see ../check.sh). Each process takes its share of every batch. Afterwards all must have the same parameters, which
one process that trains on the whole batches must reach too, within rounding.
"""

import argparse
import csv
import gzip
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import gradpact_torch

DATA = Path(__file__).parents[4] / "examples/data/digits.csv.gz"
BATCH, STEPS, RATE = 256, 60, 0.5
# The loss is made so small that no gradient of it fits into f16; the rate makes up for it. Both are powers of two, so that nothing is
# rounded by it in f32.
SMALL = 2.0**-30


def digits() -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Images and labels for training and for testing: every fifth is kept for that."""
    with gzip.open(DATA, "rt") as text:
        rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(text)])
    images, labels = rows[:, :64] / 16, rows[:, 64].long()
    is_test = torch.arange(len(rows)) % 5 == 0
    return (images[~is_test], labels[~is_test]), (images[is_test], labels[is_test])


class Linear(nn.Module):
    """`x·w` in Rust; tells what it declared and what its backward received.

    Its input and output are f32. On every input of a module that it shards FSDP2 puts a Function of its own that declares nothing: were
    that input f16, its gradient would be rounded to f16 there.
    """

    def __init__(self, name: str, inputs: int, outputs: int):
        super().__init__()
        self.name = name
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)
        self.received = gradpact_torch.Received()
        self.report = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = gradpact_torch.linear(gradpact_torch.narrow(x), self.weight, self.received)
        if y.requires_grad:
            declared = gradpact_torch.grad_dtype(y)
            self.report = f"{self.name} layer, {y.grad_fn.name()}: stored {y.dtype}, declared torch.{declared}"
        return gradpact_torch.widen(y)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Linear("first", 64, 48), Linear("second", 48, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = gradpact_torch.silu(gradpact_torch.narrow(self.first(images)))
        return self.second(gradpact_torch.widen(hidden))


def network() -> Network:
    torch.manual_seed(0)
    return Network()


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, rank: int, ranks: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE / SMALL)
    order = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        batch = torch.randperm(len(images), generator=order)[:BATCH]
        share = batch.chunk(ranks)[rank]
        optimizer.zero_grad()
        (cross_entropy(model(images[share]), labels[share]) * SMALL).backward()
        optimizer.step()


def whole(parameter: torch.Tensor) -> torch.Tensor:
    """All of a parameter, of which a process may have a part only."""
    parameter = parameter.detach()
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="how", choices=["ddp", "fsdp2"], required=True)
    how = parser.parse_args().how
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    training, test = digits()

    model = network()
    if how == "ddp":
        wrapped = DistributedDataParallel(model)
    else:
        mesh = init_device_mesh("cpu", (ranks,))
        for layer in model.first, model.second:
            fully_shard(layer, mesh=mesh)
        wrapped = fully_shard(model, mesh=mesh)
    train(wrapped, *training, rank, ranks)

    for layer in model.first, model.second:
        received = layer.received.take()
        assert len(received) == STEPS, len(received)
        dtypes = {grad.dtype for grad in received}
        # In f16 all of these would be zero.
        largest = max(grad.abs().max().item() for grad in received)
        assert dtypes == {torch.float32} and 0 < largest < 2**-25, (dtypes, largest)
        print(f"rank {rank}, {layer.report}, received {dtypes.pop()} (largest {largest:.1e})", flush=True)

    parameters = [whole(parameter).contiguous() for parameter in model.parameters()]
    for parameter in parameters:
        everywhere = [torch.empty_like(parameter) for _ in range(ranks)]
        dist.all_gather(everywhere, parameter)
        assert all(torch.equal(parameter, other) for other in everywhere), "the ranks have different parameters"

    alone = network()
    train(alone, *training, 0, 1)
    difference = max((a - b).abs().max().item() for a, b in zip(parameters, alone.parameters()))
    moved = max((a - b).abs().max().item() for a, b in zip(network().parameters(), alone.parameters()))
    assert difference < 1e-3 * moved, f"{difference} away from one process, which moved by {moved}"
    images, labels = test
    accuracy = (alone(images).argmax(1) == labels).float().mean().item()
    assert accuracy > 0.9, accuracy
    if rank == 0:
        print(
            f"{how}: {ranks} ranks have the same parameters, {difference:.1e} away from those of one process, which moved by"
            f" {moved:.1e}; accuracy {accuracy:.1%}",
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
