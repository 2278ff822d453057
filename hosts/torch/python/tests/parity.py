"""What backward receives, for each storage dtype, declaration, dtype that arrives, and way: Rust against Python, bit for bit.

Prints a table and fails on any difference. Zeros for an unused output differ on purpose; `test_functions.py` has them.
"""

import sys

import torch

from reference import DECLARATIONS, DTYPES, Python, Rust, Sends, bits, name_of

# What is lost in some dtype: digits, range, a tie in rounding, infinity, the sign of zero.
VALUES = [0.1, 1e-10, 3e-8, 1 + 2**-11 + 2**-30, 70000.0, 1e39, -0.0, float("inf"), float("nan")]


def direct(y, grad):
    y.backward(grad)


def by_a_function(y, grad):
    Sends.apply(y, grad).backward()


def by_two(y, grad):
    (Sends.apply(y, grad) + Sends.apply(y, grad * 3)).backward()


def by_an_operation(y, grad):
    (y * 1).backward(grad)


def by_a_conversion(y, grad):
    y.to(grad.dtype).backward(grad)


WAYS = [direct, by_a_function, by_two, by_an_operation, by_a_conversion]


def run(side, out, declaration, arriving, way, scaled, grad_dtype):
    """What the Function and what its inputs received."""
    grad = torch.tensor(VALUES, dtype=torch.float64).to(arriving)
    x = torch.linspace(-2, 2, len(VALUES)).to(out).requires_grad_()
    w = torch.linspace(1, 3, len(VALUES)).to(out).requires_grad_() if scaled else None
    x.grad_dtype = grad_dtype
    received = side.Received()
    y = side.scale(x, w, declaration, received)
    way(y, grad)
    grads = received.take()
    return [y, *grads, x.grad, w.grad if scaled else None], grads[0].dtype


def main() -> int:
    cases, differences = 0, []
    print(f"torch {torch.__version__}: dtype received in backward, the same in Rust and in Python\n")
    header = ["output", "declared", *(f"{name_of(dtype)} arrives" for dtype in DTYPES)]
    rows = []
    for out in DTYPES:
        for declaration in DECLARATIONS:
            row = [name_of(out), name_of(declaration)]
            for arriving in DTYPES:
                for way in WAYS:
                    for scaled in False, True:
                        for grad_dtype in None, out:
                            case = out, declaration, arriving, way, scaled, grad_dtype
                            rust, dtype = run(Rust, *case)
                            python, _ = run(Python, *case)
                            cases += 1
                            if [bits(t) for t in rust] != [bits(t) for t in python]:
                                differences.append(f"{case}:\n  Rust   {rust}\n  Python {python}")
                            if way is by_a_function:
                                received = name_of(dtype)
                row.append(received)
            rows.append(row)
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print(f"\n{cases} cases, {len(differences)} differences")
    for difference in differences[:20]:
        print(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
