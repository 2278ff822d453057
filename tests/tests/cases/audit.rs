//! What the audit has to say of the cases that ask for it: a row for every conversion, and where something was lost.

use gradpact::audit::{Audit, Census, Happened, Row, record};
use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, leaf_in, of, options, scalar, send, values};

fn observed(body: impl FnOnce() -> Result<()>) -> Audit {
    let (result, audit) = record(body);
    result.unwrap();
    audit
}

/// The rows that were converted, as dtype before, dtype after, and whose gradient it was.
fn conversions(audit: &Audit) -> Vec<(DType, DType, &str, usize)> {
    let converted = audit.rows().filter(|row| row.happened() != Happened::Nothing);
    let told = |row: &'_ Row| (row.arrived, row.delivered().unwrap(), row.receiver.function, row.output);
    converted.map(told).collect()
}

const LEAF: &str = "AccumulateGrad";

#[test]
fn o_01_a_lossy_round_trip_is_reported_though_first_and_last_dtype_agree() {
    let run = |declared: Option<GradDType>| {
        let x = leaf_in(DType::BF16, DType::F32, &[1.0]);
        let wrapped = Custom::store("ToLocal", DType::BF16, declared, &Seen::default()).on(&[&x]);
        let sent = of(DType::F32, &[257.0]);
        let audit = observed(|| send(&[(&wrapped, &sent)], options()));
        (grad(&x), audit)
    };
    let (gradient, audit) = run(Some(GradDType::Exactly(DType::F32)));
    assert_eq!(gradient, (DType::F32, vec![257.0]));
    assert!(audit.lossy_round_trips().is_empty());
    audit.assert_lossless().unwrap();
    let (gradient, audit) = run(None);
    assert_eq!(gradient, (DType::F32, vec![256.0]));
    let trips = audit.lossy_round_trips();
    let [trip] = &trips[..] else { panic!("{audit}") };
    assert_eq!((trip.narrowed.from, trip.narrowed.to, trip.dtype), (DType::F32, DType::BF16, DType::F32));
    assert!(trip.to_string().contains("output 0 of `ToLocal`"), "{trip}");
}

#[test]
fn o_03_the_row_of_a_gradient_that_overflows_is_flagged() {
    let x = leaf(DType::F32, &[300.0]);
    let prediction = Custom::store("Prediction", DType::F16, None, &Seen::default()).on(&[&x]);
    let sent = of(DType::F32, &[120_000.0]);
    let audit = observed(|| send(&[(&prediction, &sent)], options()));
    let row = audit.rows_of("Prediction", 0).next().unwrap();
    assert_eq!(row.census(), Some(Census { values: 1, overflowed: 1, ..Census::default() }));
    assert!(audit.to_string().contains("1 of 1 became infinite"));
}

#[test]
fn o_04_each_gradient_that_a_narrow_leaf_rounds_is_a_row() {
    let rows = |gradient| {
        let x = leaf_in(DType::BF16, gradient, &[1.0]);
        let sent = of(DType::F32, &[1.003_906_25]);
        let audit = observed(|| (0..2).try_for_each(|_| send(&[(&x, &sent)], options())));
        (values(&x.grad().unwrap()), conversions(&audit).len())
    };
    assert_eq!(rows(DType::F32), (vec![2.007_812_5], 0));
    assert_eq!(rows(DType::BF16), (vec![2.0], 2));
}

#[test]
fn o_09_and_o_19_a_gradient_returned_in_another_dtype_is_one_row_at_that_input() {
    for expected in FLOATS {
        for returned in FLOATS {
            let x = leaf(expected, &[1.0]);
            let forward = |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.cast(DType::F64)?.into());
            let y = Custom::new("Layer", forward, move |_, _| Ok(of(returned, &[0.1]).into())).on(&[&x]);
            let seed = of(DType::F64, &[1.0]);
            let audit = observed(|| y.backward_with(&seed, options()));
            if expected == returned {
                assert!(conversions(&audit).is_empty());
                continue;
            }
            assert_eq!(conversions(&audit), [(returned, expected, LEAF, 0)]);
            let row = audit.rows().last().unwrap();
            let (sender, input) = row.sender.as_ref().unwrap();
            assert_eq!((sender.function, *input), ("Layer", 0));
        }
    }
}

#[test]
fn o_16_the_rows_do_not_depend_on_the_region_that_backward_is_called_from() {
    let run = |caller: Option<DType>| {
        let x = of(DType::F32, &[0.1, 300.0, -7.7, 1e-3]).reshape([2, 2]).unwrap().requiring_grad().unwrap();
        let loss = autocast(DType::BF16, || x.matmul(&x).unwrap().sum_in(DType::F32).unwrap()).unwrap();
        observed(|| autocast(caller, || loss.backward()).unwrap())
    };
    let outside = run(None);
    for caller in [DType::F16, DType::BF16, DType::F64] {
        let comparison = outside.compare(&run(Some(caller)));
        assert!(comparison.differences.is_empty(), "{comparison}");
    }
}

#[test]
fn o_25_a_declared_narrowing_is_a_row_that_says_it_was_declared() {
    let x = leaf(DType::F32, &[1.0]);
    let declared = Some(GradDType::Exactly(DType::BF16));
    let y = Custom::store("Compressed", DType::F32, declared, &Seen::default()).on(&[&x]);
    let sent = of(DType::F32, &[0.1]);
    let audit = observed(|| y.backward_with(&sent, options()));
    let row = audit.rows_of("Compressed", 0).next().unwrap();
    assert_eq!((row.happened(), row.contract.source), (Happened::Narrowed, gradpact::Source::Declared));
    assert!(audit.lossy_round_trips()[0].to_string().contains("(declared there)"));
}

#[test]
fn o_28_a_sum_that_overflows_its_declared_dtype_is_flagged() {
    let lost = |declared| {
        let x = leaf(DType::F32, &[1.0]);
        let declared = Some(GradDType::Exactly(declared));
        let y = Custom::store("Norm", DType::F16, declared, &Seen::default()).on(&[&x]);
        let term = of(DType::F16, &[1000.0]);
        let audit = observed(|| send(&vec![(&y, &term); 70], options()));
        let sums = audit.conversions().filter(|c| c.stage.to_string() == "the sum at output 0 of `Norm`");
        sums.filter_map(|c| c.census).map(|census| census.overflowed).sum::<u64>()
    };
    assert_eq!((lost(DType::F32), lost(DType::F16)), (0, 1));
}

#[test]
fn o_29_both_stages_of_a_reduction_are_told() {
    let terms = of(DType::F32, &[256.0, 1.0, 1.0]);
    let stages = |reduce, result| {
        let (_, audit) = record(|| terms.sum_accumulating_in(reduce, result).unwrap());
        audit.conversions().map(|c| (c.from, c.to)).collect::<Vec<_>>()
    };
    assert_eq!(stages(DType::F32, DType::F32), []);
    assert_eq!(stages(DType::BF16, DType::F32), [(DType::F32, DType::BF16), (DType::BF16, DType::F32)]);
    assert_eq!(stages(DType::F32, DType::BF16), [(DType::F32, DType::BF16)]);
}

#[test]
fn o_39_the_hop_at_which_a_gradient_underflows_is_marked() {
    let run = |gradient: DType| {
        let hop = |name| {
            let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
                ctx.set_output_grad_dtype(&[GradDType::Exactly(gradient)])?;
                Ok(inputs.get(0)?.mul_scalar(0.01)?.into())
            };
            let factor = of(DType::F16, &[0.01]);
            Custom::new(name, forward, move |_, grads| Ok(grads[0].as_ref().unwrap().mul(&factor)?.into()))
        };
        let x = leaf_in(DType::F16, gradient, &[1.0]);
        // The first that backward meets is the last of the chain.
        let names = ["Hop 4", "Hop 3", "Hop 2", "Hop 1"];
        let y = names.into_iter().fold(x, |y, name| hop(name).on(&[&y]));
        let seed = of(DType::F16, &[1.0]);
        observed(|| y.backward_with(&seed, options()))
    };
    let audit = run(DType::F16);
    let lost: Vec<String> = audit.conversions().map(|c| c.stage.to_string()).collect();
    assert_eq!(lost, ["backward of `Hop 4`"], "{audit}");
    assert_eq!(audit.conversions().next().unwrap().census.unwrap().flushed, 1);
    run(DType::F32).assert_lossless().unwrap();
}

#[test]
fn o_42_a_hidden_hop_to_a_dtype_of_less_range_is_flagged() {
    let ranges = [
        (DType::BF16, DType::F16, 99_840.0),
        (DType::F32, DType::BF16, 3.4e38),
        (DType::F64, DType::F32, 1e39),
    ];
    for (outer, inner, value) in ranges {
        let value = format::round(outer, value);
        let inside = move |x: &DynTensor| x.cast(inner)?.mul_scalar(1.0)?.cast(outer);
        let forward = move |_: &mut Context, inputs: &Inputs<'_>| Ok(inside(inputs.get(0)?)?.into());
        let hidden = Custom::new("Hidden", forward, |_, grads| Ok(grads));
        let x = of(outer, &[value]);
        let (y, audit) = record(|| hidden.on(&[&x]));
        assert_eq!(values(&y), [f64::INFINITY]);
        let overflowed: Vec<_> =
            audit.conversions().filter(|c| c.census.is_some_and(|census| census.overflowed > 0)).collect();
        let [hop] = &overflowed[..] else { panic!("{audit}") };
        assert_eq!((hop.from, hop.to), (outer, inner));
        assert_eq!(hop.stage.to_string(), "forward of `Hidden`");
    }
}

#[test]
fn o_65_of_two_outputs_only_the_one_that_asks_for_it_has_a_conversion() {
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[GradDType::Any, GradDType::Exactly(DType::F16)])?;
        let half = inputs.get(0)?.cast(DType::F16)?;
        Ok([half.clone(), half].into())
    };
    let x = leaf(DType::F32, &[1.0]);
    let split = Custom::new("Split", forward, |_, grads| Ok(grads.into_iter().take(1).collect()));
    let outputs = apply(split, &[&x]).unwrap();
    let seed = of(DType::F32, &[0.1]);
    let roots = [(&outputs[0], Some(&seed)), (&outputs[1], Some(&seed))];
    let audit = observed(|| gradpact::backward(&roots, options()));
    assert_eq!(conversions(&audit), [(DType::F32, DType::F16, "Split", 1)]);
    assert_eq!(audit.received("Split", 0), [DType::F32]);
    // A scalar is no different.
    let y = scalar(DType::F32, 2.0).requiring_grad().unwrap();
    assert!(conversions(&observed(|| y.backward())).is_empty());
}
