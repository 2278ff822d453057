//! The way of the gradients as a picture.

use gradpact::audit::{Audit, record};
use gradpact::autograd::label;
use gradpact::prelude::*;

use crate::{Store, leaf_in, of, send};

fn lossy() -> Audit {
    let x = leaf_in(DType::F32, DType::F32, &[1.0, 2.0]);
    let y = label("first <layer> & \"more\"", || Store::new("Layer", DType::F16, None).on(&x));
    let z = y.cast(DType::F32).unwrap().exp().unwrap();
    record(|| send(&z, &of(DType::F32, &[0.1, 1e-10])).unwrap()).1
}

/// A chain of so many operations in each of these labels.
fn chain(labels: &[&str], each: usize) -> Audit {
    let mut y = leaf_in(DType::F32, DType::F32, &[1.0]);
    for name in labels {
        y = label(name, || (0..each).fold(y.clone(), |y, _| y.neg().unwrap()));
    }
    let seed = of(DType::F32, &[1.0]);
    record(|| send(&y, &seed).unwrap()).1
}

/// Whether the tags of a document are closed in the order in which they were opened.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let name = |tag: &str| tag.split_whitespace().next().unwrap_or_default().to_owned();
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(closing), _) if open.pop() != Some(closing.to_owned()) => return false,
            (None, false) => open.push(name(tag)),
            _ => {}
        }
    }
    open.is_empty()
}

#[test]
fn dot_names_nodes_with_labels_and_marks_what_narrows() {
    let dot = lossy().picture().to_dot();
    assert!(dot.starts_with("digraph gradients {") && dot.ends_with("}\n"), "{dot}");
    for part in [
        "Layer\\nfirst <layer> & \\\"more\\\"\\nf16 [2] · gradient f16 (default)",
        "f32 → f16: 1 of 2 became zero, 1 rounded",
        "style=dashed",
        "seed",
        "leaf",
    ] {
        assert!(dot.contains(part), "no {part:?} in: {dot}");
    }
    assert_eq!(dot.matches(" -> n").count(), lossy().rows().count(), "an arrow for each gradient");
}

#[test]
fn svg_is_one_well_formed_document_that_needs_nothing_else() {
    let svg = lossy().picture().to_svg();
    assert!(is_well_formed(&svg), "{svg}");
    for part in
        ["first &lt;layer&gt; &amp; &quot;more&quot;", "f32 → f16: 1 of 2 became zero", "narrowed", "f16"]
    {
        assert!(svg.contains(part), "no {part:?} in: {svg}");
    }
    let links = ["href", "url(", "<script", "<style", "<image"];
    assert!(links.iter().all(|link| !svg.contains(link)), "self-contained");
}

#[test]
fn a_box_in_which_a_gradient_vanishes_says_so() {
    let x = leaf_in(DType::F16, DType::F16, &[1.0]);
    let y = x.mul_scalar(1e-6).unwrap();
    let seed = of(DType::F16, &[1e-3]);
    let audit = record(|| send(&y, &seed).unwrap()).1;
    assert!(audit.picture().to_dot().contains("inside: f32 → f16: 1 of 1 became zero"));
}

#[test]
fn two_hundred_nodes_are_drawn_one_by_one_and_more_are_folded_by_label() {
    let boxes = |audit: &Audit| audit.picture().to_dot().matches("shape=").count();
    // The chain, the leaf and the seed.
    assert_eq!(boxes(&chain(&["one", "two"], 99)), 200);
    assert_eq!(boxes(&chain(&["one", "two", "three"], 100)), 5, "three labels, the leaf, the seed");
    let names: Vec<String> = (0..300).map(|layer| format!("block {}/layer {layer}", layer % 3)).collect();
    let labels: Vec<&str> = names.iter().map(String::as_str).collect();
    let folded = chain(&labels, 1);
    assert_eq!(boxes(&folded), 5, "the first part of each label");
    assert!(is_well_formed(&folded.picture().to_svg()));
}

#[test]
fn a_fold_in_which_a_gradient_vanishes_says_so() {
    let mut y = leaf_in(DType::F32, DType::F32, &[1.0]);
    for number in 0..70 {
        y = label(&format!("block {number}/part"), || {
            let inner = y.neg().unwrap();
            let inner = if number == 30 { Store::new("Culprit", DType::F16, None).on(&inner) } else { inner };
            inner.cast(DType::F32).unwrap().neg().unwrap().neg().unwrap()
        });
    }
    let seed = of(DType::F32, &[1e-10]);
    let audit = record(|| send(&y, &seed).unwrap()).1;
    let dot = audit.picture().to_dot();
    assert!(dot.contains("block 30/part\\ninside: f32 → f16: 1 of 1 became zero"), "{dot}");
    assert!(dot.contains("label=\"leaf\""), "{dot}");
}

#[test]
fn an_empty_audit_has_an_empty_picture() {
    let picture = Audit::default().picture();
    assert!(is_well_formed(&picture.to_svg()));
    assert!(!picture.to_dot().contains("->"));
}
