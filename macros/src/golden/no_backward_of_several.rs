// #[autograd_function(out = (i64, f32, T), backward = none, crate = facade)]
#[cfg(unix)]
struct Sort<'a, T: Element, const N: usize>(
    &'a [T; N],
)
where
    T: Copy;
#[cfg(unix)]
#[automatically_derived]
impl<'a, T: Element, const N: usize> facade::__private::Contract for Sort<'a, T, N>
where
    T: Copy,
{
    type Outputs<__E: facade::__private::Engine> = (
        facade::__private::Tensor<facade::__private::i64, facade::__private::i64, __E>,
        facade::__private::Tensor<
            facade::__private::f32,
            facade::__private::NoGrad,
            __E,
        >,
        facade::__private::Tensor<T, facade::__private::NoGrad, __E>,
    );
    type Received<__E: facade::__private::Engine> = Self::Outputs<__E>;
    type Backward = facade::__private::NoBackward;
    fn record<__E: facade::__private::Graph>(
        self,
        __inputs: &facade::__private::GivenInputs<'_, __E>,
    ) -> facade::__private::Result<facade::__private::Outputs<__E>>
    where
        Self: facade::__private::Op<__E>,
    {
        facade::__private::apply_optional(self, __inputs)
    }
}
#[cfg(unix)]
#[automatically_derived]
impl<
    'a,
    T: Element,
    const N: usize,
    __E: facade::__private::Engine,
> facade::__private::Op<__E> for Sort<'a, T, N>
where
    T: Copy,
    Self: facade::__private::ForwardOnly<__E>,
{
    type Inputs = <Self as facade::__private::ForwardOnly<__E>>::Inputs;
    fn forward(
        &self,
        _: &mut facade::__private::Context<__E>,
        __inputs: <Self::Inputs as facade::__private::Tensors<__E>>::Values,
    ) -> facade::__private::Result<
        <Self::Outputs<__E> as facade::__private::Tensors<__E>>::Values,
    > {
        <Self as facade::__private::ForwardOnly<__E>>::forward(self, __inputs)
    }
    fn backward(
        &self,
        _: &facade::__private::Context<__E>,
        _: <Self::Received<__E> as facade::__private::Tensors<__E>>::Grads,
    ) -> facade::__private::Result<
        <Self::Inputs as facade::__private::Tensors<__E>>::Grads,
    > {
        facade::__private::no_backward("Sort")
    }
}
#[cfg(unix)]
#[automatically_derived]
impl<
    'a,
    T: Element,
    const N: usize,
    __E: facade::__private::Engine,
> facade::__private::Function<__E> for Sort<'a, T, N>
where
    T: Copy,
    Self: facade::__private::Op<__E>,
{
    fn name(&self) -> &'static facade::__private::str {
        "Sort"
    }
    fn forward(
        &self,
        __ctx: &mut facade::__private::Context<__E>,
        __inputs: &facade::__private::Inputs<'_, __E>,
    ) -> facade::__private::Result<facade::__private::Outputs<__E>> {
        <facade::__private::Context<_>>::mark_non_differentiable(__ctx, &[0, 1, 2]);
        facade::__private::forward(self, __ctx, __inputs)
    }
    fn backward(
        &self,
        __ctx: &facade::__private::Context<__E>,
        __grads: facade::__private::Gradients<__E>,
    ) -> facade::__private::Result<facade::__private::Gradients<__E>> {
        facade::__private::backward(self, __ctx, __grads)
    }
}
