# Which Python the scripts beside this one use; they source it. GRADPACT_PYTHON names one; else the active virtual environment's,
# else `python3`. It must have torch. Sets `python`, `torch` (its version), `folder` (where the module goes).
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
folder=$target/python

missing() {
    echo "gradpact_torch: $*" >&2
    exit 1
}

# The light libtorch of ../setup.sh is another one than that of Python, which must not find it.
if [[ -n ${LIBTORCH:-} ]]; then
    LD_LIBRARY_PATH=:${LD_LIBRARY_PATH:-}:
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH//:"$LIBTORCH/lib":/:}
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH%:}
    unset LIBTORCH
fi

python=${GRADPACT_PYTHON:-${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python}}
python=$(command -v "${python:-python3}") ||
    missing "there is no Python: activate a virtual environment, or name one by GRADPACT_PYTHON"
torch=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) ||
    missing "$python cannot import torch: $python -m pip install 'torch==2.14.1' numpy setuptools"
