//! The boundary to the shim, `shim/shim.h`: the only module with `unsafe`. What it exports is safe to call.
//!
//! No panic and no exception crosses it. Tensors cross as `C_tensor`, which is `at::Tensor`: borrowed ones as pointers that are
//! valid during the call, owned ones as handles that tch frees.
#![allow(unsafe_code, reason = "calls into C++; each block says why it is sound")]

use core::any::Any;
use core::ffi::{CStr, c_char, c_void};
use core::mem::ManuallyDrop;
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use gradpact::contract::GradContract;
use gradpact::{Error, GradDType, Policy, Result};
use smallvec::SmallVec;
use tch::Tensor;
use torch_sys::C_tensor;

use crate::dtype::{code, from_code};
use crate::error::TorchError;
use crate::in_turn;
use crate::node::Recorded;

// As an array of a tensor, an `Array` is shared between threads.
//
// SAFETY: a `tch::Tensor` is a counted reference to a `TensorImpl`, whose count is atomic. tch says itself that it may be sent
// to another thread, where a `shallow_clone` of it does the same as a shared reference does here. Methods that take `&Tensor`
// only read, or record nodes, which libtorch synchronizes; what a node changes of its outputs it changes where nobody else
// holds them (`Attached` in the shim). What is left is a race between somebody who changes a tensor in place (`add_`, an `_out`
// function, `set_requires_grad`) and somebody who reads it: shallow clones make it possible with `Send` alone, and libtorch
// leaves it to its users.
unsafe impl Sync for crate::array::Array {}

/// The shim's list of tensors.
#[repr(C)]
struct RawList {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawCall {
    _opaque: [u8; 0],
}

#[repr(C)]
struct CxxString {
    _opaque: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Status {
    code: i32,
    message: *mut c_char,
    payload: *mut c_void,
}

const OK: i32 = 0;
const PAYLOAD: i32 = 2;
const FREED: i32 = 3;

/// In the place of a dtype's code: what [`dtype_code`] says of an undefined tensor.
pub(crate) const UNDEFINED: i32 = -3;
/// In the place of a dtype's code: what [`dtype_code`] says of a tensor that is sparse or nested.
pub(crate) const NOT_STRIDED: i32 = -4;

const NOT_DIFFERENTIABLE: i32 = -1;
const ANY: i32 = -2;

const WRONG_SHAPE: u32 = 1;
const WRONG_DEVICE: u32 = 2;

#[repr(C)]
struct Callbacks {
    backward: unsafe extern "C" fn(
        *const c_void,
        *mut RawCall,
        *const *const C_tensor,
        usize,
        *mut RawList,
    ) -> *mut c_void,
    drop_state: unsafe extern "C" fn(*mut c_void),
    drop_payload: unsafe extern "C" fn(*mut c_void),
    payload_message: unsafe extern "C" fn(*const c_void, *mut CxxString),
    payload_exception: unsafe extern "C" fn(*const c_void) -> *const c_void,
}

static CALLBACKS: Callbacks =
    Callbacks { backward, drop_state, drop_payload, payload_message, payload_exception };

#[repr(C)]
struct RawOutput {
    grad: i32,
    strict: i32,
}

// SAFETY: these are the declarations of `shim/shim.cpp`, each with the same types; `C_tensor` is `at::Tensor`.
unsafe extern "C" {
    fn gp_list_new() -> *mut RawList;
    fn gp_list_free(list: *mut RawList);
    fn gp_list_len(list: *const RawList) -> usize;
    fn gp_list_take(list: *mut RawList, position: usize, taken: *mut *mut C_tensor) -> Status;
    fn gp_list_push(list: *mut RawList, tensor: *const C_tensor) -> Status;
    fn gp_text_set(text: *mut CxxString, data: *const u8, length: usize);
    fn gp_free(memory: *mut c_void);
    fn gp_exception_free(exception: *mut c_void);
    fn gp_requires_grad(
        tensors: *const *const C_tensor,
        count: usize,
        requires_grad: *mut u8,
        recording: *mut i32,
    ) -> Status;
    fn gp_grad_enabled() -> i32;
    fn gp_kind(tensor: *const C_tensor, kind: *mut i32) -> Status;
    fn gp_grad_kind(tensor: *const C_tensor, kind: *mut i32) -> Status;
    fn gp_set_grad_kind(leaf: *const C_tensor, kind: i32) -> Status;
    fn gp_assign_grad(leaf: *const C_tensor, grad: *const C_tensor) -> Status;
    fn gp_grad_fn_name(tensor: *const C_tensor, name: *mut *mut c_char) -> Status;
    fn gp_record(
        callbacks: *const Callbacks,
        state: *mut c_void,
        name: *const u8,
        name_length: usize,
        inputs: *const *const C_tensor,
        input_count: usize,
        outputs: *const *const C_tensor,
        contracts: *const RawOutput,
        output_count: usize,
        saved: *const *const C_tensor,
        saved_count: usize,
        materialize: i32,
        out: *mut RawList,
    ) -> Status;
    fn gp_saved(call: *mut RawCall, out: *mut RawList) -> Status;
    fn gp_needs_input_grad(call: *mut RawCall, count: usize, needed: *mut u8) -> Status;
    fn gp_check(call: *mut RawCall, input: usize, grad: *const C_tensor, wrong: *mut u32) -> Status;
    fn gp_expected(
        call: *mut RawCall,
        input: usize,
        receiver: *mut *mut c_char,
        device: *mut *mut c_char,
        extents: *mut i64,
        capacity: usize,
        rank: *mut usize,
    ) -> Status;
    fn gp_backward(
        tensors: *const *const C_tensor,
        grads: *const *const C_tensor,
        count: usize,
        retain: i32,
        create: i32,
    ) -> Status;
    fn gp_grad(
        tensors: *const *const C_tensor,
        grads: *const *const C_tensor,
        count: usize,
        inputs: *const *const C_tensor,
        input_count: usize,
        retain: i32,
        create: i32,
        allow_unused: i32,
        out: *mut RawList,
    ) -> Status;
    fn gp_libtorch_version() -> u32;
    #[cfg(feature = "baseline")]
    fn gp_baseline_chain(x: *const C_tensor, length: usize) -> *mut C_tensor;
}

// ---- errors ---------------------------------------------------------------------------------------------------------

/// What travels through libtorch's engine when a backward fails.
enum Payload {
    Error(Error),
    Panic { function: &'static str, panic: Box<dyn Any + Send> },
}

impl Payload {
    fn into_raw(self) -> *mut c_void {
        Box::into_raw(Box::new(self)).cast()
    }
}

/// An exception of C++, kept so that it can be thrown again.
#[derive(Clone, Debug)]
pub(crate) struct Exception(Arc<RawException>);

#[derive(Debug)]
struct RawException(*mut c_void);

// SAFETY: a `std::exception_ptr` is a counted reference whose count is atomic, made to be passed between threads; nobody writes to
// this one, and C++ copies it to throw.
unsafe impl Send for RawException {}
// SAFETY: as above.
unsafe impl Sync for RawException {}

impl Exception {
    /// Takes what a status of the shim carries for an exception; `None` for null.
    fn take(raw: *mut c_void) -> Option<Self> {
        (!raw.is_null()).then(|| Self(Arc::new(RawException(raw))))
    }
}

impl Drop for RawException {
    fn drop(&mut self) {
        // SAFETY: made by the shim, which gave it away once; freed once.
        unsafe { gp_exception_free(self.0) }
    }
}

/// The same exception, not one that says the same.
impl PartialEq for Exception {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Exception {}

/// A status as a result; a panic that it carries goes on here.
fn check(status: Status) -> Result<()> {
    match status.code {
        OK => Ok(()),
        PAYLOAD if !status.payload.is_null() => {
            // SAFETY: a payload is what `Payload::into_raw` made, and the shim gives it away once.
            match *unsafe { Box::from_raw(status.payload.cast::<Payload>()) } {
                Payload::Error(error) => Err(error),
                Payload::Panic { panic, .. } => resume_unwind(panic),
            }
        }
        _ => {
            let message = take_text(status.message).unwrap_or_else(|| "out of memory".to_owned());
            Err(TorchError { message, exception: Exception::take(status.payload) }.into())
        }
    }
}

/// Takes a text that the shim has allocated; `None` for null.
fn take_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: texts of the shim come from `strdup`, which ends them with a zero, and are given away once.
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: `gp_free` frees what `strdup` allocated; nobody uses it after.
    unsafe { gp_free(text.cast()) };
    Some(owned)
}

// ---- tensors --------------------------------------------------------------------------------------------------------

type Pointers = SmallVec<[*const C_tensor; 4]>;

fn pointers<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> Pointers {
    tensors.into_iter().map(|tensor| tensor.map_or(ptr::null(), Tensor::as_ptr)).collect()
}

/// A list of tensors in C++.
struct List(*mut RawList);

impl List {
    fn new() -> Result<Self> {
        // SAFETY: allocates, or returns null.
        let list = unsafe { gp_list_new() };
        if list.is_null() {
            return Err(TorchError::new("out of memory").into());
        }
        Ok(Self(list))
    }

    /// Takes all tensors out; `None` for undefined ones.
    fn into_tensors<C: FromIterator<Option<Tensor>>>(self) -> Result<C> {
        // SAFETY: the list is alive until `self` is dropped.
        let length = unsafe { gp_list_len(self.0) };
        (0..length)
            .map(|position| {
                let mut taken = ptr::null_mut();
                // SAFETY: as above; `taken` outlives the call.
                check(unsafe { gp_list_take(self.0, position, &raw mut taken) })?;
                // SAFETY: a handle made for tch, owned by nobody else.
                Ok((!taken.is_null()).then(|| unsafe { Tensor::from_ptr(taken) }))
            })
            .collect()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: made by `gp_list_new`, freed once.
        unsafe { gp_list_free(self.0) }
    }
}

/// The number that libtorch gives the tensor's dtype, or [`UNDEFINED`], or [`NOT_STRIDED`].
pub(crate) fn dtype_code(tensor: &Tensor) -> Result<i32> {
    let mut kind = UNDEFINED;
    // SAFETY: the tensor is borrowed, and `kind` outlives the call.
    check(unsafe { gp_kind(tensor.as_ptr(), &raw mut kind) })?;
    Ok(kind)
}

/// Which of these tensors require a gradient, and whether libtorch records operations on this thread.
pub(crate) fn requires_grad<'a>(
    tensors: impl IntoIterator<Item = Option<&'a Tensor>>,
) -> Result<(SmallVec<[u8; 8]>, bool)> {
    let pointers = pointers(tensors);
    let mut required = SmallVec::from_elem(0, pointers.len());
    let mut recording = 0;
    // SAFETY: as many borrowed tensors or nulls, and as many bytes, as the length says.
    let status = unsafe {
        gp_requires_grad(pointers.as_ptr(), pointers.len(), required.as_mut_ptr(), &raw mut recording)
    };
    check(status)?;
    Ok((required, recording != 0))
}

/// Whether libtorch records operations on this thread.
pub(crate) fn is_grad_enabled() -> bool {
    // SAFETY: reads a thread-local flag.
    unsafe { gp_grad_enabled() != 0 }
}

/// In which dtype libtorch delivers the gradient of a tensor that requires one; `None` if it has a dtype that gradpact does not have.
pub(crate) fn grad_dtype(tensor: &Tensor) -> Result<Option<GradDType>> {
    let mut kind = ANY;
    // SAFETY: the tensor is borrowed, and `kind` outlives the call.
    check(unsafe { gp_grad_kind(tensor.as_ptr(), &raw mut kind) })?;
    Ok(if kind == ANY { Some(GradDType::Any) } else { from_code(kind).map(GradDType::Exactly) })
}

/// Sets the dtype in which a leaf keeps its gradient.
pub(crate) fn set_grad_dtype(leaf: &Tensor, grad_dtype: GradDType) -> Result<()> {
    let kind = grad_dtype.dtype().map_or(ANY, code);
    // SAFETY: the tensor is borrowed.
    check(unsafe { gp_set_grad_kind(leaf.as_ptr(), kind) })
}

/// Puts a gradient, or none, in the place of what a leaf has accumulated. Whether it fits is for the caller to see to.
pub(crate) fn assign_grad(leaf: &Tensor, grad: Option<&Tensor>) -> Result<()> {
    // SAFETY: both are borrowed, or null.
    check(unsafe { gp_assign_grad(leaf.as_ptr(), grad.map_or(ptr::null(), Tensor::as_ptr)) })
}

/// The name of the node that made a tensor.
pub(crate) fn grad_fn_name(tensor: &Tensor) -> Result<Option<String>> {
    let mut name = ptr::null_mut();
    // SAFETY: the tensor is borrowed, and `name` outlives the call.
    check(unsafe { gp_grad_fn_name(tensor.as_ptr(), &raw mut name) })?;
    Ok(take_text(name))
}

/// Major, minor and patch version of the libtorch in use.
pub(crate) fn libtorch_version() -> (u32, u32, u32) {
    // SAFETY: returns a constant.
    let version = unsafe { gp_libtorch_version() };
    (version / 10000, version / 100 % 100, version % 100)
}

// ---- recording ------------------------------------------------------------------------------------------------------

/// Makes a node of a forward that has run, and gives back its outputs, attached to it.
pub(crate) fn record<'a>(
    state: Recorded,
    inputs: &[Option<&Tensor>],
    outputs: impl IntoIterator<Item = &'a Tensor>,
    contracts: &[Option<GradContract>],
    saved: impl IntoIterator<Item = Option<&'a Tensor>>,
    materialize: bool,
) -> Result<SmallVec<[Tensor; 2]>> {
    let name = state.name();
    let inputs = pointers(inputs.iter().copied());
    let outputs = pointers(outputs.into_iter().map(Some));
    let contracts: SmallVec<[RawOutput; 4]> = contracts.iter().copied().map(raw_output).collect();
    let saved = pointers(saved);
    let out = List::new()?;
    let state: *mut Recorded = Box::into_raw(Box::new(state));
    // SAFETY: every pointer is to as many borrowed tensors (or nulls where they are allowed) as its length says, outputs and
    // contracts have the same length, and the shim takes `state` whatever happens.
    let status = unsafe {
        gp_record(
            &raw const CALLBACKS,
            state.cast(),
            name.as_ptr(),
            name.len(),
            inputs.as_ptr(),
            inputs.len(),
            outputs.as_ptr(),
            contracts.as_ptr(),
            outputs.len().min(contracts.len()),
            saved.as_ptr(),
            saved.len(),
            materialize.into(),
            out.0,
        )
    };
    check(status)?;
    let attached: SmallVec<[Option<Tensor>; 2]> = out.into_tensors()?;
    Ok(attached.into_iter().flatten().collect())
}

fn raw_output(contract: Option<GradContract>) -> RawOutput {
    let Some(contract) = contract else { return RawOutput { grad: NOT_DIFFERENTIABLE, strict: 0 } };
    let grad = contract.grad_dtype.dtype().map_or(ANY, code);
    RawOutput { grad, strict: (contract.policy == Policy::Strict).into() }
}

// ---- backward, called by libtorch -----------------------------------------------------------------------------------

/// One run of a node's backward, as libtorch sees it.
pub(crate) struct Call<'a> {
    raw: *mut RawCall,
    // The call lives on the stack of the caller.
    alive: core::marker::PhantomData<&'a ()>,
}

/// What the gradient of an input should be.
pub(crate) struct Expected {
    pub(crate) receiver: String,
    pub(crate) shape: gradpact::Shape,
    pub(crate) device: String,
}

/// What is wrong with a gradient.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Shape,
    Device,
}

impl Call<'_> {
    /// The saved tensors; `None` after an earlier backward has freed them.
    pub(crate) fn saved(&self) -> Result<Option<Vec<Option<Tensor>>>> {
        let out = List::new()?;
        // SAFETY: the call is alive, and so is the list.
        let status = unsafe { gp_saved(self.raw, out.0) };
        if status.code == FREED {
            return Ok(None);
        }
        check(status)?;
        out.into_tensors().map(Some)
    }

    /// Which inputs' gradients are asked for.
    pub(crate) fn needs_input_grad(&self, inputs: usize) -> Result<SmallVec<[u8; 8]>> {
        let mut needed = SmallVec::from_elem(0, inputs);
        // SAFETY: the call is alive, and there are as many bytes as the length says.
        check(unsafe { gp_needs_input_grad(self.raw, inputs, needed.as_mut_ptr()) })?;
        Ok(needed)
    }

    /// What is wrong with the gradient for an input, if anything is.
    pub(crate) fn check(&self, input: usize, grad: &Tensor) -> Result<Option<Wrong>> {
        let mut wrong = 0;
        // SAFETY: the call is alive, the tensor borrowed, the position one of the node's inputs.
        check(unsafe { gp_check(self.raw, input, grad.as_ptr(), &raw mut wrong) })?;
        Ok(match wrong {
            0 => None,
            _ if wrong & WRONG_SHAPE != 0 => Some(Wrong::Shape),
            _ if wrong & WRONG_DEVICE != 0 => Some(Wrong::Device),
            _ => None,
        })
    }

    /// What a gradient should be that [`check`](Self::check) found wrong.
    pub(crate) fn expected(&self, input: usize) -> Result<Expected> {
        let (mut receiver, mut device) = (ptr::null_mut(), ptr::null_mut());
        let mut extents = [0; 64];
        let mut rank = 0;
        // SAFETY: the call is alive, the input has an edge since its gradient was checked, and the array is as long as said.
        let status = unsafe {
            gp_expected(
                self.raw,
                input,
                &raw mut receiver,
                &raw mut device,
                extents.as_mut_ptr(),
                extents.len(),
                &raw mut rank,
            )
        };
        let (receiver, device) = (take_text(receiver), take_text(device));
        check(status)?;
        Ok(Expected {
            receiver: receiver.unwrap_or_default(),
            device: device.unwrap_or_default(),
            shape: extents.iter().take(rank).map(|&extent| extent as usize).collect(),
        })
    }
}

/// Runs the Rust backward of a node: null, or the payload of what went wrong.
///
/// # Safety
/// `state` is a `Recorded`, `call` and `returned` are alive, and `grads` are `count` tensors.
unsafe extern "C" fn backward(
    state: *const c_void,
    call: *mut RawCall,
    grads: *const *const C_tensor,
    count: usize,
    returned: *mut RawList,
) -> *mut c_void {
    let mut function = "";
    let run = || {
        // SAFETY: the shim hands over what `record` gave it, alive as long as the node.
        let recorded = unsafe { &*state.cast::<Recorded>() };
        function = recorded.name();
        let received = (0..count).map(|position| {
            // SAFETY: there are `count` pointers to tensors that outlive this call.
            let borrowed = unsafe { borrowed(*grads.add(position)) };
            borrowed.defined().then(|| borrowed.shallow_clone())
        });
        let call = Call { raw: call, alive: core::marker::PhantomData };
        for grad in recorded.backward(&call, received.collect())? {
            // SAFETY: the list is alive, and the pointer is null or that of a tensor alive during the call.
            check(unsafe { gp_list_push(returned, grad.as_ref().map_or(ptr::null(), Tensor::as_ptr)) })?;
        }
        Ok(())
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(error)) => Payload::Error(error).into_raw(),
        Err(panic) => Payload::Panic { function, panic }.into_raw(),
    }
}

/// A tensor that C++ owns, for as long as it says.
///
/// # Safety
/// `tensor` points to one that outlives the result.
unsafe fn borrowed(tensor: *const C_tensor) -> ManuallyDrop<Tensor> {
    // SAFETY: not dropped, so that it stays C++'s; only shared references to it are given out.
    ManuallyDrop::new(unsafe { Tensor::from_ptr(tensor.cast_mut()) })
}

/// # Safety
/// `state` is what `record` made, and nobody uses it after.
unsafe extern "C" fn drop_state(state: *mut c_void) {
    // SAFETY: as the caller promises.
    in_turn::drop_state(unsafe { Box::from_raw(state.cast::<Recorded>()) });
}

/// # Safety
/// `payload` is what `backward` returned, and nobody uses it after.
unsafe extern "C" fn drop_payload(payload: *mut c_void) {
    in_turn::quietly(|| {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(payload.cast::<Payload>()) });
    });
}

/// # Safety
/// `payload` is what `backward` returned, and `text` a string of C++.
unsafe extern "C" fn payload_message(payload: *const c_void, text: *mut CxxString) {
    // SAFETY: as the caller promises.
    let describe = || match unsafe { &*payload.cast::<Payload>() } {
        Payload::Error(error) => error.to_string(),
        Payload::Panic { function, panic } => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            format!("backward of `{function}` panicked: {}", text.unwrap_or("(a payload that is not text)"))
        }
    };
    let message = catch_unwind(AssertUnwindSafe(describe)).unwrap_or_else(|panic| {
        core::mem::forget(panic);
        "an error whose text cannot be formed".to_owned()
    });
    // SAFETY: `text` is alive during the call, and the bytes are.
    unsafe { gp_text_set(text, message.as_ptr(), message.len()) }
}

/// # Safety
/// `payload` is what `backward` returned; the result is valid as long as it is.
unsafe extern "C" fn payload_exception(payload: *const c_void) -> *const c_void {
    // SAFETY: as the caller promises.
    let Payload::Error(error) = (unsafe { &*payload.cast::<Payload>() }) else { return ptr::null() };
    let exception = error.downcast_ref::<TorchError>().and_then(|error| error.exception.as_ref());
    exception.map_or(ptr::null(), |exception| exception.0.0)
}

// ---- differentiation ------------------------------------------------------------------------------------------------

/// Runs libtorch's engine from these tensors, with these gradients, to all leaves.
pub(crate) fn run_backward(roots: &[(&Tensor, Option<&Tensor>)], retain: bool, create: bool) -> Result<()> {
    let tensors = pointers(roots.iter().map(|&(tensor, _)| Some(tensor)));
    let grads = pointers(roots.iter().map(|&(_, grad)| grad));
    // SAFETY: as many borrowed tensors, and gradients or nulls, as the length says.
    check(unsafe {
        gp_backward(tensors.as_ptr(), grads.as_ptr(), tensors.len(), retain.into(), create.into())
    })
}

/// Runs libtorch's engine from these tensors, with these gradients, to `inputs`.
pub(crate) fn run_grad(
    roots: &[(&Tensor, Option<&Tensor>)],
    inputs: &[&Tensor],
    retain: bool,
    create: bool,
    allow_unused: bool,
) -> Result<Vec<Option<Tensor>>> {
    let tensors = pointers(roots.iter().map(|&(tensor, _)| Some(tensor)));
    let grads = pointers(roots.iter().map(|&(_, grad)| grad));
    let inputs = pointers(inputs.iter().map(|&input| Some(input)));
    let out = List::new()?;
    // SAFETY: as many borrowed tensors, and gradients or nulls, as the lengths say; the list is alive.
    let status = unsafe {
        gp_grad(
            tensors.as_ptr(),
            grads.as_ptr(),
            tensors.len(),
            inputs.as_ptr(),
            inputs.len(),
            retain.into(),
            create.into(),
            allow_unused.into(),
            out.0,
        )
    };
    check(status)?;
    out.into_tensors()
}

/// For the benchmark: `length` times the Function of `shim/baseline.cpp`, written in C++.
#[cfg(feature = "baseline")]
pub fn cpp_neg_chain(x: &Tensor, length: usize) -> Option<Tensor> {
    // SAFETY: the tensor is borrowed.
    let y = unsafe { gp_baseline_chain(x.as_ptr(), length) };
    // SAFETY: a handle made for tch, owned by nobody else.
    (!y.is_null()).then(|| unsafe { Tensor::from_ptr(y) })
}
