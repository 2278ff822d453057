//! Regions whose saved tensors are not kept but recomputed when backward needs them.
//!
//! NOTE [Checkpoints are hooks]: a region is recorded node by node as always, and each tensor that is saved in it is packed
//! into its number. Unpacking the first one runs the region again and keeps what that saves. So the graph is the same as
//! without a checkpoint: every contract, hook and label, the gradients of captured leaves, `grad`, and double backward.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::autocast::{autocast_dtype, enter_region};
use super::grad_mode::enable_grad;
use super::saved_hooks::{AnyTensor, Packet, SavedHooks, foreign, resumed, with_hooks};
use crate::dtype::DType;
use crate::error::{Error, Result};

type Saved = Box<dyn AnyTensor>;

/// Locks what nothing of the user's runs under.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A region, and what its last recomputation saved.
struct Frame {
    run: Box<dyn Fn() -> Result<()> + Send + Sync>,
    autocast: Option<DType>,
    /// How many tensors the first run has saved so far, and in all.
    numbered: AtomicUsize,
    count: OnceLock<usize>,
    /// By number; each is given away once, so that memory is freed on the way.
    recomputed: Mutex<Vec<Option<Saved>>>,
}

impl Frame {
    fn take(&self, number: usize) -> Option<Saved> {
        lock(&self.recomputed).get_mut(number)?.take()
    }

    /// Runs the region again. Gives the tensor `number`, and keeps the others for the unpacks that follow.
    fn recompute(&self, number: usize) -> Result<Saved> {
        let collector = Arc::new(Collector::default());
        let hooks: Arc<dyn SavedHooks> = Arc::<Collector>::clone(&collector);
        resumed(|| {
            let _region = enter_region(self.autocast);
            enable_grad(|| with_hooks(hooks, || (self.run)()))
        })?;
        let mut saved: Vec<_> = core::mem::take(&mut *lock(&collector.0)).into_iter().map(Some).collect();
        let second = saved.len();
        let asked = saved.get_mut(number).and_then(Option::take);
        match (asked, self.count.get()) {
            // `None` while the first run is not over: a region may differentiate inside.
            (Some(asked), first) if first.is_none_or(|&first| first == second) => {
                let before = core::mem::replace(&mut *lock(&self.recomputed), saved);
                drop(before);
                Ok(asked)
            }
            (_, first) => Err(Error::Recomputed { first: first.copied().unwrap_or(number + 1), second }),
        }
    }
}

/// The hooks of the first run: they keep numbers.
struct Numbering(Arc<Frame>);

impl SavedHooks for Numbering {
    fn pack(&self, _: &dyn AnyTensor) -> Result<Packet> {
        Ok(Box::new(self.0.numbered.fetch_add(1, Ordering::Relaxed)))
    }

    fn unpack(&self, packet: &Packet) -> Result<Saved> {
        let number = *packet.downcast_ref().ok_or_else(foreign)?;
        match self.0.take(number) {
            Some(saved) => Ok(saved),
            None => self.0.recompute(number),
        }
    }

    fn describe(&self, _: &Packet) -> String {
        "recomputed".to_owned()
    }
}

/// The hooks of a recomputation: they keep what is saved.
#[derive(Default)]
struct Collector(Mutex<Vec<Saved>>);

impl SavedHooks for Collector {
    fn pack(&self, tensor: &dyn AnyTensor) -> Result<Packet> {
        lock(&self.0).push(tensor.boxed());
        // For a region that differentiates inside.
        Ok(Box::new(tensor.boxed()))
    }

    fn unpack(&self, packet: &Packet) -> Result<Saved> {
        packet.downcast_ref().map(|saved: &Saved| saved.boxed()).ok_or_else(foreign)
    }

    fn describe(&self, _: &Packet) -> String {
        "recomputed".to_owned()
    }
}

/// Runs `region`, whose saved tensors are not kept: when a backward needs them, the region runs again. Memory for time.
///
/// The graph is that of the region: gradients arrive as declared, captured leaves accumulate, hooks and metadata are where
/// they were, `grad` and double backward work. The region owns what it needs (clones of tensors are cheap) and must do the
/// same each time; it is recomputed in the [`autocast`](super::autocast()) region it first ran in. A random
/// generator in it must be made in it, or its numbers drawn before. Regions nest.
///
/// PyTorch's `torch.utils.checkpoint`, `use_reentrant=False`.
///
/// # Errors
/// Those of `region`. In a backward, errors and panics of the recomputation, and [`Error::Recomputed`] or
/// [`Error::Saved`] if it saved other tensors than the first run.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
/// use gradpact::autograd::checkpoint;
///
/// let x = Tensor::<f32>::from_vec(vec![0.5, 2.0], [2])?.requiring_grad()?;
/// let inside = x.clone();
/// let y = checkpoint(move || inside.exp()?.mul(&inside))?;
/// y.sum()?.backward()?;
/// let expected = |x: f32| x.exp() * (1.0 + x);
/// for (grad, x) in x.grad().unwrap().to_vec()?.into_iter().zip([0.5, 2.0]) {
///     assert!((grad - expected(x)).abs() < 1e-5);
/// }
/// # Ok::<(), Error>(())
/// ```
pub fn checkpoint<R>(region: impl Fn() -> Result<R> + Send + Sync + 'static) -> Result<R> {
    let region = Arc::new(region);
    let again = Arc::clone(&region);
    let frame = Frame {
        run: Box::new(move || again().map(drop)),
        autocast: autocast_dtype(),
        numbered: AtomicUsize::new(0),
        count: OnceLock::new(),
        recomputed: Mutex::default(),
    };
    let frame = Arc::new(frame);
    let result = with_hooks(Arc::new(Numbering(Arc::clone(&frame))), || region())?;
    frame.count.get_or_init(|| frame.numbered.load(Ordering::Relaxed));
    Ok(result)
}
