//! Runs programs on a real engine, and writes down what each backward received.

use std::sync::{Arc, Mutex, PoisonError};

use gradpact::engine::{Cpu, Engine};
use gradpact::function::apply_optional;
use gradpact::{Context, DType, DynTensor, Error, Function, Gradients, Inputs, Outputs, Result, cpu};

use crate::program::{Custom, Leaf, LeafGrad, Pick, Program, Step};
use crate::toy::{self, Toy};

/// What a program needs of an engine: tensors from values and back, and two operations.
pub trait Lab: Engine {
    /// The engine's name, for messages.
    const NAME: &'static str;

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
    const NAME: &'static str = "toy";

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
    const NAME: &'static str = "cpu";

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

/// A gradient as it came: dtype and values.
pub type Seen = Option<(DType, Vec<f64>)>;

/// One call of a Function's backward.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which step's Function.
    pub step: usize,
    /// What it was given for each output.
    pub received: Vec<Seen>,
    /// Of which inputs a gradient was wanted.
    pub needs: Vec<bool>,
}

/// The calls so far, last step first.
pub type Log = Arc<Mutex<Vec<Call>>>;

/// A program, run forward on an engine.
#[derive(Debug)]
pub struct Run<E: Engine> {
    /// All variables, leaves first.
    pub variables: Vec<DynTensor<E>>,
    /// Roots and seeds.
    pub roots: Vec<(DynTensor<E>, Option<DynTensor<E>>)>,
    length: usize,
    log: Log,
}

impl<E: Lab> Run<E> {
    /// Runs a program forward.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(program: &Program) -> Result<Self> {
        let mut run = Self { variables: vec![], roots: vec![], length: program.length, log: Log::default() };
        for leaf in &program.leaves {
            run.variables.push(leaf_of(leaf)?);
        }
        for (step, content) in program.steps.iter().enumerate() {
            let outputs = run.step(step, content)?;
            run.variables.extend(outputs);
        }
        let tracked: Vec<_> = run.variables.iter().filter(|variable| variable.requires_grad()).collect();
        for root in program.roots.iter().filter(|_| !tracked.is_empty()) {
            let seed = root.seed.as_ref().map(|(dtype, values)| E::tensor(*dtype, values)).transpose()?;
            run.roots.push((tracked[root.at.of(tracked.len())].clone(), seed));
        }
        Ok(run)
    }

    /// Roots and seeds, as the calls want them.
    pub fn roots(&self) -> Vec<(&DynTensor<E>, Option<&DynTensor<E>>)> {
        self.roots.iter().map(|(root, seed)| (root, seed.as_ref())).collect()
    }

    /// The calls of backward since the last time.
    pub fn take_log(&self) -> Vec<Call> {
        std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn picked(&self, pick: Pick) -> &DynTensor<E> {
        &self.variables[pick.of(self.variables.len())]
    }

    fn step(&self, step: usize, content: &Step) -> Result<Vec<DynTensor<E>>> {
        Ok(vec![match content {
            Step::Custom(custom) => {
                let inputs: Vec<_> =
                    custom.inputs.iter().map(|input| input.map(|p| self.picked(p))).collect();
                let (log, length) = (Arc::clone(&self.log), self.length);
                let recorder = Recorder { step, custom: custom.clone(), log, length };
                return Ok(apply_optional(recorder, &inputs)?.into_iter().collect());
            }
            &Step::Add(a, b) => E::add(self.picked(a), self.picked(b))?,
            &Step::Mul(a, b) => E::mul(self.picked(a), self.picked(b))?,
            &Step::Cast(x, dtype) => self.picked(x).cast(dtype)?,
            &Step::Redeclare(x, grad_dtype) => self.picked(x).with_grad_dtype(grad_dtype)?,
            &Step::Detach(x) => self.picked(x).detach(),
        }])
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

/// Dtype and values of a gradient.
///
/// # Errors
/// The engine's.
pub fn seen<E: Lab>(grad: Option<&DynTensor<E>>) -> Result<Seen> {
    grad.map(|grad| Ok((grad.dtype(), E::values(grad)?))).transpose()
}

/// The Function of a custom step.
struct Recorder {
    step: usize,
    custom: Custom,
    log: Log,
    length: usize,
}

impl Recorder {
    /// Whether what was saved comes back as it was.
    fn check_saved<E: Lab>(&self, ctx: &Context<E>) -> Result<()> {
        let saved =
            ctx.saved_tensors()?.iter().map(|tensor| seen(Some(tensor))).collect::<Result<Vec<_>>>()?;
        let expected = ctx.stored::<Vec<Seen>>().cloned().unwrap_or_default();
        // By their text, so that a NaN is like itself.
        let same = format!("{saved:?}") == format!("{expected:?}");
        if same { Ok(()) } else { Err(Error::custom(format!("saved {expected:?}, got back {saved:?}"))) }
    }
}

impl<E: Lab> Function<E> for Recorder {
    fn name(&self) -> &'static str {
        "Recorder"
    }

    fn forward(&self, ctx: &mut Context<E>, inputs: &Inputs<'_, E>) -> Result<Outputs<E>> {
        let custom = &self.custom;
        let outputs = 0..custom.outputs.len();
        if custom.declares {
            let declared: Vec<_> = outputs.clone().map(|position| custom.declaration(position)).collect();
            ctx.set_output_grad_dtype(&declared)?;
        }
        let constant: Vec<_> = outputs.clone().filter(|&p| !custom.outputs[p].differentiable).collect();
        ctx.mark_non_differentiable(&constant);
        ctx.set_materialize_grads(custom.materializes);
        let values: Vec<_> = inputs.iter().map(|x| x.map(E::values).transpose()).collect::<Result<_>>()?;
        let first = inputs.iter().flatten().next();
        let output = |position: usize| match (first, &custom.outputs[position]) {
            (Some(first), output) if output.converts_input => first.cast(output.dtype),
            (_, output) => E::tensor(output.dtype, &custom.forward(position, &values, self.length)),
        };
        let outputs: Vec<_> = outputs.map(output).collect::<Result<_>>()?;
        if custom.saves {
            let saved: Vec<_> = inputs.iter().flatten().chain(&outputs).cloned().collect();
            ctx.save_for_backward(&saved[..]);
            ctx.store(saved.iter().map(|tensor| seen(Some(tensor))).collect::<Result<Vec<_>>>()?);
        }
        Ok(outputs.into())
    }

    fn backward(&self, ctx: &Context<E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        if self.custom.saves {
            self.check_saved(ctx)?;
        }
        let received: Vec<_> = grads.iter().map(|grad| seen(grad.as_ref())).collect::<Result<_>>()?;
        let values: Vec<_> = received.iter().map(|seen| Some(seen.as_ref()?.1.clone())).collect();
        let inputs = 0..self.custom.inputs.len();
        let needs = inputs.clone().map(|position| ctx.needs_input_grad(position)).collect();
        let call = Call { step: self.step, received, needs };
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        let returned = |position: usize| {
            let dtype = self.custom.returns[position].dtype;
            let grad =
                dtype.and_then(|dtype| Some((dtype, self.custom.backward(position, &values, self.length)?)));
            grad.map(|(dtype, values)| E::tensor(dtype, &values)).transpose()
        };
        let mut returned: Gradients<E> = inputs.map(returned).collect::<Result<_>>()?;
        if self.custom.returns_too_many {
            returned.push(None);
        }
        Ok(returned)
    }
}
