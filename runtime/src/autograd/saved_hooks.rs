//! What happens to a saved tensor between forward and backward: by default nothing; inside a region of hooks it is packed
//! into something else, and unpacked when its backward runs.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use std::sync::Arc;

use super::grad_mode::GradModeGuard;
use super::graph_task::caught;
use super::scoped::{Restore, within};
use super::tensor::DynTensor;
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::{Error, Phase, Result};
use crate::observe::{self, Scene};

/// What a tensor was packed into.
pub(super) type Packet = Box<dyn Any + Send + Sync>;

/// A tensor of whichever engine.
pub(super) trait AnyTensor: Any + Send + Sync {
    fn dtype(&self) -> DType;
    fn cast(&self, dtype: DType) -> Result<Box<dyn AnyTensor>>;
    fn boxed(&self) -> Box<dyn AnyTensor>;
    fn as_any(&self) -> &dyn Any;
}

impl<E: Engine> AnyTensor for DynTensor<E> {
    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn cast(&self, dtype: DType) -> Result<Box<dyn AnyTensor>> {
        Ok(Box::new(self.cast(dtype)?))
    }

    fn boxed(&self) -> Box<dyn AnyTensor> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A pair of pack and unpack.
pub(super) trait SavedHooks: Send + Sync {
    /// Whether it is meant for tensors of this engine.
    fn takes(&self, _: &dyn AnyTensor) -> bool {
        true
    }

    fn pack(&self, tensor: &dyn AnyTensor) -> Result<Packet>;

    fn unpack(&self, packet: &Packet) -> Result<Box<dyn AnyTensor>>;

    /// How a packet is kept, to end the sentence "f32 [2], …".
    fn describe(&self, packet: &Packet) -> String;
}

thread_local! {
    static HOOKS: RefCell<Vec<Arc<dyn SavedHooks>>> = const { RefCell::new(Vec::new()) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static SUSPENDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`, in which `hooks` pack what is saved.
pub(super) fn with_hooks<R>(hooks: Arc<dyn SavedHooks>, body: impl FnOnce() -> R) -> R {
    within(&HOOKS, &COUNT, hooks, body)
}

/// Whether this thread is in a region of hooks, for tensors of whichever engine.
pub(crate) fn are_active() -> bool {
    COUNT.get() > 0 && !SUSPENDED.get()
}

/// The innermost hooks for tensors of this engine, if this thread is in a region of such.
pub(super) fn current(tensor: &dyn AnyTensor) -> Option<Arc<dyn SavedHooks>> {
    if !are_active() {
        return None;
    }
    HOOKS.with_borrow(|list| list.iter().rev().find(|hooks| hooks.takes(tensor)).cloned())
}

/// Runs a hook of the user's: unrecorded, outside the region, its panic an error.
pub(super) fn run_hook<R>(function: &str, phase: Phase, hook: impl FnOnce() -> Result<R>) -> Result<R> {
    let _suspended = Restore::after(&SUSPENDED, true);
    let _mode = GradModeGuard::disable();
    let _scene = observe::enter(|| {
        let function = function.to_owned();
        Scene::Function { function, is_built_in: false, phase, backward: None }
    });
    caught(function, phase, hook)?.map_err(|error| error.inside(function, phase))
}

/// Runs `body` as if no hooks were suspended: for a region that is recomputed inside an unpack.
pub(super) fn resumed<R>(body: impl FnOnce() -> R) -> R {
    let _resumed = Restore::after(&SUSPENDED, false);
    body()
}

/// A user's pair for tensors of engine `E`.
struct Pair<E: Engine, P, Pack, Unpack> {
    pack: Pack,
    unpack: Unpack,
    types: PhantomData<fn(E) -> P>,
}

impl<E, P, Pack, Unpack> SavedHooks for Pair<E, P, Pack, Unpack>
where
    E: Engine,
    P: Any + Send + Sync,
    Pack: Fn(&DynTensor<E>) -> Result<P> + Send + Sync,
    Unpack: Fn(&P) -> Result<DynTensor<E>> + Send + Sync,
{
    fn takes(&self, tensor: &dyn AnyTensor) -> bool {
        tensor.as_any().is::<DynTensor<E>>()
    }

    fn pack(&self, tensor: &dyn AnyTensor) -> Result<Packet> {
        let tensor = tensor.as_any().downcast_ref().ok_or_else(foreign)?;
        Ok(Box::new((self.pack)(tensor)?))
    }

    fn unpack(&self, packet: &Packet) -> Result<Box<dyn AnyTensor>> {
        let packet = packet.downcast_ref().ok_or_else(foreign)?;
        Ok(Box::new((self.unpack)(packet)?))
    }

    fn describe(&self, packet: &Packet) -> String {
        match packet.downcast_ref::<DynTensor<E>>() {
            Some(tensor) => format!("kept as {} {}", tensor.dtype(), tensor.shape()),
            None => format!("packed as {}", core::any::type_name::<P>()),
        }
    }
}

/// Hooks are only ever given tensors that they take, and their own packets.
#[cold]
pub(super) fn foreign() -> Error {
    let problem = "a saved tensor was unpacked by other hooks than packed it".to_owned();
    Error::Argument { operation: "saved_tensors_hooks", problem }
}

/// Runs `body`; every tensor that a Function saves in it is given to `pack`, and what that returns is kept instead. When
/// the Function's backward runs, wherever that is, `unpack` gives the tensor back.
///
/// Both see plain values and run unrecorded; the graph is kept apart from what is packed, so double backward works as
/// without hooks. Of nested regions the innermost counts. Holds for this thread. What the hooks made of a tensor is told
/// by [`Node::saved_tensors`](super::Node::saved_tensors).
///
/// # Errors
/// An error or panic of `pack` is an error of the operation that saved, one of `unpack` of the backward; both name the
/// Function. [`Error::Saved`] if `unpack` returns another dtype or shape than was packed: a narrower copy is widened again
/// by `unpack`.
///
/// # Examples
/// Saved tensors on disk, or as here compressed to their own liking:
/// ```
/// use gradpact::prelude::*;
/// use gradpact::autograd::saved_tensors_hooks;
///
/// let x = DynTensor::from_vec(vec![3.0_f32, 4.0], [2])?.requiring_grad()?;
/// let pack = |tensor: &DynTensor| tensor.to_vec::<f32>();
/// let unpack = |values: &Vec<f32>| DynTensor::from_slice(values, [values.len()]);
/// let y = saved_tensors_hooks(pack, unpack, || x.mul(&x))?;
/// y.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [6.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
pub fn saved_tensors_hooks<E: Engine, P: Any + Send + Sync, R>(
    pack: impl Fn(&DynTensor<E>) -> Result<P> + Send + Sync + 'static,
    unpack: impl Fn(&P) -> Result<DynTensor<E>> + Send + Sync + 'static,
    body: impl FnOnce() -> R,
) -> R {
    with_hooks(Arc::new(Pair { pack, unpack, types: PhantomData }), body)
}

/// Keeps wider floating tensors in one dtype.
struct Narrow(DType);

/// A tensor and the dtype that it had.
struct Narrowed {
    tensor: Box<dyn AnyTensor>,
    before: DType,
}

impl SavedHooks for Narrow {
    fn pack(&self, tensor: &dyn AnyTensor) -> Result<Packet> {
        let before = tensor.dtype();
        let narrower = before.is_float() && self.0.size_in_bytes() < before.size_in_bytes();
        let tensor = if narrower { tensor.cast(self.0)? } else { tensor.boxed() };
        Ok(Box::new(Narrowed { tensor, before }))
    }

    fn unpack(&self, packet: &Packet) -> Result<Box<dyn AnyTensor>> {
        let packet: &Narrowed = packet.downcast_ref().ok_or_else(foreign)?;
        packet.tensor.cast(packet.before)
    }

    fn describe(&self, packet: &Packet) -> String {
        match packet.downcast_ref::<Narrowed>() {
            Some(packet) if packet.tensor.dtype() == packet.before => "kept as it is".to_owned(),
            _ => format!("kept as {}", self.0),
        }
    }
}

/// Runs `body`; floating tensors that are saved in it and are wider than `dtype` are kept in `dtype`, rounded once, and
/// widened again for backward: half the memory or less, for gradients that are formed with rounded values.
///
/// The gradients' own dtypes are as declared. Tensors of other dtypes are kept as they are. Holds for this thread.
///
/// # Errors
/// [`Error::DType`] if `dtype` is not floating-point; `body` has not run then.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
/// use gradpact::autograd::save_in;
///
/// let x = DynTensor::from_vec(vec![1.001_f32], [1])?.requiring_grad()?;
/// let y = save_in(DType::BF16, || x.mul(&x))??;
/// let saved = y.grad_fn().unwrap().saved_tensors();
/// assert_eq!(saved[0].to_string(), "f32 [1], kept as bf16");
/// y.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0], "1.001 is 1 in bf16");
/// # Ok::<(), Error>(())
/// ```
pub fn save_in<R>(dtype: DType, body: impl FnOnce() -> R) -> Result<R> {
    if !dtype.is_float() {
        let expected = "a floating-point dtype to keep saved tensors in".to_owned();
        return Err(Error::DType { operation: "save_in", expected, got: dtype });
    }
    Ok(with_hooks(Arc::new(Narrow(dtype)), body))
}
