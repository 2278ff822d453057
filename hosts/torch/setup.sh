#!/usr/bin/env bash
# Makes a light libtorch for the CPU (about 0.5 GB) from PyTorch's ordinary wheel, and says how to build with it:
#
#     . hosts/torch/setup.sh            # the supported version, 2.13.0
#     . hosts/torch/setup.sh 2.14.1     # or another one, with the settings that it needs
#
# Sourced, it sets what cargo needs in this shell. Run, it writes the same into `env.sh` beside the library and prints its path.
# What is there already is left alone. It goes to `target/libtorch-VERSION`; GRADPACT_LIBTORCH_DIR names another folder for these.

_gradpact_setup() (
    set -euo pipefail
    local version=$1 here root folder prefix runtime site lib
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$here/../.." && pwd)
    folder=${GRADPACT_LIBTORCH_DIR:-$root/target}
    prefix=$folder/libtorch-$version

    # `libtorch_cpu.so` of the wheel needs two small libraries of CUDA and nothing else of it, also where there is no GPU.
    case $version in
        2.13.* | 2.14.*) runtime=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85) ;;
        2.15.*) runtime=('nvidia-cuda-runtime==13.2.*' 'nvidia-cuda-cupti==13.2.*') ;;
        *)
            echo "setup.sh: libtorch $version is not supported: choose a 2.13, 2.14 or 2.15" >&2
            return 1
            ;;
    esac

    if [[ ! -f $prefix/complete ]]; then
        echo "setup.sh: making $prefix" >&2
        # A file system's worth of headers is moved, not copied: the two folders lie beside each other.
        site=$folder/libtorch-$version.partial
        rm -rf "$site" "$prefix"
        mkdir -p "$site" "$prefix/lib"
        "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --target "$site" "torch==$version" "${runtime[@]}" >&2
        lib=$site/torch/lib
        mv "$lib/libtorch_cpu.so" "$lib/libc10.so" "$lib/libgomp.so.1" "$prefix/lib/"
        mv "$site/nvidia/cu13/lib/libcudart.so.13" "$site/nvidia/cu13/lib/libcupti.so.13" "$prefix/lib/"
        # The linker asks for `libtorch.so` by name; all that it refers to is in `libtorch_cpu.so`.
        ln -s libtorch_cpu.so "$prefix/lib/libtorch.so"
        mv "$site/torch/include" "$prefix/include"
        echo "$version" >"$prefix/build-version"
        rm -rf "$site"
        touch "$prefix/complete"
    fi

    {
        echo "export LIBTORCH='$prefix'"
        echo "export LD_LIBRARY_PATH='$prefix/lib'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
        if [[ $version == 2.13.0 ]]; then
            echo "unset LIBTORCH_BYPASS_VERSION_CHECK CXXFLAGS"
        else
            # torch-sys is written for 2.13.0: let it take another version, compile as that version's headers want it, and
            # give it back the functions that were removed since.
            echo "export LIBTORCH_BYPASS_VERSION_CHECK=1"
            case $version in
                2.13.*) echo "unset CXXFLAGS" ;;
                *) echo "export CXXFLAGS='-std=c++20 -include $here/compat/removed.h'" ;;
            esac
        fi
    } >"$prefix/env.sh"
    echo "$prefix/env.sh"
)

# In a script, sourcing without a version shows that script's own arguments.
_gradpact_version=2.13.0
if [[ ${1:-} == [0-9]*.* ]] || ! (return 0 2>/dev/null); then _gradpact_version=${1:-2.13.0}; fi
if _gradpact_env=$(_gradpact_setup "$_gradpact_version"); then
    if (return 0 2>/dev/null); then
        # shellcheck disable=SC1090
        . "$_gradpact_env"
    else
        echo "$_gradpact_env"
    fi
else
    (return 0 2>/dev/null) && return 1
    exit 1
fi
