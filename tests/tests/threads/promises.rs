//! Which public types may be sent to and shared with other threads, and which must stay on theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gradpact::audit::{
    Audit, Census, Comparison, Conversion, Difference, Format, Happened, Narrowing, NodeInfo, Outcome,
    Picture, Recorder, RoundTrip, Row, Stage,
};
use gradpact::autograd::grad_mode::GradModeGuard;
use gradpact::autograd::{
    BackwardCall, BackwardStep, Cut, Edge, HookHandle, InputMetadata, Node, NodeRef, Origin, OutputName,
    SavedInfo, SavedTensor,
};
use gradpact::contract::{Admission, GradContract, Refusal};
use gradpact::cpu::Array;
use gradpact::error::{GradientMismatch, GradientSender, Phase, Place, Side};
use gradpact::function::GivenInputs;
use gradpact::ops::{BinaryOp, CmpOp, ReduceOp, ScalarOp, UnaryOp};
use gradpact::optim::{Adam, AdamW, GradScaler, Optimizer, ScaledStep, Sgd};
use gradpact::prelude::*;
use gradpact::testing::{Accuracy, GivenInput, Gradcheck, GradcheckReport, Mismatch, Unresolved, Violation};
use gradpact::typed::{NoBackward, Written};
use gradpact::{Cpu, Generator, Gradients, List, Source, f8e4m3, f8e5m2, host};
use gradpact_tests::toy::Toy;

/// Holds for what may be sent and shared, if its parameters may.
const fn is_shared<T: ?Sized + Send + Sync>() {}

/// Checks each type while this is compiled, and lists their names.
macro_rules! shared {
    ($($name:ident: $type:ty),+ $(,)?) => {
        const _: () = { $(is_shared::<$type>();)+ };
        const SHARED: &[&str] = &[$(stringify!($name)),+];
    };
}

shared! {
    Accuracy: Accuracy,
    Adam: Adam,
    AdamW: AdamW,
    Admission: Admission,
    AnyGrad: AnyGrad,
    Array: Array,
    Audit: Audit,
    BackwardCall: BackwardCall<'_, Cpu>,
    BackwardOptions: BackwardOptions,
    BinaryOp: BinaryOp,
    Census: Census,
    CmpOp: CmpOp,
    Comparison: Comparison,
    Context: Context,
    Conversion: Conversion,
    Cpu: Cpu,
    Cut: Cut,
    DType: DType,
    Difference: Difference,
    DynTensor: DynTensor,
    Edge: Edge<Cpu>,
    Error: Error,
    Format: Format,
    Generator: Generator,
    Forward: host::Forward<Cpu>,
    GivenInput: GivenInput,
    GradContract: GradContract,
    GradDType: GradDType,
    GradScaler: GradScaler,
    GradcheckReport: GradcheckReport,
    GradientMismatch: GradientMismatch,
    GradientSender: GradientSender,
    Happened: Happened,
    HookHandle: HookHandle,
    InputMetadata: InputMetadata,
    Inputs: Inputs<'_>,
    Kept: host::Kept,
    List: List<DynTensor>,
    Mismatch: Mismatch,
    Narrowing: Narrowing,
    NoBackward: NoBackward,
    NoGrad: NoGrad,
    Node: Node<Cpu>,
    NodeInfo: NodeInfo,
    Optimizer: Optimizer<Adam>,
    Origin: Origin<Cpu>,
    Outcome: Outcome,
    OutputName: OutputName,
    Phase: Phase,
    Picture: Picture,
    Place: Place,
    Policy: Policy,
    ReduceOp: ReduceOp,
    Refusal: Refusal,
    RoundTrip: RoundTrip,
    Row: Row,
    SavedInfo: SavedInfo,
    SavedTensor: SavedTensor<Cpu>,
    ScalarOp: ScalarOp,
    ScaledStep: ScaledStep,
    Sgd: Sgd,
    Shape: Shape,
    Side: Side,
    Source: Source,
    Stage: Stage,
    Tensor: Tensor<f16, f32>,
    UnaryOp: UnaryOp,
    Unresolved: Unresolved,
    Untracked: Untracked,
    Violation: Violation,
    Written: Written,
    f8e4m3: f8e4m3,
    f8e5m2: f8e5m2,
    // Names for types of the list, and the same with another engine.
    Gradients: Gradients,
    GivenInputs: GivenInputs<'_, Cpu>,
    NodeRef: NodeRef<Cpu>,
    Outputs: Outputs,
    Value: Value<f16>,
    OfToyEngine: (DynTensor<Toy>, Tensor<f16, f32, Toy>, NodeRef<Toy>, Context<Toy>, SavedTensor<Toy>),
    StepsOfNodes: dyn BackwardStep<Cpu>,
}

/// Implemented once for every type, and once more for those that may be sent or shared: naming it is ambiguous for those.
trait StaysOnItsThread<Marker> {
    const HOLDS: bool = true;
}

impl<T: ?Sized> StaysOnItsThread<()> for T {}
struct MaySend;
impl<T: ?Sized + Send> StaysOnItsThread<MaySend> for T {}
struct MayShare;
impl<T: ?Sized + Sync> StaysOnItsThread<MayShare> for T {}

/// What restores the state of a thread when it is dropped must be dropped there; options that borrow a closure go where that
/// goes.
const STAYING: [&str; 3] = ["GradModeGuard", "Gradcheck", "Recorder"];
const _: () = assert!(
    <GradModeGuard as StaysOnItsThread<_>>::HOLDS
        && <Gradcheck<'_> as StaysOnItsThread<_>>::HOLDS
        && <Recorder as StaysOnItsThread<_>>::HOLDS
);

/// Public in a private module: nobody can name them.
const UNNAMEABLE: [&str; 5] = ["AccumulateGrad", "Absent", "IntoIter", "Setting", "Update"];

/// The structs, enums and unions that a file makes public; those that a macro names are in the list all the same.
fn public_types(text: &str) -> impl Iterator<Item = String> {
    let words = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        ["struct ", "enum ", "union "].iter().find_map(|kind| rest.strip_prefix(kind))
    });
    let names = words.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
    names.filter(|name: &String| !name.is_empty())
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).collect()
}

#[test]
fn every_public_type_says_whether_other_threads_may_have_it() {
    let runtime = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/src"));
    let texts = sources(runtime).into_iter().map(|file| std::fs::read_to_string(file).unwrap());
    let public: BTreeSet<String> = texts.flat_map(|text| public_types(&text).collect::<Vec<_>>()).collect();
    assert!(public.len() > 30, "the sources are read");
    let known: Vec<&str> = SHARED.iter().copied().chain(STAYING).chain(UNNAMEABLE).collect();
    let unknown: Vec<_> = public.iter().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "add to `shared!`, or to `STAYING` with an assertion: {unknown:?}");
}
