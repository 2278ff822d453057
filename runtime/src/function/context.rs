//! The context: declarations of a forward, and what it leaves for backward.

use core::any::Any;
use core::fmt;

use crate::autograd::{DynTensor, InputMetadata, Metadata};
use crate::contract::{GradContract, GradDType, Policy};
use crate::dtype::DType;
use crate::engine::{Array, Cpu, Engine};
use crate::error::{Error, Place, Result};
use crate::list::List;

/// Carries declarations out of a forward, and tensors from it to its backward. `ctx` in PyTorch.
///
/// In `forward` it is mutable and takes declarations; in `backward` it is not, so that a declaration cannot come too
/// late.
pub struct Context<E: Engine = Cpu> {
    pub(super) function: &'static str,
    pub(super) needs_input_grad: Positions,
    pub(super) saved: Saved<E>,
    pub(super) stored: Option<std::sync::Arc<dyn Any + Send + Sync>>,
    pub(super) materialize_grads: bool,
    pub(super) once: bool,
    pub(super) declarations: Declarations,
}

/// A set of positions: a bit each, and a list for those past the 64th.
#[derive(Debug)]
pub(super) struct Positions {
    bits: u64,
    #[expect(clippy::box_collection, reason = "one empty pointer in nearly every context")]
    more: Option<Box<Vec<bool>>>,
}

impl Positions {
    #[inline]
    pub(super) fn among(count: usize, is_in: impl Fn(usize) -> bool) -> Self {
        let bits = (0..count.min(64)).fold(0, |bits, position| bits | u64::from(is_in(position)) << position);
        let more = (count > 64).then(|| Box::new((64..count).map(is_in).collect()));
        Self { bits, more }
    }

    #[inline]
    pub(super) fn contains(&self, position: usize) -> bool {
        match position {
            0..64 => self.bits >> position & 1 == 1,
            _ => self.more.as_ref().is_some_and(|more| more.get(position - 64) == Some(&true)),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bits == 0 && !self.more.as_ref().is_some_and(|more| more.contains(&true))
    }
}

/// What has become of the saved tensors.
pub(super) enum Saved<E: Engine> {
    /// They are here, perhaps none.
    Kept(List<DynTensor<E>>),
    /// An earlier backward freed them.
    Freed,
}

/// What a forward has declared so far.
#[derive(Default)]
pub(super) struct Declarations {
    grad_dtypes: Option<List<GradDType>>,
    carries: bool,
    non_differentiable: Vec<usize>,
    saved: bool,
    policy: Option<Policy>,
    // Under the attribute all is declared before the formulas run.
    locked: bool,
    // A mistake is reported by `apply` even if the forward ignored it.
    mistake: Option<Box<Error>>,
}

impl<E: Engine> Context<E> {
    pub(super) fn new(function: &'static str, needs_input_grad: Positions) -> Self {
        Self {
            function,
            needs_input_grad,
            saved: Saved::Kept(List::new()),
            stored: None,
            materialize_grads: true,
            once: false,
            declarations: Declarations::default(),
        }
    }

    /// From here on every declaration is a mistake: the attribute has made them all, and types that were derived from it
    /// must stay true.
    pub(crate) fn lock_declarations(&mut self) {
        self.declarations.locked = true;
    }

    /// Notes a mistake for `apply`, which reports the first one even if the forward ignores it, and returns it.
    fn mistake(&mut self, error: impl Fn() -> Error) -> Result<()> {
        self.declarations.mistake.get_or_insert_with(|| Box::new(error()));
        Err(error())
    }

    /// Notes the mistake of a declaration under the attribute, if it is one.
    fn refuse_if_locked(&mut self, call: &'static str) -> Result<()> {
        if !self.declarations.locked {
            return Ok(());
        }
        let function = self.function;
        self.mistake(|| Error::DeclaredByAttribute { function: function.to_owned(), call })
    }

    /// The name of the Function.
    pub fn function(&self) -> &'static str {
        self.function
    }

    /// Declares in which dtype the gradient of each output must arrive: one entry for each output, in order.
    ///
    /// A floating dtype is what backward then receives, whatever is sent; [`GradDType::Any`] takes a gradient as it
    /// comes, and is the entry for an output that has no gradient. Without a call each output's gradient arrives in
    /// the output's own dtype. An integer output with a floating entry becomes differentiable.
    ///
    /// # Errors
    /// [`Error::CalledTwice`] at the second call, [`Error::DeclaredNotFloat`]. Whether the number of entries is that of
    /// the outputs shows when `forward` has returned: [`Error::DeclarationCount`] from [`apply`](super::apply).
    pub fn set_output_grad_dtype(&mut self, grad_dtypes: &[GradDType]) -> Result<()> {
        self.refuse_if_locked("set_output_grad_dtype")?;
        let function = self.function;
        if self.declarations.grad_dtypes.is_some() {
            let call = "set_output_grad_dtype";
            return self.mistake(|| Error::CalledTwice { function: function.to_owned(), call });
        }
        self.declarations.grad_dtypes = Some(List::from_slice(grad_dtypes, |_, &grad_dtype| grad_dtype));
        let not_float = |&(_, dtype): &(usize, DType)| !dtype.is_float();
        let declared = grad_dtypes.iter().enumerate().filter_map(|(i, grad)| Some((i, grad.dtype()?)));
        if let Some((position, got)) = declared.clone().find(not_float) {
            let place = || Box::new(Place::output(function, position));
            return self.mistake(|| Error::DeclaredNotFloat { place: place(), got });
        }
        Ok(())
    }

    /// Declares for every output the widest of its own dtype and the inputs' gradient dtypes, as built-in
    /// operations do. [`set_output_grad_dtype`](Self::set_output_grad_dtype) wins over it.
    pub fn carry_grad_dtype(&mut self) {
        // Reported by `apply`.
        let _ = self.refuse_if_locked("carry_grad_dtype");
        self.declarations.carries = true;
    }

    /// Decides what a gradient gets that comes to an output in another dtype than the declared one: converted (the
    /// default), or refused with an error, before backward runs. Without a declaration the output's own dtype counts.
    ///
    /// Under the attribute it may be called where `policy` is not among the keys: no type depends on it.
    pub fn set_policy(&mut self, policy: Policy) {
        if self.declarations.policy.is_some() {
            // Reported by `apply`.
            let _ = self.refuse_if_locked("set_policy");
        }
        self.declarations.policy = Some(policy);
    }

    /// Marks outputs, by position, as having no gradient.
    pub fn mark_non_differentiable(&mut self, outputs: &[usize]) {
        // Reported by `apply`.
        let _ = self.refuse_if_locked("mark_non_differentiable");
        self.declarations.non_differentiable.extend_from_slice(outputs);
    }

    /// Whether an output that nobody used gets zeros in backward (the default), or `None`.
    pub fn set_materialize_grads(&mut self, materialize: bool) {
        // Reported by `apply`.
        let _ = self.refuse_if_locked("set_materialize_grads");
        self.materialize_grads = materialize;
    }

    /// Says that backward is not differentiable itself, as `once_differentiable` in PyTorch: it may then do anything with
    /// values, also what is not recorded.
    ///
    /// First derivatives are as before. With `create_graph` backward runs unrecorded; if a saved tensor or a gradient that
    /// it received is tracked, its results are too, and a gradient that reaches them is
    /// [`Error::DifferentiableOnce`]. If not, they are constants. Under the attribute it may be called where `once` is not
    /// among the keys.
    pub fn mark_once_differentiable(&mut self) {
        if self.once {
            // Reported by `apply`.
            let _ = self.refuse_if_locked("mark_once_differentiable");
        }
        self.once = true;
    }

    /// Keeps tensors for backward, where [`saved_tensors`](Self::saved_tensors) gives them back in this order.
    ///
    /// Save inputs and outputs; a value computed on the way has no derivative of its own, so that a second
    /// derivative through it is an error. A constant made here is saved as `constant.detach()`. Called once.
    pub fn save_for_backward<S: SaveForBackward<E>>(&mut self, tensors: S) {
        if core::mem::replace(&mut self.declarations.saved, true) {
            let (function, call) = (self.function, "save_for_backward");
            // Reported by `apply`.
            let _ = self.mistake(|| Error::CalledTwice { function: function.to_owned(), call });
            return;
        }
        if let Saved::Kept(list) = &mut self.saved
            && let Err(error) = tensors.push_all(list)
        {
            self.declarations.mistake.get_or_insert_with(|| Box::new(error));
        }
    }

    /// The tensors that forward saved.
    ///
    /// # Errors
    /// [`Error::SavedFreed`] if an earlier backward freed them.
    pub fn saved_tensors(&self) -> Result<&[DynTensor<E>]> {
        match &self.saved {
            Saved::Kept(tensors) => Ok(tensors),
            Saved::Freed => Err(Error::SavedFreed(self.function.to_owned())),
        }
    }

    /// The tensor that forward saved at `position`.
    ///
    /// # Errors
    /// [`Error::SavedFreed`], and [`Error::Saved`] if there is none.
    pub fn saved_tensor(&self, position: usize) -> Result<&DynTensor<E>> {
        let saved = self.saved_tensors()?;
        saved.get(position).ok_or_else(|| Error::Saved {
            function: self.function.to_owned(),
            position,
            expected: "a tensor".to_owned(),
            got: format!("only {} saved", saved.len()),
        })
    }

    /// Keeps a value that is not a tensor for backward, which reads it with [`stored`](Self::stored).
    pub fn store<T: Any + Send + Sync>(&mut self, value: T) {
        self.stored = Some(std::sync::Arc::new(value));
    }

    /// The value that forward [stored](Self::store), if it is a `T`.
    pub fn stored<T: Any>(&self) -> Option<&T> {
        self.stored.as_deref().and_then(|stored| stored.downcast_ref())
    }

    /// Whether the gradient of the input at `position` is wanted: where not, its computation can be skipped.
    pub fn needs_input_grad(&self, position: usize) -> bool {
        self.needs_input_grad.contains(position)
    }

    /// The value of `grad` if the gradient of the input at `position` is wanted, else a placeholder that the engine
    /// drops unread.
    ///
    /// # Errors
    /// Those of `grad`.
    pub fn grad_if_needed<T: Placeholder>(
        &self,
        position: usize,
        grad: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.needs_input_grad(position) { grad() } else { T::placeholder() }
    }
}

impl Declarations {
    /// What the node is to know of each output, and which of them have a gradient.
    ///
    /// Checked whether or not anything is recorded: first the count, then output by output. `carried` are the gradient dtypes
    /// of the inputs that are tracked.
    #[inline]
    pub(super) fn resolve<E: Engine>(
        &mut self,
        function: &'static str,
        outputs: &[DynTensor<E>],
        carried: &(impl Iterator<Item = GradDType> + Clone),
    ) -> Result<(Metadata, Positions)> {
        let metadata = |contract: Option<GradContract>, output: &DynTensor<E>| {
            let (shape, dtype) = (output.shape().clone(), output.dtype());
            // No edge leads to a non-differentiable output, so its contract is never asked; its zeros have its dtype.
            InputMetadata::new(shape, dtype, contract.unwrap_or(GradContract::default_of(dtype)))
        };
        if let [output] = outputs {
            self.check(function, 1)?;
            let contract = self.contract(function, 0, output.dtype(), carried)?;
            return Ok((metadata(contract, output).alone(), Positions::among(1, |_| contract.is_some())));
        }
        let contracts = self.contracts(function, outputs, carried)?;
        let differentiable = Positions::among(outputs.len(), |position| contracts[position].is_some());
        let metadata =
            contracts.into_iter().zip(outputs).map(|(contract, output)| metadata(contract, output));
        Ok((metadata.collect(), differentiable))
    }

    /// The contract of each output; `None` where it has no gradient. Checked as in [`resolve`](Self::resolve).
    pub(super) fn contracts<E: Engine>(
        &mut self,
        function: &'static str,
        outputs: &[DynTensor<E>],
        carried: &(impl Iterator<Item = GradDType> + Clone),
    ) -> Result<List<Option<GradContract>>> {
        self.check(function, outputs.len())?;
        List::try_from_slice(outputs, |position, output| {
            self.contract(function, position, output.dtype(), carried)
        })
    }

    /// Reports a mistake that was noted, and declarations for another number of outputs.
    #[inline]
    fn check(&mut self, function: &'static str, outputs: usize) -> Result<()> {
        let fits = self.grad_dtypes.as_ref().is_none_or(|declared| declared.len() == outputs);
        if self.mistake.is_none() && fits && self.non_differentiable.is_empty() {
            return Ok(());
        }
        self.report(function, outputs)
    }

    #[cold]
    fn report(&mut self, function: &'static str, outputs: usize) -> Result<()> {
        if let Some(mistake) = self.mistake.take() {
            return Err(*mistake);
        }
        if let Some(declared) = self.grad_dtypes.as_ref().map(|declared| declared.len())
            && declared != outputs
        {
            return Err(Error::DeclarationCount { function: function.to_owned(), declared, outputs });
        }
        match self.non_differentiable.iter().find(|&&position| position >= outputs) {
            Some(&position) => {
                let place = Box::new(Place::output(function, position));
                Err(Error::NoSuchOutput { call: "mark_non_differentiable", place, outputs })
            }
            None => Ok(()),
        }
    }

    /// The contract of an output; `None` if it has no gradient.
    #[inline]
    fn contract(
        &self,
        function: &'static str,
        position: usize,
        dtype: DType,
        carried: &(impl Iterator<Item = GradDType> + Clone),
    ) -> Result<Option<GradContract>> {
        let declared = self.grad_dtypes.as_ref().map(|grad_dtypes| grad_dtypes[position]);
        let is_marked = self.non_differentiable.contains(&position);
        let contract = match declared {
            Some(GradDType::Exactly(_)) if is_marked => {
                return Err(Error::DeclaredNonDifferentiable(Box::new(Place::output(function, position))));
            }
            _ if is_marked => None,
            Some(GradDType::Any) if !dtype.is_float() => None,
            Some(grad_dtype) => Some(GradContract::declared(grad_dtype)),
            None if self.carries => GradContract::carried(dtype, carried.clone()),
            None => dtype.is_float().then(|| GradContract::default_of(dtype)),
        };
        let policy = self.policy.unwrap_or_default();
        Ok(contract.map(|contract| GradContract { policy, ..contract }))
    }
}

/// What [`Context::save_for_backward`] takes: a tensor, typed or not, or an optional input, by reference; or a tuple, array
/// or slice of these.
pub trait SaveForBackward<E: Engine> {
    /// Appends clones of the tensors.
    #[doc(hidden)]
    fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()>;
}

impl<E: Engine> SaveForBackward<E> for &DynTensor<E> {
    fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()> {
        list.push(self.clone());
        Ok(())
    }
}

impl<E: Engine, S: SaveForBackward<E>, const N: usize> SaveForBackward<E> for [S; N] {
    fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()> {
        self.into_iter().try_for_each(|tensor| tensor.push_all(list))
    }
}

impl<E: Engine> SaveForBackward<E> for &[DynTensor<E>] {
    fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()> {
        self.iter().try_for_each(|tensor| tensor.push_all(list))
    }
}

macro_rules! saves_tuples {
    ($($($name:ident)+;)*) => {$(
        impl<E: Engine, $($name: SaveForBackward<E>),+> SaveForBackward<E> for ($($name,)+) {
            fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()> {
                #[allow(non_snake_case, reason = "the type parameters name the fields")]
                let ($($name,)+) = self;
                $($name.push_all(list)?;)+
                Ok(())
            }
        }
    )*};
}
saves_tuples! {
    A; A B; A B C; A B C D; A B C D F; A B C D F G; A B C D F G H; A B C D F G H I;
}

/// Gradients that can be left out where nobody reads them.
pub trait Placeholder: Sized {
    /// A value that the engine drops unread.
    #[doc(hidden)]
    fn placeholder() -> Result<Self>;
}

impl<T> Placeholder for Option<T> {
    fn placeholder() -> Result<Self> {
        Ok(None)
    }
}

impl<E: Engine> Placeholder for DynTensor<E> {
    fn placeholder() -> Result<Self> {
        E::Array::full(&crate::shape::Shape::scalar(), 0.0, DType::F32).map(Self::from_array)
    }
}

impl<E: Engine> fmt::Debug for Context<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saved = match &self.saved {
            Saved::Kept(tensors) => tensors.len(),
            Saved::Freed => 0,
        };
        f.debug_struct("Context")
            .field("function", &self.function)
            .field("needs_input_grad", &self.needs_input_grad)
            .field("saved_tensors", &saved)
            .finish_non_exhaustive()
    }
}
