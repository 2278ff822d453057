//! Tells whoever observes this thread what becomes of gradients and values: every admission to an edge, and every
//! conversion with the place where it happened.
//!
//! It looks on: nothing here changes a gradient, and it knows no tensors. With nobody observing it costs a test of one
//! number; without the feature `audit`, nothing.

use core::cell::{Cell, RefCell};
use core::fmt;
use std::rc::Rc;

use crate::contract::GradContract;
use crate::dtype::{Census, DType};
use crate::error::{Error, Phase};
use crate::shape::Shape;

/// One node of the graph, as reports name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeInfo {
    /// The name of the Function.
    pub function: &'static str,
    /// Its number in the order of creation.
    pub sequence_nr: u64,
    /// The user's label for it, if there is one.
    pub label: Option<String>,
    /// Whether it is where a leaf's gradient is kept.
    pub is_leaf: bool,
    /// Whether its Function is the user's, and not a built-in operation.
    pub is_user_code: bool,
}

/// Its Function (or that it is a leaf), and its label.
impl fmt::Display for NodeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&format!("`{}`", self.function)))
    }
}

impl NodeInfo {
    /// A leaf by that word, another node by `text`; and its label.
    pub(crate) fn named(&self, text: &str) -> String {
        let text = if self.is_leaf { "a leaf" } else { text };
        match &self.label {
            Some(label) => format!("{text} [{label}]"),
            None => text.to_owned(),
        }
    }
}

/// A gradient at an edge.
pub(crate) struct Admitted<'a> {
    /// The backward call; numbers are given to calls that somebody observes.
    pub(crate) call: Option<u64>,
    /// Whose backward sent it, as the gradient of which of its inputs; `None` for a seed.
    pub(crate) sender: Option<(NodeInfo, usize)>,
    /// Whose output it is the gradient of.
    pub(crate) receiver: NodeInfo,
    pub(crate) position: u32,
    pub(crate) shape: &'a Shape,
    pub(crate) storage: DType,
    pub(crate) contract: GradContract,
    pub(crate) arrived: DType,
    /// The dtype that it was admitted in, and what became of the values; or why it was not admitted.
    pub(crate) outcome: Result<(DType, Option<Census>), &'a Error>,
}

/// Where code of this thread is running.
#[derive(Clone, Debug)]
pub(crate) enum Scene {
    /// In a Function.
    Function {
        function: String,
        is_built_in: bool,
        phase: Phase,
        /// The node and the call, if it is a backward.
        backward: Option<(NodeInfo, u64)>,
    },
    /// At the sum of the gradients of an output.
    Sum { node: NodeInfo, position: u32, call: u64 },
}

/// A conversion of a whole tensor, gradient or value, that is not an admission.
pub(crate) struct Converted {
    /// The Function of the user's, or the node, in which it happened; `None` outside of these.
    pub(crate) scene: Option<Scene>,
    /// The built-in operation in that Function, if it was one.
    pub(crate) operation: Option<String>,
    /// Whether an operation rounded what it had computed to what it stores, and nobody asked for a cast.
    pub(crate) is_result: bool,
    pub(crate) from: DType,
    pub(crate) to: DType,
    pub(crate) census: Option<Census>,
}

/// Somebody who looks on.
pub(crate) trait Observer {
    fn admitted(&self, event: &Admitted<'_>);
    fn converted(&self, event: &Converted);
}

thread_local! {
    static OBSERVERS: RefCell<Vec<Rc<dyn Observer>>> = const { RefCell::new(Vec::new()) };
    // How many there are; read for each backward call and conversion, so kept apart from the list.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static SCENES: RefCell<Vec<Scene>> = const { RefCell::new(Vec::new()) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Whether anybody observes this thread.
#[inline]
pub(crate) fn is_active() -> bool {
    cfg!(feature = "audit") && COUNT.get() > 0
}

/// Takes an observer off again, whichever order they go in.
pub(crate) struct Observation {
    observer: Rc<dyn Observer>,
}

impl Drop for Observation {
    fn drop(&mut self) {
        let gone = OBSERVERS.with_borrow_mut(|observers| {
            let at = observers.iter().rposition(|other| Rc::ptr_eq(other, &self.observer))?;
            Some(observers.remove(at))
        });
        COUNT.set(COUNT.get() - usize::from(gone.is_some()));
    }
}

/// Tells `observer` what happens on this thread, until the result is dropped.
pub(crate) fn observe(observer: Rc<dyn Observer>) -> Observation {
    OBSERVERS.with_borrow_mut(|observers| observers.push(Rc::clone(&observer)));
    COUNT.set(COUNT.get() + 1);
    Observation { observer }
}

/// A number for a backward call, if it is observed.
pub(crate) fn observed_call() -> Option<u64> {
    is_active().then(|| {
        CALLS.set(CALLS.get() + 1);
        CALLS.get()
    })
}

fn tell(event: impl Fn(&dyn Observer)) {
    let observers = OBSERVERS.with_borrow(Vec::clone);
    observers.iter().for_each(|observer| event(&**observer));
}

/// Tells of an admission.
#[cold]
pub(crate) fn admitted(event: &Admitted<'_>) {
    trace::admitted(event);
    if event.call.is_some() {
        tell(|observer| observer.admitted(event));
    }
}

/// Whether an admission is to be told of: `call` is observed, or conversions are logged.
#[inline]
pub(crate) fn is_told(call: Option<u64>) -> bool {
    call.is_some() || trace::is_enabled()
}

/// Conversions at edges as `tracing` events, for the log of a training run.
///
/// Target `gradpact::gradient`. At level WARN a gradient that was narrowed to a dtype that nobody declared, at INFO one that was
/// narrowed to a declared one, at TRACE one that was widened.
mod trace {
    use super::Admitted;

    #[inline]
    #[cfg(not(feature = "tracing"))]
    pub(super) const fn is_enabled() -> bool {
        false
    }

    #[cfg(not(feature = "tracing"))]
    pub(super) fn admitted(_: &Admitted<'_>) {}

    #[inline]
    #[cfg(feature = "tracing")]
    pub(super) fn is_enabled() -> bool {
        tracing::enabled!(target: "gradpact::gradient", tracing::Level::WARN)
    }

    #[cfg(feature = "tracing")]
    pub(super) fn admitted(event: &Admitted<'_>) {
        use crate::contract::Source;

        let Ok((delivered, census)) = event.outcome else { return };
        if delivered == event.arrived {
            return;
        }
        let census = census.unwrap_or_default();
        macro_rules! event {
            ($level:ident, $message:literal) => {
                tracing::event!(
                    target: "gradpact::gradient",
                    tracing::Level::$level,
                    receiver = %event.receiver,
                    output = event.position,
                    sender = event.sender.as_ref().map(|(node, _)| node.to_string()),
                    received = %event.arrived,
                    delivered = %delivered,
                    source = %event.contract.source,
                    values = census.values,
                    became_infinite = census.overflowed,
                    became_zero = census.flushed,
                    became_subnormal = census.subnormal,
                    rounded = census.rounded,
                    $message
                )
            };
        }
        match (event.arrived.fits_in(delivered), event.contract.source) {
            (true, _) => event!(TRACE, "gradient widened"),
            (false, Source::Declared) => event!(INFO, "gradient narrowed, as declared"),
            (false, _) => event!(WARN, "gradient narrowed, which nobody declared"),
        }
    }
}

/// Tells of a conversion that somebody asked for.
#[cold]
pub(crate) fn converted(from: DType, to: DType, census: Option<Census>) {
    tell_converted(false, from, to, census);
}

/// Tells of an operation that lost values when it rounded what it had computed in `from` to what it stores.
#[cold]
pub(crate) fn stored(from: DType, to: DType, census: Census) {
    if census.lost() {
        tell_converted(true, from, to, Some(census));
    }
}

fn tell_converted(is_result: bool, from: DType, to: DType, census: Option<Census>) {
    let (scene, operation) = SCENES.with_borrow(|scenes| {
        let inner = scenes.last();
        let outer = scenes.iter().rfind(|scene| !scene.is_operation());
        let operation = inner.filter(|scene| scene.is_operation()).and_then(Scene::function);
        match outer {
            Some(outer) => (Some(outer.clone()), operation),
            None => (inner.cloned(), None),
        }
    });
    tell(|observer| {
        let (scene, operation) = (scene.clone(), operation.clone());
        observer.converted(&Converted { scene, operation, is_result, from, to, census });
    });
}

impl Scene {
    /// Whether it is the forward of a built-in operation: an operation in whatever called it.
    fn is_operation(&self) -> bool {
        matches!(self, Self::Function { is_built_in: true, phase: Phase::Forward, .. })
    }

    fn function(&self) -> Option<String> {
        match self {
            Self::Function { function, .. } => Some(function.clone()),
            Self::Sum { .. } => None,
        }
    }
}

/// Leaves a scene when it is dropped, also when a panic passes.
pub(crate) struct SceneGuard(());

impl Drop for SceneGuard {
    fn drop(&mut self) {
        SCENES.with_borrow_mut(Vec::pop);
    }
}

/// Enters a scene, if anybody observes.
#[inline]
pub(crate) fn enter(scene: impl FnOnce() -> Scene) -> Option<SceneGuard> {
    is_active().then(|| {
        let scene = scene();
        SCENES.with_borrow_mut(|scenes| scenes.push(scene));
        SceneGuard(())
    })
}
