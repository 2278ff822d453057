//! Leaves over several backwards: gradients accumulate in the dtype that is set at the time, are assigned, forgotten, asked
//! for without a trace; and what would change the dtype of a gradient that is there, is refused.

use core::fmt;

use gradpact::{BackwardOptions, DType, DynTensor, Error, GradDType, Source, backward, grad};
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::program::{Pick, Program};
use gradpact_tests::reference::Reference;
use proptest::collection::vec;
use proptest::option::weighted as maybe;
use proptest::prelude::{Just, Strategy};
use proptest::prop_oneof;
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::{float, grad_dtype, pick, program_of, values};
use crate::{Verdict, agrees, picked};

super::on_every_engine! {
    leaves_keep_their_gradients_in_the_dtype_that_is_set_whatever_is_done_between_backwards(91, 900, case())
        => histories;
}

/// Something that is done to a program that has run forward.
#[derive(Clone)]
enum Action {
    Backward { recorded: bool },
    Grad(Vec<Pick>),
    SetGradDType(Pick, GradDType),
    ResetGradDType(Pick),
    SetGrad(Pick, Option<(DType, Vec<f64>)>),
    ZeroGrad(Pick),
}

/// In one line.
impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backward { recorded } => {
                write!(f, "backward{}", if *recorded { ", create_graph" } else { "" })
            }
            Self::Grad(picks) => {
                write!(
                    f,
                    "grad of tracked variables {:?} from the last",
                    picks.iter().map(|pick| pick.0).collect::<Vec<_>>()
                )
            }
            Self::SetGradDType(at, dtype) => {
                write!(f, "leaf {} from the last .set_grad_dtype({dtype})", at.0)
            }
            Self::ResetGradDType(at) => write!(f, "leaf {} from the last .reset_grad_dtype()", at.0),
            Self::SetGrad(at, grad) => write!(f, "leaf {} from the last .set_grad({grad:?})", at.0),
            Self::ZeroGrad(at) => write!(f, "leaf {} from the last .zero_grad()", at.0),
        }
    }
}

fn case() -> impl Strategy<Value = (Program, Vec<Action>)> {
    // As many as the longest tensor has elements; cut where used.
    let assigned = maybe(0.8, (float(), values(3)));
    let action = prop_oneof![
        4 => maybe(0.2, Just(())).prop_map(|some| Action::Backward { recorded: some.is_some() }),
        1 => vec(pick(), 1..=3).prop_map(Action::Grad),
        2 => (pick(), grad_dtype()).prop_map(|(at, grad_dtype)| Action::SetGradDType(at, grad_dtype)),
        1 => pick().prop_map(Action::ResetGradDType),
        1 => (pick(), assigned).prop_map(|(at, grad)| Action::SetGrad(at, grad)),
        1 => pick().prop_map(Action::ZeroGrad),
    ];
    (program_of(7), vec(action, 2..=8))
}

/// A program on an engine and on the reference, with its tracked leaves.
struct History<'p, E: Lab> {
    run: Run<E>,
    reference: Reference<'p>,
    leaves: Vec<usize>,
}

impl<E: Lab> History<'_, E> {
    fn take(&mut self, action: &Action) -> Verdict {
        match action {
            Action::Backward { recorded } => {
                let options = BackwardOptions::new();
                let options = if *recorded { options.create_graph() } else { options.retain_graph() };
                backward(&self.run.roots(), options)?;
                self.reference.backward(*recorded);
            }
            Action::Grad(picks) => self.ask(picks)?,
            &Action::SetGradDType(at, grad_dtype) => {
                let Some(leaf) = self.leaf(at) else { return Ok(()) };
                let result = self.run.variables[leaf].set_grad_dtype(grad_dtype);
                self.contract(leaf, (grad_dtype, Source::Declared), result)?;
            }
            &Action::ResetGradDType(at) => {
                let Some(leaf) = self.leaf(at) else { return Ok(()) };
                let own = (GradDType::Exactly(self.run.variables[leaf].dtype()), Source::Default);
                let result = self.run.variables[leaf].reset_grad_dtype();
                self.contract(leaf, own, result)?;
            }
            Action::SetGrad(at, grad) => {
                let Some(leaf) = self.leaf(*at) else { return Ok(()) };
                self.assign(leaf, grad.as_ref())?;
            }
            &Action::ZeroGrad(at) => {
                let Some(leaf) = self.leaf(at) else { return Ok(()) };
                self.run.variables[leaf].zero_grad();
                self.reference.set_grad(leaf, None);
            }
        }
        self.compare()
    }

    fn leaf(&self, at: Pick) -> Option<usize> {
        (!self.leaves.is_empty()).then(|| self.leaves[at.of(self.leaves.len())])
    }

    /// Whether a change of contract was refused exactly if a gradient of another dtype is there.
    fn contract(
        &mut self,
        leaf: usize,
        contract: (GradDType, Source),
        result: gradpact::Result<()>,
    ) -> Verdict {
        let present = self.reference.grad(leaf).map(|grad| grad.dtype);
        let conflict = contract.0.dtype().zip(present).filter(|(requested, present)| requested != present);
        match (result, conflict) {
            (Ok(()), None) => self.reference.set_contract(leaf, contract),
            (Err(Error::GradPresent { requested, present }), Some(conflict)) => {
                prop_assert_eq!((requested, present), conflict);
            }
            (result, conflict) => prop_assert!(false, "{result:?}, conflict {conflict:?}"),
        }
        Ok(())
    }

    fn assign(&mut self, leaf: usize, grad: Option<&(DType, Vec<f64>)>) -> Verdict {
        let length = self.reference.tensor(self.reference.variable(leaf)).values.len();
        let grad = grad.map(|(dtype, values)| (*dtype, values[..length].to_vec()));
        let tensor = grad.as_ref().map(|(dtype, values)| E::tensor(*dtype, values)).transpose()?;
        let result = self.run.variables[leaf].set_grad(tensor.as_ref());
        let leaf_tensor = self.reference.tensor(self.reference.variable(leaf));
        let declared = leaf_tensor.contract.and_then(|(grad_dtype, _)| grad_dtype.dtype());
        let conflict =
            declared.zip(grad.as_ref().map(|grad| grad.0)).filter(|(declared, got)| declared != got);
        match (result, conflict) {
            (Ok(()), None) => self.reference.set_grad(leaf, grad),
            (Err(Error::Gradient(mismatch)), Some(_)) => prop_assert_eq!(mismatch.dtype, conflict),
            (result, conflict) => prop_assert!(false, "{result:?}, conflict {conflict:?}"),
        }
        Ok(())
    }

    /// Asks for gradients of some variables, which leaves no trace in the leaves.
    fn ask(&mut self, picks: &[Pick]) -> Verdict {
        let asked = picked(&self.reference, picks);
        let inputs: Vec<_> = asked.iter().map(|&variable| &self.run.variables[variable]).collect();
        let options = BackwardOptions::new().retain_graph().allow_unused();
        let got = grad(&self.run.roots(), &inputs, options)?;
        let ids: Vec<_> = asked.iter().map(|&variable| self.reference.variable(variable)).collect();
        let outcome = self.reference.asked(&ids);
        for (got, &id) in got.iter().zip(&ids) {
            let expected = outcome.gradient(id).map(|grad| self.reference.tensor(grad));
            let got = seen(got.as_ref())?;
            prop_assert!(agrees(&got, expected), "{got:?}, {expected:?}");
        }
        Ok(())
    }

    fn compare(&self) -> Verdict {
        for &leaf in &self.leaves {
            let variable = &self.run.variables[leaf];
            let (got, expected) = (seen(variable.grad().as_ref())?, self.reference.grad(leaf));
            prop_assert!(agrees(&got, expected), "leaf {leaf}: {got:?}, {expected:?}");
            let tracked = variable.grad().map(|grad| grad.requires_grad());
            prop_assert_eq!(tracked, expected.map(|grad| grad.contract.is_some()), "graph of leaf {}", leaf);
            let contract = self.reference.tensor(self.reference.variable(leaf)).contract;
            prop_assert_eq!(variable.grad_dtype().zip(variable.grad_dtype_source()), contract);
            // Said once more without the reference: the gradient has the dtype that the leaf says.
            let declared = variable.grad_dtype().and_then(GradDType::dtype).zip(got);
            prop_assert!(declared.is_none_or(|(declared, (dtype, _))| declared == dtype));
        }
        Ok(())
    }
}

fn histories<E: Lab>((program, actions): &(Program, Vec<Action>)) -> Verdict {
    let (reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let leaves = (0..program.leaves.len()).filter(|&leaf| program.leaves[leaf].tracked.is_some()).collect();
    let mut history = History { run, reference, leaves };
    for (position, action) in actions.iter().enumerate() {
        history.take(action).map_err(|error| {
            proptest::test_runner::TestCaseError::fail(format!(
                "after action {position}, {action:?}: {error}"
            ))
        })?;
    }
    history.run.variables.iter().for_each(DynTensor::zero_grad);
    Ok(())
}
