//! Runs programs on a real engine, and writes down what each backward and each hook was given.

mod hooks;
mod recorder;

use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gradpact::autograd::{checkpoint, save_in, saved_tensors_hooks};
use gradpact::engine::{Cpu, Engine};
use gradpact::function::{Graph, apply_optional};
use gradpact::{DType, DynTensor, Result, autocast, cpu};

use crate::log::{Entry, Label, Seen};
use crate::plan::{Path, Region, RegionKind, kept_in};
use crate::program::{Leaf, LeafGrad, Pick, Program, Step};
use crate::toy::{self, Toy};
use recorder::Recorder;

/// What a program needs of an engine: tensors from values and back, and two operations.
pub trait Lab: Graph {
    /// The names of its sum and its product.
    const OPERATIONS: [&'static str; 2];

    /// A tensor with these values, rounded to `dtype`.
    ///
    /// # Errors
    /// The engine's.
    fn tensor(dtype: DType, values: &[f64]) -> Result<DynTensor<Self>>;

    /// The values, each as an `f64`.
    ///
    /// # Errors
    /// The engine's.
    fn values(tensor: &DynTensor<Self>) -> Result<Vec<f64>>;

    /// `a + b`.
    ///
    /// # Errors
    /// The engine's.
    fn add(a: &DynTensor<Self>, b: &DynTensor<Self>) -> Result<DynTensor<Self>>;

    /// `a · b`.
    ///
    /// # Errors
    /// The engine's.
    fn mul(a: &DynTensor<Self>, b: &DynTensor<Self>) -> Result<DynTensor<Self>>;
}

impl Lab for Toy {
    const OPERATIONS: [&'static str; 2] = ["ToyAdd", "ToyMul"];

    fn tensor(dtype: DType, values: &[f64]) -> Result<DynTensor<Self>> {
        Ok(toy::tensor(dtype, values))
    }

    fn values(tensor: &DynTensor<Self>) -> Result<Vec<f64>> {
        Ok(tensor.array().values().to_vec())
    }

    fn add(a: &DynTensor<Self>, b: &DynTensor<Self>) -> Result<DynTensor<Self>> {
        toy::add(a, b)
    }

    fn mul(a: &DynTensor<Self>, b: &DynTensor<Self>) -> Result<DynTensor<Self>> {
        toy::mul(a, b)
    }
}

impl Lab for Cpu {
    const OPERATIONS: [&'static str; 2] = ["Add", "Mul"];

    fn tensor(dtype: DType, values: &[f64]) -> Result<DynTensor<Self>> {
        Ok(DynTensor::from_array(cpu::Array::from_slice(values, [values.len()])?.cast(dtype)?))
    }

    fn values(tensor: &DynTensor<Self>) -> Result<Vec<f64>> {
        DynTensor::from_array(tensor.array().cast(DType::F64)?).to_vec()
    }

    fn add(a: &DynTensor<Self>, b: &DynTensor<Self>) -> Result<DynTensor<Self>> {
        a.add(b)
    }

    fn mul(a: &DynTensor<Self>, b: &DynTensor<Self>) -> Result<DynTensor<Self>> {
        a.mul(b)
    }
}

/// Dtype and values of a gradient.
///
/// # Errors
/// The engine's.
pub fn seen<E: Lab>(grad: Option<&DynTensor<E>>) -> Result<Seen> {
    grad.map(|grad| Ok((grad.dtype(), E::values(grad)?))).transpose()
}

/// What the parts of a run share.
#[derive(Debug)]
struct Shared {
    program: Program,
    regions: Vec<Region>,
    log: Mutex<Vec<Entry>>,
    /// How many backwards have begun.
    passes: AtomicUsize,
    /// The compute dtype that each step's Function first ran in.
    computed_in: Mutex<BTreeMap<usize, Option<DType>>>,
    /// How often each checkpoint ran.
    runs: Mutex<BTreeMap<Path, usize>>,
}

impl Shared {
    fn write(&self, entry: Entry) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}

/// A program, run forward on an engine.
#[derive(Debug)]
pub struct Run<E: Engine> {
    /// All variables, leaves first.
    pub variables: Vec<DynTensor<E>>,
    /// Roots and seeds.
    pub roots: Vec<(DynTensor<E>, Option<DynTensor<E>>)>,
    shared: Arc<Shared>,
}

impl<E: Lab> Run<E> {
    /// Runs a program forward.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(program: &Program) -> Result<Self> {
        Self::inside(program, &[])
    }

    /// Runs a program forward, its steps in regions.
    ///
    /// # Errors
    /// The engine's.
    pub fn inside(program: &Program, regions: &[Region]) -> Result<Self> {
        let shared = Arc::new(Shared {
            program: program.clone(),
            regions: regions.to_vec(),
            log: Mutex::default(),
            passes: AtomicUsize::new(0),
            computed_in: Mutex::default(),
            runs: Mutex::default(),
        });
        let leaves = program.leaves.iter().map(leaf_of).collect::<Result<_>>()?;
        let variables = block(&shared, leaves, 0..program.steps.len(), (Path::new(), 0))?;
        let tracked: Vec<_> = variables.iter().filter(|variable| variable.requires_grad()).collect();
        let mut roots = Vec::new();
        for root in program.roots.iter().filter(|_| !tracked.is_empty()) {
            let seed = |seed: &crate::program::Seed| {
                let values = E::tensor(seed.dtype, &seed.values)?;
                if seed.tracked { values.requiring_grad() } else { Ok(values) }
            };
            let seed = root.seed.as_ref().map(seed).transpose()?;
            roots.push((tracked[root.at.of(tracked.len())].clone(), seed));
        }
        Ok(Self { variables, roots, shared })
    }

    /// Roots and seeds for a backward that is about to begin, as the calls want them.
    pub fn roots(&self) -> Vec<(&DynTensor<E>, Option<&DynTensor<E>>)> {
        self.begin_pass();
        self.roots.iter().map(|(root, seed)| (root, seed.as_ref())).collect()
    }

    /// Says that a backward is about to begin.
    pub fn begin_pass(&self) {
        self.shared.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// The leaves of the program, constants too.
    pub fn leaves(&self) -> &[DynTensor<E>] {
        &self.variables[..self.shared.program.leaves.len()]
    }

    /// What was written down since the last time.
    pub fn take_log(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.shared.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often each checkpoint has run since the last time.
    pub fn take_runs(&self) -> BTreeMap<Path, usize> {
        std::mem::take(&mut *self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn leaf_of<E: Lab>(leaf: &Leaf) -> Result<DynTensor<E>> {
    let values = E::tensor(leaf.dtype, &leaf.values)?;
    match leaf.tracked {
        None => Ok(values),
        Some(LeafGrad::Default) => values.requiring_grad(),
        Some(LeafGrad::Declared(grad_dtype)) => values.requiring_grad_in(grad_dtype),
    }
}

type Variables<E> = Vec<DynTensor<E>>;

/// Runs steps, in the regions from the one that `at` says on (and by which path it came there), and returns the variables
/// with theirs. See [`around`](crate::plan::around).
fn block<E: Lab>(
    shared: &Arc<Shared>,
    mut variables: Variables<E>,
    steps: Range<usize>,
    at: (Path, usize),
) -> Result<Variables<E>> {
    let (path, next) = at;
    let region = shared.regions.get(next).filter(|_| !steps.is_empty());
    let Some(region) = region else {
        for step in steps {
            let outputs = run_step(shared, &variables, step)?;
            variables.extend(outputs);
        }
        return Ok(variables);
    };
    let part = region.part_of(&steps);
    let nowhere = (Path::new(), usize::MAX);
    variables = block(shared, variables, steps.start..part.start, nowhere)?;
    let along = |way: u8| path.iter().copied().chain([way]).collect::<Path>();
    variables = in_region(shared, region.kind, variables, part.clone(), (along(0), next + 1))?;
    block(shared, variables, part.end..steps.end, (along(1), next + 1))
}

fn in_region<E: Lab>(
    shared: &Arc<Shared>,
    kind: RegionKind,
    variables: Variables<E>,
    steps: Range<usize>,
    at: (Path, usize),
) -> Result<Variables<E>> {
    let inner = |variables| block(shared, variables, steps.clone(), at.clone());
    match kind {
        RegionKind::Autocast(dtype) => autocast(dtype, || inner(variables))?,
        RegionKind::SaveIn(dtype) => save_in(dtype, || inner(variables))?,
        RegionKind::Hooks => {
            let same = |tensor: &DynTensor<E>| Ok(tensor.clone());
            saved_tensors_hooks(same, same, || inner(variables))
        }
        RegionKind::Checkpoint => {
            let shared = Arc::clone(shared);
            checkpoint(move || {
                let mut runs = shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
                *runs.entry(at.0.clone()).or_default() += 1;
                drop(runs);
                block(&shared, variables.clone(), steps.clone(), at.clone())
            })
        }
    }
}

fn run_step<E: Lab>(
    shared: &Arc<Shared>,
    variables: &[DynTensor<E>],
    step: usize,
) -> Result<Vec<DynTensor<E>>> {
    let picked = |pick: Pick| &variables[pick.of(variables.len())];
    Ok(vec![match &shared.program.steps[step] {
        Step::Custom(custom) => {
            let inputs: Vec<_> = custom.inputs.iter().map(|input| input.map(picked)).collect();
            let kept_in = kept_in(step, shared.program.steps.len(), &shared.regions);
            let (custom, shared) = (custom.clone(), Arc::clone(shared));
            let recorder = Recorder { label: Label::of_step(step), custom, kept_in, shared };
            return Ok(apply_optional(recorder, &inputs)?.into_iter().collect());
        }
        &Step::Add(a, b) => E::add(picked(a), picked(b))?,
        &Step::Mul(a, b) => E::mul(picked(a), picked(b))?,
        &Step::Cast(x, dtype) => picked(x).cast(dtype)?,
        &Step::Redeclare(x, grad_dtype) => picked(x).with_grad_dtype(grad_dtype)?,
        &Step::Detach(x) => picked(x).detach(),
    }])
}
