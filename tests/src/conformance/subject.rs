//! What the cases are run on: an engine, with what they need beside [`Ops`].

use core::fmt;

use gradpact::autograd::Origin;
use gradpact::autograd::grad_mode::is_enabled;
use gradpact::function::{Graph as _, Roots};
use gradpact::ops::DynTensorOps as _;
use gradpact::{BackwardOptions, Cpu, DType, DynTensor, Ops, Result, Shape, no_grad};

use super::num::Num;
use super::probe::{Log, Probe};

/// The engine of a subject.
pub type Of<S> = <S as Subject>::Engine;

/// A tensor of a subject.
pub type Dyn<S> = DynTensor<Of<S>>;

/// An engine that is held against PyTorch.
pub trait Subject: Sized + fmt::Debug + 'static {
    /// The engine.
    type Engine: Ops;

    /// A tensor of these very bits.
    fn write(num: &Num, shape: impl Into<Shape>) -> Dyn<Self>;

    /// What a tensor holds.
    fn read(tensor: &Dyn<Self>) -> Num;

    /// The gradients of the roots with respect to `inputs`.
    ///
    /// # Errors
    /// What the engine reports.
    fn grad(
        roots: &Roots<'_, Of<Self>>,
        inputs: &[&Dyn<Self>],
        options: BackwardOptions,
    ) -> Result<Vec<Option<Dyn<Self>>>>;

    /// Runs `body` with recording off.
    fn unrecorded<R>(body: impl FnOnce() -> R) -> R;

    /// Whether the engine records what is computed now.
    fn is_recording() -> bool;

    /// What made a tensor: nothing of a leaf (`None`), else the name of the node, perhaps with what it leads to in parentheses.
    fn graph(tensor: &Dyn<Self>) -> String;

    /// A tensor that stands for `x` and notes its gradient: what a hook on `x` sees.
    fn watched(x: &Dyn<Self>) -> (Dyn<Self>, Log) {
        let log = Log::default();
        let probe = Probe::<Self>::new(&log, |_, inputs| Ok(inputs.get(0)?.clone().into()));
        (probe.on(x).unwrap()[0].clone(), log)
    }

    /// An operation that changes nothing and is recorded, as `clone` in PyTorch.
    ///
    /// # Errors
    /// What the engine reports.
    fn same(x: &Dyn<Self>) -> Result<Dyn<Self>> {
        x.add(&Self::full(x.dtype(), x.shape().clone(), 0.0))
    }

    /// A view of another shape and back, as `view` in PyTorch.
    ///
    /// # Errors
    /// What the engine reports.
    fn view(x: &Dyn<Self>) -> Result<Dyn<Self>> {
        let shape = x.shape().clone();
        x.reshape([shape.element_count(), 1])?.reshape(shape)
    }

    /// A tensor of one axis of these bits.
    fn vector(num: &Num) -> Dyn<Self> {
        Self::write(num, [num.bits.len()])
    }

    /// A tensor of these values, each rounded once by exact arithmetic.
    fn tensor(dtype: DType, values: &[f64]) -> Dyn<Self> {
        Self::vector(&Num::exactly(dtype, values))
    }

    /// A tensor of `shape` filled with one value.
    fn full(dtype: DType, shape: impl Into<Shape>, value: f64) -> Dyn<Self> {
        let shape = shape.into();
        Self::write(&Num::exactly(dtype, &vec![value; shape.element_count()]), shape)
    }

    /// A leaf of these values.
    fn leaf(dtype: DType, values: &[f64]) -> Dyn<Self> {
        Self::Engine::leaf(&Self::tensor(dtype, values), None).unwrap()
    }

    /// A leaf of ones.
    fn ones(dtype: DType, shape: impl Into<Shape>) -> Dyn<Self> {
        Self::Engine::leaf(&Self::full(dtype, shape, 1.0), None).unwrap()
    }
}

/// The embedded engine.
#[derive(Clone, Copy, Debug)]
pub enum Embedded {}

impl Subject for Embedded {
    type Engine = Cpu;

    fn write(num: &Num, shape: impl Into<Shape>) -> DynTensor {
        num.tensor(shape)
    }

    fn read(tensor: &DynTensor) -> Num {
        Num::of(tensor)
    }

    fn grad(
        roots: &Roots<'_, Cpu>,
        inputs: &[&DynTensor],
        options: BackwardOptions,
    ) -> Result<Vec<Option<DynTensor>>> {
        gradpact::grad(roots, inputs, options)
    }

    fn unrecorded<R>(body: impl FnOnce() -> R) -> R {
        no_grad(body)
    }

    fn is_recording() -> bool {
        is_enabled()
    }

    fn graph(tensor: &DynTensor) -> String {
        fn of(origin: &Origin<Cpu>) -> String {
            let Some(edge) = origin.edge() else { return "None".to_owned() };
            let next: Vec<_> = edge.node().next_edges().iter().map(of).collect();
            format!("{}({})", edge.node().name(), next.join(","))
        }
        if tensor.is_leaf() { "None".to_owned() } else { of(tensor.origin()) }
    }

    fn watched(x: &DynTensor) -> (DynTensor, Log) {
        let log = Log::default();
        let notes = log.clone();
        let hook = move |grad: &DynTensor| {
            notes.push(Num::of(grad));
            Ok(None)
        };
        x.register_hook(hook).unwrap();
        (x.clone(), log)
    }
}
