//! Compiles the shim against the libtorch that torch-sys has found.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// The versions whose internals the shim was written for and tested with.
const SUPPORTED: std::ops::RangeInclusive<(u32, u32)> = (2, 13)..=(2, 15);

fn main() -> ExitCode {
    for file in ["shim/shim.cpp", "shim/shim.h", "shim/baseline.cpp", "compat/removed.h"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for variable in ["CXXFLAGS", "LIBTORCH_INCLUDE", "LIBTORCH_CXX11_ABI", "GRADPACT_TORCH_CUDA"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    // torch-sys says it to those who depend on it directly; not if it is built for documentation, without libtorch.
    let Some(lib) = env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
        return ExitCode::SUCCESS;
    };
    match build(&lib) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={problem}");
            ExitCode::FAILURE
        }
    }
}

fn build(lib: &Path) -> Result<(), String> {
    let root = env::var_os("LIBTORCH_INCLUDE").map(PathBuf::from);
    let include = root.unwrap_or_else(|| lib.parent().unwrap_or(lib).to_owned()).join("include");
    let (major, minor) = version(&include)?;
    if !SUPPORTED.contains(&(major, minor)) {
        return Err(format!(
            "gradpact-torch supports libtorch 2.13, 2.14 and 2.15, and found {major}.{minor} at {}: see hosts/torch/setup.sh",
            lib.display()
        ));
    }
    let mut compiler = cc::Build::new();
    if env::var_os("CARGO_FEATURE_BASELINE").is_some() {
        compiler.file("shim/baseline.cpp");
    }
    compiler
        .cpp(true)
        .pic(true)
        .warnings(false)
        .std(if (major, minor) >= (2, 14) { "c++20" } else { "c++17" })
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .define("_GLIBCXX_USE_CXX11_ABI", env::var("LIBTORCH_CXX11_ABI").as_deref().unwrap_or("1"))
        .file("shim/shim.cpp")
        .try_compile("gradpact_torch_shim")
        .map_err(|error| {
            format!("gradpact-torch could not compile its shim against libtorch {major}.{minor}: {error}")
        })?;
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    // Our own tests and examples find libtorch where it was at build time.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    if env::var_os("GRADPACT_TORCH_CUDA").is_some() {
        // Nothing refers to `libtorch_cuda` by name, so a linker drops it and no GPU is ever found.
        println!("cargo:rustc-link-arg=-Wl,--no-as-needed");
        println!("cargo:rustc-link-arg=-ltorch_cuda");
    }
    Ok(())
}

/// Major and minor version, as the headers say.
fn version(include: &Path) -> Result<(u32, u32), String> {
    let headers = ["torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"];
    let text = headers.iter().find_map(|header| fs::read_to_string(include.join(header)).ok());
    let text = text.ok_or_else(|| {
        format!(
            "gradpact-torch found no headers of libtorch in {}: see hosts/torch/setup.sh",
            include.display()
        )
    })?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok())
            .ok_or_else(|| format!("gradpact-torch does not understand `{name}` in the headers of libtorch"))
    };
    Ok((number("TORCH_VERSION_MAJOR")?, number("TORCH_VERSION_MINOR")?))
}
