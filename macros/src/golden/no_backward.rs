// #[autograd_function(out = f16, backward = none)]
struct Sign;
#[automatically_derived]
impl ::gradpact::__private::Contract for Sign {
    type Outputs<__E: ::gradpact::__private::Engine> = ::gradpact::__private::Tensor<
        ::gradpact::__private::f16,
        ::gradpact::__private::NoGrad,
        __E,
    >;
    type Received<__E: ::gradpact::__private::Engine> = Self::Outputs<__E>;
    type Backward = ::gradpact::__private::NoBackward;
    fn record<__E: ::gradpact::__private::Graph>(
        self,
        __inputs: &::gradpact::__private::GivenInputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>>
    where
        Self: ::gradpact::__private::Op<__E>,
    {
        ::gradpact::__private::apply_optional(self, __inputs)
    }
}
#[automatically_derived]
impl<__E: ::gradpact::__private::Engine> ::gradpact::__private::Op<__E> for Sign
where
    Self: ::gradpact::__private::ForwardOnly<__E>,
{
    type Inputs = <Self as ::gradpact::__private::ForwardOnly<__E>>::Inputs;
    fn forward(
        &self,
        _: &mut ::gradpact::__private::Context<__E>,
        __inputs: <Self::Inputs as ::gradpact::__private::Tensors<__E>>::Values,
    ) -> ::gradpact::__private::Result<
        <Self::Outputs<__E> as ::gradpact::__private::Tensors<__E>>::Values,
    > {
        <Self as ::gradpact::__private::ForwardOnly<__E>>::forward(self, __inputs)
    }
    fn backward(
        &self,
        _: &::gradpact::__private::Context<__E>,
        _: <Self::Received<__E> as ::gradpact::__private::Tensors<__E>>::Grads,
    ) -> ::gradpact::__private::Result<
        <Self::Inputs as ::gradpact::__private::Tensors<__E>>::Grads,
    > {
        ::gradpact::__private::no_backward("Sign")
    }
}
#[automatically_derived]
impl<__E: ::gradpact::__private::Engine> ::gradpact::__private::Function<__E> for Sign
where
    Self: ::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "Sign"
    }
    fn forward(
        &self,
        __ctx: &mut ::gradpact::__private::Context<__E>,
        __inputs: &::gradpact::__private::Inputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>> {
        <::gradpact::__private::Context<_>>::mark_non_differentiable(__ctx, &[0]);
        ::gradpact::__private::forward(self, __ctx, __inputs)
    }
    fn backward(
        &self,
        __ctx: &::gradpact::__private::Context<__E>,
        __grads: ::gradpact::__private::Gradients<__E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Gradients<__E>> {
        ::gradpact::__private::backward(self, __ctx, __grads)
    }
}
