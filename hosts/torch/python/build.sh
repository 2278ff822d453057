#!/usr/bin/env bash
# Builds the Python module `gradpact_torch` against the torch of an installed Python, into `target/python`:
#
#     GRADPACT_PYTHON=…/bin/python hosts/torch/python/build.sh
#
# Without GRADPACT_PYTHON it takes the active virtual environment. Prints the folder, which PYTHONPATH must name. What is built
# already is not built again. `--lint` runs clippy too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/python.sh"

case $torch in
    2.13.*) flags= ;;
    2.14.* | 2.15.*) flags="-std=c++20 -include $here/../compat/removed.h" ;;
    *) missing "$python has torch $torch, which is not supported: 2.13, 2.14 and 2.15 are" ;;
esac
command -v cargo >/dev/null || missing "there is no cargo: install Rust"
command -v "${CXX:-c++}" >/dev/null || missing "there is no C++ compiler: install one, or name it by CXX"
"$python" -c 'import setuptools' 2>/dev/null ||
    missing "$python has no setuptools, by which the build asks torch where it is: $python -m pip install setuptools"
IFS=$'\t' read -r headers suffix torch_headers < <("$python" -c '
import os, sysconfig, torch
torch_headers = os.path.join(os.path.dirname(torch.__file__), "include")
print(sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX"), torch_headers, sep="\t")')
[[ -f $headers/Python.h ]] || missing "$python comes without its headers ($headers/Python.h): install its development package"
[[ -d $torch_headers/torch ]] || missing "torch $torch comes without its headers ($torch_headers): install the ordinary wheel"

# torch-sys asks `python` or `python3`, whichever; both are to be this one.
mkdir -p "$folder/bin" "$folder/gradpact_torch"
for name in python python3; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$folder/bin/$name"
    chmod +x "$folder/bin/$name"
done

# The value of LIBTORCH_USE_PYTORCH does not matter to torch-sys, but a new one makes cargo build again.
export PATH=$folder/bin:$PATH PYO3_PYTHON=$python CXXFLAGS=$flags
export LIBTORCH_USE_PYTORCH="torch $torch of $python" LIBTORCH_BYPASS_VERSION_CHECK=1
crate=(--release --manifest-path "$here/Cargo.toml" --target-dir "$target")
cargo build "${crate[@]}" >&2
if [[ ${1:-} == --lint ]]; then cargo clippy "${crate[@]}" --all-targets -- -D warnings >&2; fi

cp "$here/package/__init__.py" "$folder/gradpact_torch/"
echo "$torch" >"$folder/gradpact_torch/torch_version"
# Not written over: a Python that runs may have it mapped.
cp "$target/release/libgradpact_torch_python.so" "$folder/gradpact_torch/new"
mv "$folder/gradpact_torch/new" "$folder/gradpact_torch/_native$suffix"
echo "$folder"
