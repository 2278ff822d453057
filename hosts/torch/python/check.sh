#!/usr/bin/env bash
# Builds the module and runs all of its checks, a minute once it is built: clippy, tests, parity with PyTorch, training in two
# processes.
set -euo pipefail
"$(dirname "${BASH_SOURCE[0]}")/build.sh" --lint
. "$(dirname "${BASH_SOURCE[0]}")/python.sh"
export PYTHONPATH=$folder:$here/tests${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1

case $torch in
    2.13.*)
        echo "check.sh: torch $torch has no ctx.set_output_grad_dtype to compare with" >&2
        ;;
    *)
        "$python" -m unittest -v test_functions
        "$python" "$here/tests/parity.py"
        ;;
esac

# Two processes that talk over loopback only, and end by themselves or after five minutes.
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
for how in ddp fsdp2; do
    timeout 300 "$python" -m torch.distributed.run --nnodes 1 --nproc-per-node 2 \
        --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:0 --local-addr 127.0.0.1 \
        "$here/tests/train_digits.py" --with "$how"
done
