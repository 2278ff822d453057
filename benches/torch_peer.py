"""PyTorch's turns in `compare`: reads requests, a line of JSON each, and answers them with measurements.

Any Python 3.10 or newer with torch will do; the ordinary wheel is enough, no GPU is used:

    python3 -m venv torch-peer && torch-peer/bin/pip install torch==2.14.1
    GRADPACT_PYTHON=torch-peer/bin/python cargo run --release -p gradpact-benches --bin compare

A request is `{"case": NAME, ...}` with the arguments of the function `case_NAME` below; the answer is `{"values": [...]}`, one
number for each metric of the group, or `{"error": ...}`. What a case needs is made at its first request and kept for the next
ones, until another case is asked for. It runs with as many threads as the others: two.
"""

import json
import statistics
import subprocess
import sys
import time

# As in measure.rs: seconds that a turn lasts at least, the number of samples that it has at least, unless it takes so long.
TURN, SAMPLES, LONG = 0.02, 3, 0.5
LAYERS = 3
RATE = 0.01


def numbers(count, scale):
    """The numbers of `elementwise::numbers`."""
    i = torch.arange(count, dtype=torch.int64)
    return ((i * 7919 + 13) % 1000).to(torch.float32).div_(500).sub_(1).mul_(scale)


def dtype_of(name):
    return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[name]


def repeating(sample):
    """Repeats `sample` for a turn; the median of each number that it returns, as `measure::repeat`."""
    start = time.perf_counter()
    samples = [sample()]
    while (elapsed := time.perf_counter() - start) < TURN or (len(samples) < SAMPLES and elapsed < LONG):
        samples.append(sample())
    return [statistics.median(values) for values in zip(*samples)]


def calling(work):
    """Milliseconds of one call of `work`."""

    def sample():
        start = time.perf_counter()
        work()
        return [(time.perf_counter() - start) * 1e3]

    return lambda: repeating(sample)


# Each case returns a function that takes one turn.


def case_node(nodes):
    x = torch.tensor([1.5], requires_grad=True)

    def sample():
        x.grad = None
        start = time.perf_counter()
        y = x
        for _ in range(nodes):
            y = Pass.apply(y)
        forward = time.perf_counter()
        y.backward()
        backward = time.perf_counter()
        del y
        dropped = time.perf_counter()
        seconds = [forward - start, backward - forward, dropped - backward, backward - start]
        return [value * 1e9 / nodes for value in seconds]

    return lambda: repeating(sample)


def case_edge(declared, arriving, elements):
    values = numbers(elements, 1.0)
    x = values.to(dtype_of(declared)).requires_grad_()
    grads = [values.to(dtype_of(arriving)), values.neg().to(dtype_of(arriving))]

    def work():
        x.grad = None
        torch.autograd.backward([x, x], grads)

    return calling(work)


def case_elementwise(operation, dtype, elements):
    a = numbers(elements, 2.0).to(dtype_of(dtype))
    b = numbers(elements + 7, 1.0)[7:].clone().to(dtype_of(dtype))
    silu = torch.nn.functional.silu
    operations = {
        "add": lambda: a + b,
        "mul": lambda: a * b,
        "silu": lambda: silu(a),
        "exp": lambda: torch.exp(a),
        "tanh": lambda: torch.tanh(a),
        "chain": lambda: silu(a * b + b) * a,
    }
    return calling(operations[operation])


def case_matmul(dtype, size):
    a = numbers(size * size, 0.1).reshape(size, size).to(dtype_of(dtype))
    return calling(lambda: a @ a)


def case_mlp(dtype, width, batch):
    return calling(training_step(dtype, width, batch))


def training_step(dtype, width, batch):
    def weight():
        w = numbers(width * width, 1.5 / width**0.5).reshape(width, width).to(dtype_of(dtype)).requires_grad_()
        if dtype == "f16":
            w.grad_dtype = torch.float32
        return w

    weights = [weight() for _ in range(LAYERS)]
    x = numbers(batch * width, 1.0).reshape(batch, width).to(dtype_of(dtype))

    def layer(x, w):
        return torch.nn.functional.silu(x @ w) if dtype == "f32" else LinearSilu.apply(x, w)

    def step():
        y = x
        for w in weights:
            y = layer(y, w)
        # Not `y.float()` for f16: its backward would round the gradient to f16, whatever was declared.
        loss = (y * y).mean() if dtype == "f32" else ToSingle.apply(y).square().mean()
        loss.backward()
        with torch.no_grad():
            for w in weights:
                w.copy_(w - RATE * w.grad)
                w.grad = None
        return loss.item()

    return step


def case_node_memory(nodes):
    return in_new_process("node_memory", nodes=nodes)


def case_mlp_memory(dtype, width, batch):
    return in_new_process("mlp_memory", dtype=dtype, width=width, batch=batch)


# Jobs of a process of its own, whose memory begins clean. Linux only, like child.rs.


def in_new_process(job, **arguments):
    command = [sys.executable, __file__, job, json.dumps(arguments)]
    return lambda: json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def job_node_memory(nodes):
    """Bytes by which the process grows for each node."""
    y = Pass.apply(torch.tensor([1.5], requires_grad=True))
    before = memory("VmRSS:")
    for _ in range(nodes):
        y = Pass.apply(y)
    return [(memory("VmRSS:") - before) / nodes]


def job_mlp_memory(dtype, width, batch):
    """MiB by which memory peaks in three steps, over what the process had before there was a model; as `mlp::peak`."""
    training_step(dtype, 8, 8)()
    before = memory("VmRSS:")
    step = training_step(dtype, width, batch)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    for _ in range(3):
        step()
    return [(memory("VmHWM:") - before) / 2**20]


def memory(field):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return int(line.split()[1]) * 1024


def main():
    if len(sys.argv) > 1:
        job, arguments = sys.argv[1:]
        print(json.dumps(globals()["job_" + job](**json.loads(arguments))))
        return
    kept, turn = None, None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            case = request.pop("case").replace("-", "_")
            if case == "version":
                answer = {"version": f"{torch.__version__}, {torch.get_num_threads()} threads"}
            else:
                if kept != (case, request):
                    turn = None  # frees what the last case needed
                    kept, turn = (case, request), globals()["case_" + case](**request)
                answer = {"values": turn()}
        except Exception as error:
            kept = None
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


try:
    import torch
except ImportError:
    for _ in sys.stdin:
        print(json.dumps({"error": "no torch"}), flush=True)
    sys.exit()

torch.set_num_threads(2)


class Pass(torch.autograd.Function):
    """Passes its input on and saves it; the gradient dtype is declared."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_output_grad_dtype(torch.float32)
        ctx.save_for_backward(x)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        _x, = ctx.saved_tensors
        return grad


class LinearSilu(torch.autograd.Function):
    """`silu(x · w)` stored in f16; its backward receives f32 and computes in it. PyTorch's own silu would round it to f16."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.set_output_grad_dtype(torch.float32)
        z = x @ w
        ctx.save_for_backward(x, w, z)
        return torch.nn.functional.silu(z)

    @staticmethod
    def backward(ctx, grad):
        x, w, z = ctx.saved_tensors
        grad = torch.ops.aten.silu_backward(grad, z.float())
        dx = grad @ w.float().t() if ctx.needs_input_grad[0] else None
        return dx, x.float().t() @ grad


class ToSingle(torch.autograd.Function):
    """A conversion to f32 that sends its gradient on as it is."""

    @staticmethod
    def forward(ctx, x):
        return x.float()

    @staticmethod
    def backward(ctx, grad):
        return grad


if __name__ == "__main__":
    main()
