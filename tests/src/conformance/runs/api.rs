//! Group 2: what may be declared, when, and which mistakes are errors.

use gradpact::function::Graph as _;
use gradpact::{BackwardOptions, Context, DType, GradDType, Inputs, Outputs, Result};

use super::{F16, F32};
use crate::conformance::num;
use crate::conformance::outcome::Outcome;
use crate::conformance::probe::{Log, Probe};
use crate::conformance::row::Row;
use crate::conformance::subject::{Dyn, Of, Subject};

/// The forward of a Function.
type Forward<E> = dyn Fn(&mut Context<E>, &Inputs<'_, E>) -> Result<Outputs<E>> + Send + Sync;

/// How a case is run.
struct Case<S: Subject> {
    forward: Box<Forward<Of<S>>>,
    /// Seeds of the first outputs; ones for the first output if there are none.
    seeds: Vec<Dyn<S>>,
    requires_grad: bool,
    recorded: bool,
}

impl<S: Subject> Case<S> {
    fn new(
        forward: impl Fn(&mut Context<Of<S>>, &Inputs<'_, Of<S>>) -> Result<Outputs<Of<S>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { forward: Box::new(forward), seeds: Vec::new(), requires_grad: true, recorded: true }
    }

    /// A Function with one output in f16, which declares these.
    fn half(declared: Vec<GradDType>) -> Self {
        Self::new(move |ctx, inputs| {
            ctx.set_output_grad_dtype(&declared)?;
            half::<S>(inputs)
        })
    }

    /// The same, declaring it twice.
    fn twice() -> Self {
        Self::new(|ctx, inputs| {
            ctx.set_output_grad_dtype(&[F32])?;
            ctx.set_output_grad_dtype(&[F32])?;
            half::<S>(inputs)
        })
    }

    /// Two f16 outputs, the second not differentiable.
    fn second_marked(declared: Vec<GradDType>) -> Self {
        Self::new(move |ctx, inputs| {
            ctx.mark_non_differentiable(&[1]);
            ctx.set_output_grad_dtype(&declared)?;
            Ok([inputs.get(0)?.cast(DType::F16)?, inputs.get(0)?.cast(DType::F16)?].into())
        })
    }

    /// An f16 and an integer output.
    fn second_integer(declared: Vec<GradDType>) -> Self {
        Self::new(move |ctx, inputs| {
            ctx.set_output_grad_dtype(&declared)?;
            Ok([inputs.get(0)?.cast(DType::F16)?, inputs.get(0)?.cast(DType::I64)?].into())
        })
    }

    /// One f16 output, and a declaration that follows it, as in `setup_context`: the output's own dtype if `declared` is empty.
    fn late(declared: Vec<GradDType>) -> Self {
        Self::new(move |ctx, inputs| {
            let outputs = half::<S>(inputs)?;
            let own = [GradDType::Exactly(outputs[0].dtype())];
            ctx.set_output_grad_dtype(if declared.is_empty() { &own } else { &declared })?;
            Ok(outputs)
        })
    }

    fn seeds(mut self, seeds: Vec<Dyn<S>>) -> Self {
        self.seeds = seeds;
        self
    }

    fn run(self) -> Outcome {
        let log = Log::default();
        let (dtype, values) = (DType::F32, [1.0, 2.0]);
        let x = if self.requires_grad { S::leaf(dtype, &values) } else { S::tensor(dtype, &values) };
        let probe = Probe::<S>::new(&log, self.forward);
        let outputs = if self.recorded { probe.on(&x) } else { S::unrecorded(|| probe.on(&x)) };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(error) => return Outcome::left::<S>(&log, Some(&x)).failing("forward", Err(error)),
        };
        let tracked = |output: &Dyn<S>| Of::<S>::is_tracked(output);
        let flag = |output| Some(num::Num::exactly(DType::Bool, &[f64::from(u8::from(tracked(output)))]));
        let flags: Vec<_> = outputs.iter().map(flag).collect();
        let seeds = if self.seeds.is_empty() {
            let first = outputs.first().filter(|output| tracked(output));
            first.map(|first| S::full(DType::F16, first.shape().clone(), 1.0)).into_iter().collect()
        } else {
            self.seeds
        };
        let roots: Vec<_> = outputs.iter().zip(&seeds).map(|(output, seed)| (output, Some(seed))).collect();
        let result =
            if roots.is_empty() { Ok(()) } else { Of::<S>::run_backward(&roots, BackwardOptions::new()) };
        Outcome::left::<S>(&log, Some(&x)).failing("backward", result).noting(FLAGS, flags)
    }
}

/// Which outputs require a gradient, among the facts of a case.
pub const FLAGS: &str = "out_requires_grad";

fn half<S: Subject>(inputs: &Inputs<'_, Of<S>>) -> Result<Outputs<Of<S>>> {
    Ok(inputs.get(0)?.cast(DType::F16)?.into())
}

/// A case of group 2 that [`left_out`](crate::conformance::left_out) does not list; `None` if it has a dtype that we do not have.
pub fn replay<S: Subject>(row: &Row) -> Option<Outcome> {
    let exactly = GradDType::Exactly;
    let (name, rest) = name(row);
    let case = match (name, rest) {
        ("count", "too_few") => Case::<S>::new(|ctx, inputs| {
            ctx.set_output_grad_dtype(&[F32])?;
            let x = inputs.get(0)?;
            Ok([x.cast(DType::F16)?, x.cast(DType::BF16)?].into())
        }),
        ("count", "too_many") => Case::half(vec![F32, F32]),
        ("count", "zero_declarations") => Case::half(vec![]),
        ("count", "empty_tuple_output_zero_declarations") => Case::new(|ctx, _| {
            ctx.set_output_grad_dtype(&[])?;
            Ok(Outputs::new())
        }),
        ("twice", "") | ("setup_context", "twice") => Case::twice(),
        ("twice", "first_call_empty") => Case::new(|ctx, inputs| {
            ctx.set_output_grad_dtype(&[])?;
            ctx.set_output_grad_dtype(&[F32])?;
            half::<S>(inputs)
        }),
        // There is one forward with the context; outputs are there before the declaration, as in setup_context.
        ("setup_context", "ok") => Case::late(vec![F32]),
        ("setup_context", "wrong_count") => Case::late(vec![F32, F32]),
        ("setup_context", "own_dtype_of_output") => Case::late(vec![]),
        ("nondiff_dtype_for_float_output", dtype) => {
            Case::half(vec![exactly(num::dtype(dtype)?)]).seeds(vec![S::tensor(DType::F32, &[1.7, -2.7])])
        }
        ("int_gradient", declared) => declaring(declared).seeds(vec![S::tensor(DType::I64, &[1.0, 2.0])]),
        ("bool_gradient", declared) => declaring(declared).seeds(vec![S::tensor(DType::Bool, &[1.0, 0.0])]),
        // The fourth output, a string, has no twin here; the three tensors have.
        ("multi", "doc_example") => {
            let case = Case::new(|ctx, inputs| {
                ctx.set_output_grad_dtype(&[F32, F16, GradDType::Any])?;
                let half = || inputs.get(0)?.cast(DType::F16);
                Ok([half()?, half()?, half()?].into_iter().collect())
            });
            case.seeds(vec![S::tensor(DType::F64, &[0.1, 0.1]); 3])
        }
        ("slot", "concrete_for_int_output") => Case::second_integer(vec![F32, F32]),
        ("slot", "own_dtype_for_int_output") => Case::second_integer(vec![F32, exactly(DType::I64)]),
        ("slot", "None_for_int_output") => Case::second_integer(vec![F32, GradDType::Any]),
        ("slot", "one_tuple_output") => Case::half(vec![F32]),
        ("slot", "concrete_for_mark_non_differentiable") => Case::second_marked(vec![F32, F32]),
        ("slot", "own_dtype_for_mark_non_differentiable") => Case::second_marked(vec![F32, F16]),
        ("slot", "None_for_mark_non_differentiable") => Case::second_marked(vec![F32, GradDType::Any]),
        ("no_input_requires_grad" | "no_grad" | "inference_mode", what) => {
            let mut case = match what {
                "ok" => Case::half(vec![F32]),
                "wrong_count" => Case::half(vec![F32, F32]),
                "nondiff_slot" => Case::second_marked(vec![F32, F32]),
                "int_dtype" => Case::half(vec![exactly(DType::I32)]),
                "twice" => Case::twice(),
                _ => panic!("{}: no such case", row.id),
            };
            case.requires_grad = name != "no_input_requires_grad";
            case.recorded = name == "no_input_requires_grad";
            case
        }
        _ => panic!("{}: no such case", row.id),
    };
    Some(case.run())
}

/// What a case of group 2 is called: `NAME/REST`.
pub fn name(row: &Row) -> (&str, &str) {
    let name = &row.id["2.".len()..];
    name.split_once('/').unwrap_or((name, ""))
}

/// `out_f16_DECLARED`.
fn declaring<S: Subject>(declared: &str) -> Case<S> {
    match declared.trim_start_matches("out_f16_") {
        "omitted" => Case::new(|_, inputs| half::<S>(inputs)),
        "f32" => Case::half(vec![F32]),
        _ => Case::half(vec![GradDType::Any]),
    }
}

/// What PyTorch did, with the flags of the outputs where a case tells them, without the slot that only Python has.
pub fn measured(row: &Row) -> Outcome {
    let mut measured = row.measured(if row.json["extra"].is_null() { &[] } else { &[FLAGS] });
    if row.id == "2.multi/doc_example" {
        assert_eq!(measured.received[0].pop(), Some(None), "the string's slot");
        measured.extra.values_mut().for_each(|flags| drop(flags.pop()));
    }
    measured
}

/// After an error nobody asks which outputs require a gradient.
pub fn without_flags_of_failures(mut outcome: Outcome) -> Outcome {
    if outcome.failed.is_some() {
        outcome.extra.clear();
    }
    outcome
}
