//! Pins the expansion of every legal form. Update the files with `UPDATE_EXPECT=1` and read the difference.

use expect_test::{ExpectFile, expect_file};

use crate::attribute;

fn assert_expands(arguments: &str, item: &str, expected: &ExpectFile) {
    let tokens = attribute(
        arguments.parse().expect("the arguments are tokens"),
        item.parse().expect("the item is tokens"),
    );
    let file = syn::parse2(tokens).expect("the expansion is items");
    expected.assert_eq(&format!("// #[autograd_function({arguments})]\n{}", prettyplease::unparse(&file)));
}

macro_rules! golden {
    ($($name:ident: ($arguments:literal) $item:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_expands($arguments, $item, &expect_file![concat!("golden/", stringify!($name), ".rs")]);
        }
    )*};
}

golden! {
    unit: ("out = f16, grad = f32") "/// Documented.\n#[derive(Clone)] pub struct Silu;";
    default_gradient: ("out = bf16") "struct Scale { factor: f64 }";
    tuple_struct: ("out = f32, grad = f64") "struct Clamp(f64, #[cfg(any())] f64);";
    generics: ("out = f16, grad = f32")
        "struct Map<'a, T: Clone + 'a = u8, const N: usize = 2>(&'a [T; N]) where T: Copy, [T; { N + 1 }]: Sized;";
    type_parameter: ("out = T, grad = G") "struct Quantize<T, G> where T: Element, G: Element { scale: T }";
    taken_name: ("out = f16, grad = none") "struct Named<__E> where __E: Into<__E_> { field: __E }";
    tuple_of_outputs: ("out = (f16, i64, bf16, f8e4m3), grad = (f32, none, any, none)") "struct TopK { k: usize }";
    tuple_of_one: ("out = (f16,), grad = (f32,)") "struct One;";
    any: ("out = f16, grad = any") "struct PassThrough;";
    no_gradient: ("out = f64, grad = none") "struct Detach;";
    integer: ("out = i64") "struct ArgMax;";
    straight_through: ("out = i8, grad = f32") "struct FakeQuantize;";
    strict: ("out = f16, grad = f32, policy = strict") "struct Exact;";
    undeclared_cast: ("out = f16, policy = cast, materialize = true") "struct Rounded;";
    optional_gradient: ("out = f16, materialize = false") "struct Sparse;";
    optional_gradients: ("out = (f16, i64, T, bf16), grad = (f32, none, any, none), materialize = false")
        "struct TopK<T: Element>(T);";
    once: ("out = f16, once, grad = f32") "struct Kernel;";
    all_keys: ("once, materialize = false, policy = strict, grad = f32, out = f16, crate = facade") "struct All;";
    no_backward: ("out = f16, backward = none") "struct Sign;";
    no_backward_of_several: ("out = (i64, f32, T), backward = none, crate = facade")
        "#[cfg(unix)] struct Sort<'a, T: Element, const N: usize>(&'a [T; N]) where T: Copy;";
    crate_path: ("out = f16, grad = f32, crate = facade::gradpact,") "struct Renamed;";
    conditional: ("out = f16") "#[cfg(feature = \"gpu\")] #[cfg_attr(unix, cfg(test), repr(C))] #[deprecated] struct Gpu;";
    raw_identifier: ("out = f16") "struct r#type;";
}
