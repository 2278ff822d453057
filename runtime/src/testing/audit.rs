//! Compares what a Function declared with what happened: the contract part of a check.

use super::observed::{Call, Seen};
use super::setup::Setup;
use super::violation::Violation;
use crate::autograd::DynTensor;
use crate::contract::GradDType;
use crate::dtype::DType;
use crate::error::Place;
use crate::shape::Shape;

/// One place of the contract: an input or an output, with the shape and the dtype that its gradient must have.
pub(super) struct Slot {
    place: Place,
    shape: Shape,
    /// `None` where it has no gradient, or any dtype is taken.
    dtype: Option<DType>,
}

/// What is known of the outputs. `sent` has the dtype of each seed; it counts where any dtype is taken.
pub(super) fn output_slots(setup: &Setup<'_>, outputs: &[DynTensor], sent: &[Option<DType>]) -> Vec<Slot> {
    let slot = |(position, output): (usize, &DynTensor)| {
        let declared = output.requires_grad().then(|| output.grad_dtype()).flatten();
        let dtype = match declared {
            Some(GradDType::Any) => sent.get(position).copied().flatten(),
            other => other.and_then(GradDType::dtype),
        };
        Slot { place: setup.output_place(position), shape: output.shape().clone(), dtype }
    };
    outputs.iter().enumerate().map(slot).collect()
}

/// What is known of the inputs.
pub(super) fn input_slots(setup: &Setup<'_>) -> Vec<Slot> {
    let slot = |position: usize| {
        let input = &setup.inputs[position];
        Slot {
            place: setup.input_place(position),
            shape: input.data.as_ref().map_or_else(Shape::scalar, |data| data.shape().clone()),
            dtype: input.grad_dtype.and_then(GradDType::dtype),
        }
    };
    (0..setup.inputs.len()).map(slot).collect()
}

/// What these calls of a backward did against the contract. `all_sent`: every output had a gradient, so that every input
/// must have one.
pub(super) fn audit(calls: &[Call], inputs: &[Slot], outputs: &[Slot], all_sent: bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    for call in calls {
        violations.extend(call.received.iter().zip(outputs).filter_map(|(seen, slot)| {
            let (dtype, shape) = seen.as_ref()?;
            received(slot, *dtype, shape)
        }));
        let Some(seen) = &call.returned else { continue };
        violations.extend(returned(call, seen, inputs, all_sent));
    }
    violations
}

fn received(slot: &Slot, dtype: DType, shape: &Shape) -> Option<Violation> {
    let place = slot.place.clone();
    match slot.dtype {
        Some(declared) if declared != dtype => Some(Violation::ReceivedDType { place, declared, got: dtype }),
        Some(_) if *shape != slot.shape => {
            Some(Violation::ReceivedShape { place, expected: slot.shape.clone(), got: shape.clone() })
        }
        _ => None,
    }
}

fn returned(call: &Call, seen: &Seen, inputs: &[Slot], all_sent: bool) -> Vec<Violation> {
    let slots = call.needed.iter().zip(inputs).filter(|(needed, _)| **needed).map(|(_, slot)| slot);
    let seen = seen.iter().zip(&call.needed).filter(|(_, needed)| **needed).map(|(seen, _)| seen);
    let check = |(gradient, slot): (&Option<(DType, Shape)>, &Slot)| {
        let place = slot.place.clone();
        match (gradient, slot.dtype) {
            (None, _) => all_sent.then_some(Violation::ReturnedNothing(place)),
            (Some((_, shape)), _) if *shape != slot.shape => {
                Some(Violation::ReturnedShape { place, expected: slot.shape.clone(), got: shape.clone() })
            }
            (&Some((got, _)), Some(expected)) if got != expected => {
                Some(Violation::ReturnedDType { place, expected, got })
            }
            _ => None,
        }
    };
    seen.zip(slots).filter_map(check).collect()
}

/// What can be told before anything runs backward: gradient dtypes narrower than the values, and outputs other than expected.
pub(super) fn declarations(setup: &Setup<'_>, outputs: &[DynTensor]) -> Vec<Violation> {
    let narrow = |place: Place, storage: DType, gradient: Option<GradDType>| {
        let gradient = gradient.and_then(GradDType::dtype)?;
        let is_narrow = storage.is_float() && !storage.fits_in(gradient);
        is_narrow.then_some(Violation::Narrow { place, storage, gradient })
    };
    let mut violations = Vec::new();
    if !setup.options.narrowing {
        for &position in &setup.checked {
            let input = &setup.inputs[position];
            let storage = input.data.as_ref().map(DynTensor::dtype);
            violations.extend(
                storage.and_then(|dtype| narrow(setup.input_place(position), dtype, input.grad_dtype)),
            );
        }
        for (position, output) in outputs.iter().enumerate().filter(|(_, output)| output.requires_grad()) {
            violations.extend(narrow(setup.output_place(position), output.dtype(), output.grad_dtype()));
        }
    }
    violations.extend(unexpected(setup, outputs));
    violations
}

fn unexpected(setup: &Setup<'_>, outputs: &[DynTensor]) -> Vec<Violation> {
    let Some(expected) = &setup.options.expected else { return Vec::new() };
    if expected.len() != outputs.len() {
        return vec![Violation::OutputCount { expected: expected.len(), got: outputs.len() }];
    }
    let word = |grad: Option<GradDType>| grad.map_or_else(|| "none".to_owned(), |grad| grad.to_string());
    let check = |((position, output), &(dtype, grad)): ((usize, &DynTensor), &(DType, Option<GradDType>))| {
        let is = output.requires_grad().then(|| output.grad_dtype()).flatten();
        (output.dtype() != dtype || is != grad).then(|| Violation::OutputDType {
            place: setup.output_place(position),
            expected: (dtype, word(grad)),
            got: (output.dtype(), word(is)),
        })
    };
    outputs.iter().enumerate().zip(expected).filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(place: Place, dtype: DType) -> Slot {
        Slot { place, shape: Shape::from([2]), dtype: Some(dtype) }
    }

    /// What one call with these gradients, received and returned, is found to do.
    fn found(
        received: Option<(DType, Shape)>,
        returned: Option<(DType, Shape)>,
        needed: bool,
        all_sent: bool,
    ) -> Vec<Violation> {
        let call = Call { received: vec![received], returned: Some(vec![returned]), needed: vec![needed] };
        let (input, output) = (Place::input("F", 0), Place::output("F", 0));
        audit(&[call], &[slot(input, DType::F32)], &[slot(output, DType::F16)], all_sent)
    }

    #[test]
    fn each_breach_is_found_and_what_keeps_the_contract_is_not() {
        let of = |dtype| Some((dtype, Shape::from([2])));
        let scalar = |dtype| Some((dtype, Shape::scalar()));
        let (f16, f32) = (DType::F16, DType::F32);
        let (input, output) = (Place::input("F", 0), Place::output("F", 0));
        assert_eq!(found(of(f16), of(f32), true, true), []);
        assert_eq!(found(None, of(f32), true, true), [], "an undefined gradient");
        assert_eq!(found(of(f16), None, true, false), []);
        assert_eq!(found(of(f16), scalar(f16), false, true), [], "nobody asked for it");
        let wrong = Violation::ReceivedDType { place: output.clone(), declared: f16, got: f32 };
        assert_eq!(found(of(f32), of(f32), true, true), [wrong]);
        let (expected, got) = (Shape::from([2]), Shape::scalar());
        let wrong = Violation::ReceivedShape { place: output, expected: expected.clone(), got: got.clone() };
        assert_eq!(found(scalar(f16), of(f32), true, true), [wrong]);
        let wrong = Violation::ReturnedShape { place: input.clone(), expected, got };
        assert_eq!(found(of(f16), scalar(f32), true, true), [wrong]);
        let wrong = Violation::ReturnedDType { place: input.clone(), expected: f32, got: f16 };
        assert_eq!(found(of(f16), of(f16), true, true), [wrong]);
        assert_eq!(found(of(f16), None, true, true), [Violation::ReturnedNothing(input)]);
    }
}
