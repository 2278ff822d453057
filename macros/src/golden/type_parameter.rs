// #[autograd_function(out = T, grad = G)]
struct Quantize<T, G>
where
    T: Element,
    G: Element,
{
    scale: T,
}
#[automatically_derived]
impl<T, G> ::gradpact::__private::Contract for Quantize<T, G>
where
    T: Element,
    G: Element,
    G: ::gradpact::__private::Element,
{
    type Outputs<__E: ::gradpact::__private::Engine> = ::gradpact::__private::Tensor<
        T,
        G,
        __E,
    >;
    type Received<__E: ::gradpact::__private::Engine> = Self::Outputs<__E>;
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
impl<T, G, __E: ::gradpact::__private::Engine> ::gradpact::__private::Function<__E>
for Quantize<T, G>
where
    T: Element,
    G: Element,
    G: ::gradpact::__private::Element,
    Self: ::gradpact::__private::Op<__E>,
{
    fn name(&self) -> &'static ::gradpact::__private::str {
        "Quantize"
    }
    fn forward(
        &self,
        __ctx: &mut ::gradpact::__private::Context<__E>,
        __inputs: &::gradpact::__private::Inputs<'_, __E>,
    ) -> ::gradpact::__private::Result<::gradpact::__private::Outputs<__E>> {
        <::gradpact::__private::Context<
            _,
        >>::set_output_grad_dtype(
            __ctx,
            &[
                ::gradpact::__private::GradDType::Exactly(
                    <G as ::gradpact::__private::Element>::DTYPE,
                ),
            ],
        )?;
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
