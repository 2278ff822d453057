//! Group 2: what may be declared, when, and which mistakes are errors.

use gradpact::{
    BackwardOptions, Context, DType, DynTensor, GradDType, Inputs, Outputs, Result, Shape, backward, no_grad,
};

use crate::num::{self, Num};
use crate::outcome::{Failed, Outcome};
use crate::probe::{Log, Probe};
use crate::row::Row;
use crate::rules::Rule;
use crate::step::Step;

const F32: GradDType = GradDType::Exactly(DType::F32);

type Forward = fn(&mut Context, &Inputs<'_>) -> Result<Outputs>;

/// How a case is run.
struct Case<'a> {
    row: &'a Row,
    forward: Box<dyn Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync>,
    /// Seeds of the first outputs; ones for the first output if there are none.
    seeds: Vec<DynTensor>,
    requires_grad: bool,
    recorded: bool,
}

impl<'a> Case<'a> {
    fn new(
        row: &'a Row,
        forward: impl Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        Self { row, forward: Box::new(forward), seeds: Vec::new(), requires_grad: true, recorded: true }
    }

    /// A Function with one output in f16, which declares these.
    fn half(row: &'a Row, declared: Vec<GradDType>) -> Self {
        Self::new(row, move |ctx, inputs| {
            ctx.set_output_grad_dtype(&declared)?;
            half(ctx, inputs)
        })
    }

    fn seeds(mut self, seeds: Vec<DynTensor>) -> Self {
        self.seeds = seeds;
        self
    }

    fn run(self) -> Outcome {
        let log = Log::default();
        let x = num::tensor(DType::F32, &[1.0, 2.0]);
        let x = if self.requires_grad { x.requiring_grad().unwrap() } else { x };
        let probe = Probe::new(&log, self.forward);
        let outputs = if self.recorded { probe.on(&x) } else { no_grad(|| probe.on(&x)) };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(error) => return Outcome::of(&log, Some(&x)).failing("forward", Err(error)),
        };
        let requires_grad = outputs.iter().map(|output| {
            Some(num::full(DType::Bool, Shape::scalar(), f64::from(u8::from(output.requires_grad()))))
        });
        let requires_grad: Vec<_> = requires_grad.collect();
        let seeds = if self.seeds.is_empty() {
            let first = outputs.first().filter(|output| output.requires_grad());
            first.map(|first| num::full(DType::F16, first.shape().clone(), 1.0)).into_iter().collect()
        } else {
            self.seeds
        };
        let roots: Vec<_> = outputs.iter().zip(&seeds).map(|(output, seed)| (output, Some(seed))).collect();
        let result = backward(&roots, BackwardOptions::new());
        Outcome::of(&log, Some(&x)).failing("backward", result).with("out_requires_grad", &requires_grad)
    }

    fn equal(self) -> Step {
        let measured =
            self.row.measured(if self.row.json["extra"].is_null() { &[] } else { &["out_requires_grad"] });
        Step::equal(without_flags_of_failures(self.run()), without_flags_of_failures(measured))
    }

    fn deviating(self, rule: Rule, by_rule: Outcome) -> Step {
        let mut measured = self.row.measured(&[]);
        measured.extra.clear();
        let mut ours = self.run();
        ours.extra.clear();
        Step::modelled(ours, measured, rule, by_rule)
    }
}

/// After an error nobody asks which outputs require a gradient.
fn without_flags_of_failures(mut outcome: Outcome) -> Outcome {
    if outcome.failed.is_some() {
        outcome.extra.clear();
    }
    outcome
}

fn half(_: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
    Ok(inputs.get(0)?.cast(DType::F16)?.into())
}

fn twice(ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
    ctx.set_output_grad_dtype(&[F32])?;
    ctx.set_output_grad_dtype(&[F32])?;
    half(ctx, inputs)
}

/// Two f16 outputs, the second not differentiable.
fn second_marked(declared: Vec<GradDType>) -> impl Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> {
    move |ctx, inputs| {
        ctx.mark_non_differentiable(&[1]);
        ctx.set_output_grad_dtype(&declared)?;
        let y = inputs.get(0)?.cast(DType::F16)?;
        Ok([y.clone(), inputs.get(0)?.cast(DType::F16)?].into())
    }
}

/// An f16 and an integer output.
fn second_integer(declared: Vec<GradDType>) -> impl Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> {
    move |ctx, inputs| {
        ctx.set_output_grad_dtype(&declared)?;
        Ok([inputs.get(0)?.cast(DType::F16)?, inputs.get(0)?.cast(DType::I64)?].into())
    }
}

fn failing(phase: &str) -> Outcome {
    Outcome { failed: Some(Failed::measured(phase)), ..Outcome::default() }
}

/// A case of group 2 that [`left_out`](crate::left_out) does not list.
pub fn replay(row: &Row) -> Step {
    let exactly = GradDType::Exactly;
    let (name, rest) = row.id["2.".len()..].split_once('/').unwrap_or((&row.id["2.".len()..], ""));
    match (name, rest) {
        ("count", "too_few") => Case::new(row, |ctx, inputs| {
            ctx.set_output_grad_dtype(&[F32])?;
            let x = inputs.get(0)?;
            Ok([x.cast(DType::F16)?, x.cast(DType::BF16)?].into())
        })
        .equal(),
        ("count", "too_many") => Case::half(row, vec![F32, F32]).equal(),
        ("count", "zero_declarations") => Case::half(row, vec![]).equal(),
        ("count", "empty_tuple_output_zero_declarations") => Case::new(row, |ctx, _| {
            ctx.set_output_grad_dtype(&[])?;
            Ok(Outputs::new())
        })
        .equal(),
        ("twice", "") | ("setup_context", "twice") => Case::new(row, twice as Forward).equal(),
        ("twice", "first_call_empty") => Case::new(row, |ctx, inputs| {
            ctx.set_output_grad_dtype(&[])?;
            ctx.set_output_grad_dtype(&[F32])?;
            half(ctx, inputs)
        })
        .equal(),
        // There is one forward with the context; outputs are there before the declaration, as in setup_context.
        ("setup_context", "ok" | "own_dtype_of_output" | "wrong_count") => {
            let declared = match rest {
                "ok" => vec![F32],
                "wrong_count" => vec![F32, F32],
                _ => vec![],
            };
            Case::new(row, move |ctx, inputs| {
                let outputs = half(ctx, inputs)?;
                let own = [exactly(outputs[0].dtype())];
                ctx.set_output_grad_dtype(if declared.is_empty() { &own } else { &declared })?;
                Ok(outputs)
            })
            .equal()
        }
        ("nondiff_dtype_for_float_output", dtype) => match num::dtype(dtype) {
            Some(dtype) => {
                let case = Case::half(row, vec![exactly(dtype)]);
                let seed = num::tensor(DType::F32, &[1.7, -2.7]);
                case.seeds(vec![seed]).deviating(Rule::DeclaredNotFloat, failing("forward"))
            }
            None => Step::left("a dtype that we do not have"),
        },
        ("int_gradient" | "bool_gradient", declared) => seeds_of_another_kind(row, name, declared),
        ("multi", "doc_example") => doc_example(row),
        ("slot", "concrete_for_int_output") => {
            let ones = Num::exactly(DType::F32, &[1.0, 1.0]);
            let zeros = Num::exactly(DType::F32, &[0.0, 0.0]);
            let by_rule = Outcome {
                received: vec![vec![Some(ones.clone()), Some(zeros)]],
                x_grad: Some(ones),
                ..Outcome::default()
            };
            Case::new(row, second_integer(vec![F32, F32])).deviating(Rule::StraightThrough, by_rule)
        }
        ("slot", "own_dtype_for_int_output") => {
            Case::new(row, second_integer(vec![F32, exactly(DType::I64)])).equal()
        }
        ("slot", "None_for_int_output") => Case::new(row, second_integer(vec![F32, GradDType::Any])).equal(),
        ("slot", "one_tuple_output") => Case::half(row, vec![F32]).equal(),
        ("slot", "concrete_for_mark_non_differentiable") => {
            Case::new(row, second_marked(vec![F32, F32])).equal()
        }
        ("slot", "own_dtype_for_mark_non_differentiable") => {
            Case::new(row, second_marked(vec![F32, exactly(DType::F16)])).equal()
        }
        ("slot", "None_for_mark_non_differentiable") => {
            Case::new(row, second_marked(vec![F32, GradDType::Any])).equal()
        }
        ("no_input_requires_grad" | "no_grad" | "inference_mode", what) => {
            let mut case = match what {
                "ok" => Case::half(row, vec![F32]),
                "wrong_count" => Case::half(row, vec![F32, F32]),
                "nondiff_slot" => Case::new(row, second_marked(vec![F32, F32])),
                "int_dtype" => Case::half(row, vec![exactly(DType::I32)]),
                "twice" => Case::new(row, twice as Forward),
                _ => panic!("{}: no such case", row.id),
            };
            case.requires_grad = name != "no_input_requires_grad";
            case.recorded = name == "no_input_requires_grad";
            if what == "int_dtype" {
                return case.deviating(Rule::DeclaredNotFloat, failing("forward"));
            }
            case.equal()
        }
        _ => panic!("{}: no such case", row.id),
    }
}

/// `2.int_gradient/out_f16_DECLARED` and the same of bool.
fn seeds_of_another_kind(row: &Row, name: &str, declared: &str) -> Step {
    let (dtype, values) =
        if name == "int_gradient" { (DType::I64, [1.0, 2.0]) } else { (DType::Bool, [1.0, 0.0]) };
    let case = match declared.trim_start_matches("out_f16_") {
        "omitted" => Case::new(row, half as Forward),
        "f32" => Case::half(row, vec![F32]),
        _ => Case::half(row, vec![GradDType::Any]),
    };
    let case = case.seeds(vec![num::tensor(dtype, &values)]);
    case.deviating(Rule::IntegerSeed, failing("backward"))
}

/// `2.multi/doc_example`: the fourth output, a string, has no twin here; the three tensors have.
fn doc_example(row: &Row) -> Step {
    let case = Case::new(row, |ctx, inputs| {
        ctx.set_output_grad_dtype(&[F32, GradDType::Exactly(DType::F16), GradDType::Any])?;
        let half = || inputs.get(0)?.cast(DType::F16);
        Ok([half()?, half()?, half()?].into_iter().collect())
    });
    let case = case.seeds(vec![num::tensor(DType::F64, &[0.1, 0.1]); 3]);
    let mut measured = row.measured(&["out_requires_grad"]);
    assert_eq!(measured.received[0].pop(), Some(None), "the string's slot");
    measured.extra.values_mut().for_each(|flags| drop(flags.pop()));
    Step::equal(case.run(), measured)
}
