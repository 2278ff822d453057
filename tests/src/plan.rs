//! What is done around a program, as data: hooks on its gradients, and regions that its steps run in.

use core::ops::Range;

use gradpact::DType;

use crate::program::Pick;

/// A hook.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// What it is registered on.
    pub kind: HookKind,
    /// At which tensor, or the node of which tensor, among the tracked variables (the tracked leaves, for a hook of
    /// leaves).
    pub at: Pick,
    /// What it multiplies each gradient by that it is given; `None` only looks.
    pub replaces: Option<f64>,
    /// When it is taken away.
    pub life: Life,
}

/// What a hook is registered on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// A tensor's gradient.
    Tensor,
    /// A node, before its backward.
    Before,
    /// A node, after its backward.
    After,
    /// A leaf whose gradient has grown. Replaces nothing.
    Accumulated,
    /// No hook: `retain_grad`.
    Retain,
}

/// When a hook is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Never.
    Always,
    /// Before the first backward.
    Removed,
    /// By itself, when it runs for the first time.
    Once,
}

/// Steps that run together in something.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// In what.
    pub kind: RegionKind,
    /// Where it starts, around and around the steps there are.
    pub start: usize,
    /// How many steps it has, likewise.
    pub length: usize,
}

/// What steps run in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RegionKind {
    /// `checkpoint`.
    Checkpoint,
    /// `saved_tensors_hooks` that give back what they were given.
    Hooks,
    /// `save_in`.
    SaveIn(DType),
    /// `autocast`.
    Autocast(Option<DType>),
}

impl Region {
    /// The part of some steps that lies in it: at least one, if there are any.
    pub fn part_of(&self, steps: &Range<usize>) -> Range<usize> {
        let start = steps.start + self.start % steps.len().max(1);
        let length = 1 + self.length % (steps.end - start).max(1);
        start..(start + length).min(steps.end)
    }
}

/// Which of the regions around a step, from the outside: 0 steps into a region, 1 goes on behind one.
pub type Path = Vec<u8>;

/// The regions around one step, outermost first. The first region takes its part of the steps; those inside it and those
/// behind it are each divided by the regions that are left.
pub fn around(step: usize, steps: usize, regions: &[Region]) -> Vec<(Path, RegionKind)> {
    let (mut steps, mut path, mut found) = (0..steps, Path::new(), Vec::new());
    for region in regions {
        let part = region.part_of(&steps);
        if part.contains(&step) {
            path.push(0);
            found.push((path.clone(), region.kind));
            steps = part;
        } else if step >= part.end {
            path.push(1);
            steps = part.end..steps.end;
        } else {
            break;
        }
    }
    found
}

/// In which dtype `save_in` keeps what a step saves, if the innermost region that packs it is one.
pub fn kept_in(step: usize, steps: usize, regions: &[Region]) -> Option<DType> {
    let packing = |kind: &RegionKind| !matches!(kind, RegionKind::Autocast(_));
    let innermost = around(step, steps, regions).into_iter().map(|(_, kind)| kind).rfind(packing)?;
    if let RegionKind::SaveIn(dtype) = innermost { Some(dtype) } else { None }
}
