// #[autograd_function(out = f16, materialize = false)]
struct Sparse;
#[automatically_derived]
impl ::gradpact::__private::Contract for Sparse {
    type Outputs<__E: ::gradpact::__private::Engine> = ::gradpact::__private::Tensor<
        ::gradpact::__private::f16,
        ::gradpact::__private::f16,
        __E,
    >;
    type Received<__E: ::gradpact::__private::Engine> = ::gradpact::__private::Option<
        ::gradpact::__private::Tensor<
            ::gradpact::__private::f16,
            ::gradpact::__private::f16,
            __E,
        >,
    >;
    type Backward = ::gradpact::__private::Written;
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
impl<__E: ::gradpact::__private::Engine> ::gradpact::__private::Function<__E> for Sparse
where
    Self: ::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "Sparse"
    }
    fn forward(
        &self,
        __ctx: &mut ::gradpact::__private::Context<__E>,
        __inputs: &::gradpact::__private::Inputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>> {
        <::gradpact::__private::Context<_>>::set_materialize_grads(__ctx, false);
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
