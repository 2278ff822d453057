//! `7.setter`: what may be made the gradient dtype of a leaf, and its gradient.

use gradpact::{BackwardOptions, DType, DynTensor, GradDType, Result};

use crate::messages;
use crate::num::{self, Num};
use crate::outcome::{Failed, Outcome};
use crate::probe::ones;
use crate::row::{Row, grad_dtype};
use crate::rules::Rule;
use crate::step::Step;

/// The name of an attempt, what PyTorch makes of it (`None` where the notes do not tell), and what our rules do.
type Attempt = (&'static str, Option<&'static str>, &'static str);

/// In this order; all from `f16 x: .grad = f32` on are made on one f16 leaf.
const ATTEMPTS: [Attempt; 20] = [
    ("default f32", Some("float32"), "float32"),
    ("default without requires_grad", Some("float32"), "float32"),
    ("set without requires_grad", Some("float16"), "error"),
    ("int tensor default", Some("int64"), "none"),
    ("int tensor set f32", Some("float32"), "error"),
    ("set int32", Some("int32"), "error"),
    ("f16 x: .grad = f32", Some("error"), "error"),
    ("grad_dtype = f32", Some("float32"), "float32"),
    ("then .grad = f32", Some("set"), "set"),
    ("then .grad = f16", Some("error"), "error"),
    ("existing f32 grad: grad_dtype = f16", Some("error"), "error"),
    ("existing f32 grad: grad_dtype = f32", Some("float32"), "float32"),
    ("existing f32 grad: grad_dtype = None", Some("None"), "None"),
    ("None: .grad = f64", Some("set"), "set"),
    ("None: .grad = int64", None, "error"),
    ("existing int64 grad: grad_dtype = f16", Some("error"), "error"),
    ("cleared: grad_dtype = f16", Some("float16"), "float16"),
    (".grad wrong shape", Some("error"), "error"),
    (".grad = int64", Some("error"), "error"),
    (".grad = itself", Some("error"), "error"),
];

/// Attempts that a type forbids.
const PYTHON_ONLY: [&str; 5] = ["set 'a'", "set 1", "set <class 'float'>", ".grad = 'a'", "warnings"];

const F16: GradDType = GradDType::Exactly(DType::F16);
const F32: GradDType = GradDType::Exactly(DType::F32);

/// The gradient dtype of a tensor, in PyTorch's words.
fn told(x: &DynTensor) -> String {
    match x.grad_dtype() {
        None => "none".to_owned(),
        Some(GradDType::Any) => "None".to_owned(),
        Some(GradDType::Exactly(dtype)) => num::name(dtype).to_owned(),
    }
}

/// What became of setting a gradient dtype.
fn set(x: &DynTensor, grad_dtype: GradDType) -> Result<String> {
    x.set_grad_dtype(grad_dtype).map(|()| told(x))
}

/// What became of assigning a gradient.
fn assign(x: &DynTensor, grad: &DynTensor) -> Result<String> {
    x.set_grad(Some(grad)).map(|()| "set".to_owned())
}

fn attempt(name: &str, x: &DynTensor) -> Result<String> {
    let untracked = |dtype| num::full(dtype, 2, 1.0);
    match name {
        "default f32" => Ok(told(&ones(DType::F32, 2))),
        "default without requires_grad" => Ok(told(&untracked(DType::F32))),
        "set without requires_grad" => set(&untracked(DType::F32), F16),
        "int tensor default" => Ok(told(&untracked(DType::I64))),
        "int tensor set f32" => set(&untracked(DType::I64), F32),
        "set int32" => set(&ones(DType::F32, 2), GradDType::Exactly(DType::I32)),
        "f16 x: .grad = f32" | "then .grad = f32" => assign(x, &untracked(DType::F32)),
        "then .grad = f16" => assign(x, &untracked(DType::F16)),
        "None: .grad = f64" => assign(x, &untracked(DType::F64)),
        "None: .grad = int64" | ".grad = int64" => assign(x, &untracked(DType::I64)),
        "grad_dtype = f32" | "existing f32 grad: grad_dtype = f32" => set(x, F32),
        "existing f32 grad: grad_dtype = f16" | "existing int64 grad: grad_dtype = f16" => set(x, F16),
        "existing f32 grad: grad_dtype = None" => set(x, GradDType::Any),
        "cleared: grad_dtype = f16" => {
            x.set_grad(None)?;
            set(x, F16)
        }
        ".grad wrong shape" => assign(x, &num::full(DType::F16, 3, 1.0)),
        ".grad = itself" => assign(x, x),
        other => panic!("7.setter: {other}: no such attempt"),
    }
}

/// `7.setter`, and of the families `7.setter/LEAF/KEPT/ASSIGNED`.
pub(crate) fn setter(row: &Row) -> Step {
    if let [leaf, kept, assigned] = row.parts()[..] {
        return assigned_to(row, leaf, kept, assigned);
    }
    let x = ones(DType::F16, 2);
    let (mut ours, mut measured) = (Outcome::default(), Outcome::default());
    let (mut by_rule, mut model) = (Outcome::default(), Outcome::default());
    for (name, torch, demanded) in ATTEMPTS {
        let became = attempt(name, &x).unwrap_or_else(|error| {
            messages::check(&format!("7.setter/{name}"), &Failed::ours("other", &error)).unwrap();
            "error".to_owned()
        });
        let found = row.told(name).unwrap();
        ours = ours.telling(name, became);
        by_rule = by_rule.telling(name, demanded);
        model = model.telling(name, torch.unwrap_or(&found));
        measured = measured.telling(name, found);
    }
    for name in row.json["extra"].as_object().unwrap().keys() {
        let known = ATTEMPTS.iter().any(|attempt| attempt.0 == name) || PYTHON_ONLY.contains(&&**name);
        assert!(known, "7.setter: {name}: neither replayed nor left out");
    }
    Step::modelled(ours, measured, Rule::LeavesHaveOne, by_rule).understood(model)
}

/// A gradient of one dtype is given to a leaf that keeps it in another; then every gradient dtype is set, and a
/// backward adds to it.
fn assigned_to(row: &Row, leaf: &str, kept: &str, assigned: &str) -> Step {
    let (kept, given) = (grad_dtype(kept).unwrap(), num::dtype(assigned).unwrap());
    let x = ones(num::dtype(leaf).unwrap(), 2);
    x.set_grad_dtype(kept).unwrap();
    let grad = Num::exactly(given, &[1.0, 0.0]);
    let result = x.set_grad(Some(&grad.vector()));
    let fits = given.is_float() && kept.dtype().is_none_or(|kept| kept == given);
    let mut by_rule = Outcome::default();
    if !fits {
        by_rule.failed = Some(Failed::measured("other"));
        let ours = Outcome { x_grad: x.grad().as_ref().map(Num::of), ..Outcome::default() };
        return Step::modelled(
            ours.failing("other", result),
            row.measured(&[]),
            Rule::IntegerGradient,
            by_rule,
        );
    }
    let mut ours = Outcome::default();
    for dtype in DType::FLOATS {
        let became = set(&x, GradDType::Exactly(dtype)).unwrap_or_else(|_| "error".to_owned());
        ours = ours.telling(num::name(dtype), became);
        by_rule = by_rule.telling(num::name(dtype), if dtype == given { num::name(dtype) } else { "error" });
    }
    x.backward_with(&Num::exactly(DType::F32, &[1.0, 1.0]).vector(), BackwardOptions::new()).unwrap();
    ours.x_grad = x.grad().as_ref().map(Num::of);
    by_rule.x_grad = Some(Num::exactly(given, &[2.0, 1.0]));
    Step::modelled(ours, row.measured(&[]), Rule::IntegerGradient, by_rule)
}
