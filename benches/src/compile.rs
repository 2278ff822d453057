//! What it costs to compile: 500 Functions by the attribute and by hand, and the crate itself.
//!
//! Crates are written into a temporary folder and built there by cargo, without incremental compilation, once their
//! dependencies are.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use crate::Outcome;
use crate::measure::{Column, Contender, Group, timed};
use crate::torch::Torch;

const FUNCTIONS: usize = 500;
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The groups of this module.
///
/// # Errors
/// If the temporary folder cannot be written.
pub fn groups(_: &Torch) -> Outcome<Vec<Group>> {
    let folder = Rc::new(Folder::new("functions")?);
    let by = |column: Column, name: &'static str, function: fn(usize) -> String| -> Outcome<Contender> {
        folder.write_crate(name, &source(function))?;
        let folder = Rc::clone(&folder);
        Ok(Contender::new(column, move || {
            // In this order: what is checked is not built, and the other way round.
            Ok(vec![folder.cargo("check", name)?, folder.cargo("build", name)?])
        }))
    };
    let baseline = |name: &str| Column::Baseline(name.to_owned());
    let crates = vec![
        by(Column::Ours, "annotated", annotated)?,
        by(baseline("what the attribute expands to, by hand"), "expanded", expanded)?,
        by(baseline("`impl Function`, without types"), "dynamic", dynamic)?,
    ];
    folder.write_workspace(&["annotated", "expanded", "dynamic"])?;
    let clean = Contender::new(Column::Ours, clean_build);
    Ok(vec![
        Group::new(format!("a crate with {FUNCTIONS} Functions"), "s", crates)
            .metrics(&["cargo check", "cargo build"])
            .at_most(3),
        Group::new(format!("clean release build of gradpact ({} crates)", crate_count()?), "s", vec![clean])
            .at_most(1),
    ])
}

/// A temporary folder with generated crates; removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(purpose: &str) -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("gradpact-{purpose}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn write_workspace(&self, members: &[&str]) -> Outcome<()> {
        let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
        std::fs::write(self.0.join("Cargo.toml"), manifest)?;
        // The same versions of dependencies as here.
        std::fs::copy(Path::new(REPOSITORY).join("Cargo.lock"), self.0.join("Cargo.lock"))?;
        Ok(())
    }

    fn write_crate(&self, name: &str, source: &str) -> Outcome<()> {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.join("src"))?;
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\ngradpact = {{ path = \"{REPOSITORY}/runtime\" }}\n"
        );
        std::fs::write(path.join("Cargo.toml"), manifest)?;
        Ok(std::fs::write(path.join("src/lib.rs"), source)?)
    }

    /// How many seconds cargo takes over one crate whose source has just been written.
    fn cargo(&self, command: &str, name: &str) -> Outcome<f64> {
        let source = self.0.join(name).join("src/lib.rs");
        std::fs::write(&source, std::fs::read(&source)?)?;
        let mut cargo = cargo();
        cargo.args([command, "--quiet", "-p", name]).current_dir(&self.0);
        cargo.arg("--target-dir").arg(self.0.join("target"));
        succeed(&mut cargo)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over in a temporary folder does no harm.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo
}

fn succeed(cargo: &mut Command) -> Outcome<f64> {
    let (output, seconds) = timed(|| Ok(cargo.output()?))?;
    if !output.status.success() {
        // Five hundred Functions have the same mistake.
        let text = String::from_utf8_lossy(&output.stderr);
        let first = text.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(first.to_owned().into());
    }
    Ok(seconds)
}

fn clean_build() -> Outcome<Vec<f64>> {
    let target = Folder::new("clean")?;
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--quiet", "-p", "gradpact"]).current_dir(REPOSITORY);
    cargo.arg("--target-dir").arg(&target.0);
    Ok(vec![succeed(&mut cargo)?])
}

/// How many crates a user of gradpact builds, itself and the macro crate included.
fn crate_count() -> Outcome<usize> {
    let mut tree = cargo();
    tree.args(["tree", "-p", "gradpact", "--edges", "normal", "--prefix", "none", "--no-dedupe"]);
    let output = tree.current_dir(REPOSITORY).output()?;
    let text = String::from_utf8(output.stdout)?;
    let crates = text.lines().map(|line| line.split(" (").next().unwrap_or(line));
    Ok(crates.filter(|name| !name.is_empty()).collect::<std::collections::BTreeSet<_>>().len())
}

fn source(function: fn(usize) -> String) -> String {
    let mut source = "//! Generated.\nuse gradpact::prelude::*;\n".to_owned();
    for number in 0..FUNCTIONS {
        source.push_str(&function(number));
    }
    source
}

/// A Function by the attribute, and a call of it.
fn annotated(number: usize) -> String {
    format!("\n#[autograd_function(out = f16, grad = f32)]\npub struct F{number};\n{}", formulas(number))
}

/// The formulas that go with a contract, and a call.
fn formulas(number: usize) -> String {
    format!(
        "
impl Op for F{number} {{
    type Inputs = Tensor<f32>;
    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {{
        ctx.save_for_backward(&x);
        x.mul(&x)?.mul_scalar({number}.0)?.cast()
    }}
    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {{
        let x: Value<f32> = ctx.saved()?;
        grad.mul(&x)?.mul_scalar(2.0 * {number}.0)
    }}
}}
pub fn call_{number}(x: &Tensor<f32>) -> Result<Tensor<f16, f32>> {{
    F{number}.apply(x)
}}
"
    )
}

/// The same with what the attribute writes written out: without the work of the attribute.
fn expanded(number: usize) -> String {
    let mut text = format!("\npub struct F{number};\n");
    let _written = write!(
        text,
        "
impl gradpact::__private::Contract for F{number} {{
    type Outputs<E: gradpact::Engine> = Tensor<f16, f32, E>;
    type Received<E: gradpact::Engine> = Self::Outputs<E>;
    type Backward = gradpact::__private::Written;
    fn record<E: gradpact::Graph>(self, inputs: &gradpact::__private::GivenInputs<'_, E>) -> Result<Outputs<E>>
    where
        Self: Op<E>,
    {{
        gradpact::__private::apply_optional(self, inputs)
    }}
}}
impl<E: gradpact::Engine> Function<E> for F{number}
where
    Self: Op<E>,
{{
    fn name(&self) -> &'static str {{
        \"F{number}\"
    }}
    fn forward(&self, ctx: &mut Context<E>, inputs: &Inputs<'_, E>) -> Result<Outputs<E>> {{
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        gradpact::__private::forward(self, ctx, inputs)
    }}
    fn backward(&self, ctx: &Context<E>, grads: Gradients<E>) -> Result<Gradients<E>> {{
        gradpact::__private::backward(self, ctx, grads)
    }}
}}
"
    );
    text + &formulas(number)
}

/// The same as a user writes it who does without the attribute.
fn dynamic(number: usize) -> String {
    format!(
        "
pub struct F{number};
impl Function for F{number} {{
    fn name(&self) -> &'static str {{
        \"F{number}\"
    }}
    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {{
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        let x = inputs.get(0)?;
        ctx.save_for_backward(x);
        Ok(x.mul(x)?.mul_scalar({number}.0)?.cast(DType::F16)?.into())
    }}
    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {{
        let x = ctx.saved_tensor(0)?;
        let Some(grad) = &grads[0] else {{ return Ok(grads) }};
        Ok(grad.mul(x)?.mul_scalar(2.0 * {number}.0)?.into())
    }}
}}
pub fn call_{number}(x: &Tensor<f32>) -> Result<Tensor<f16, f32>> {{
    apply(F{number}, &[x.as_dyn()])?[0].typed()
}}
"
    )
}
