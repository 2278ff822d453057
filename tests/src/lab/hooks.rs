//! Hooks on a run: they write down what they are given, and replace it as the plan says.

use std::sync::{Arc, OnceLock};

use gradpact::autograd::HookHandle;
use gradpact::{DynTensor, Gradients, Result};

use super::{Lab, Run, Shared, seen};
use crate::log::{Entry, Who};
use crate::plan::{Hook, HookKind, Life};

/// What a registered hook knows.
#[derive(Clone)]
struct Registered {
    number: usize,
    hook: Hook,
    shared: Arc<Shared>,
    /// How it takes itself away.
    handle: Arc<OnceLock<HookHandle>>,
}

impl Registered {
    /// Writes down what the hook was given, and removes it if it is to run once.
    fn ran<'g, E: Lab>(&self, grads: impl Iterator<Item = Option<&'g DynTensor<E>>>) -> Result<()> {
        let saw = grads.map(seen).collect::<Result<_>>()?;
        self.shared.write(Entry { who: Who::Hook(self.number), saw, needs: vec![] });
        if let (Life::Once, Some(handle)) = (self.hook.life, self.handle.get()) {
            handle.remove();
        }
        Ok(())
    }

    fn replace<E: Lab>(&self, grad: &DynTensor<E>) -> Result<Option<DynTensor<E>>> {
        let Some(factor) = self.hook.replaces else { return Ok(None) };
        let factor = E::tensor(grad.dtype(), &vec![factor; self.shared.program.length])?;
        E::mul(grad, &factor).map(Some)
    }

    fn replace_all<E: Lab>(&self, grads: &Gradients<E>) -> Result<Option<Gradients<E>>> {
        if self.hook.replaces.is_none() {
            return Ok(None);
        }
        let replace = |grad: &Option<DynTensor<E>>| match grad {
            Some(grad) => self.replace(grad),
            None => Ok(None),
        };
        grads.iter().map(replace).collect::<Result<_>>().map(Some)
    }
}

impl<E: Lab> Run<E> {
    /// Registers hooks, and removes again those that are not to run.
    ///
    /// # Errors
    /// The engine's.
    pub fn register(&self, hooks: &[Hook]) -> Result<()> {
        let tracked = |among: &[DynTensor<E>]| -> Vec<DynTensor<E>> {
            among.iter().filter(|tensor| tensor.requires_grad()).cloned().collect()
        };
        for (number, &hook) in hooks.iter().enumerate() {
            let leaves = hook.kind == HookKind::Accumulated;
            let among = tracked(if leaves { self.leaves() } else { &self.variables });
            if among.is_empty() {
                continue;
            }
            let (shared, handle) = (Arc::clone(&self.shared), Arc::default());
            let registered = Registered { number, hook, shared, handle };
            let own = Arc::clone(&registered.handle);
            let Some(handle) = register(registered, &among[hook.at.of(among.len())])? else { continue };
            if hook.life == Life::Removed {
                handle.remove();
            }
            own.get_or_init(|| handle);
        }
        Ok(())
    }
}

fn register<E: Lab>(hook: Registered, tensor: &DynTensor<E>) -> Result<Option<HookHandle>> {
    let Some(node) = tensor.grad_fn() else { return Ok(None) };
    Ok(Some(match hook.hook.kind {
        HookKind::Tensor => tensor.register_hook(move |grad| {
            hook.ran([Some(grad)].into_iter())?;
            hook.replace(grad)
        })?,
        HookKind::Before => node.register_prehook(move |grads| {
            hook.ran(grads.iter().map(Option::as_ref))?;
            hook.replace_all(grads)
        }),
        HookKind::After => node.register_hook(move |grad_inputs, grad_outputs| {
            hook.ran(grad_inputs.iter().chain(grad_outputs.iter()).map(Option::as_ref))?;
            hook.replace_all(grad_inputs)
        }),
        HookKind::Accumulated => tensor
            .register_post_accumulate_grad_hook(move |leaf| hook.ran([leaf.grad().as_ref()].into_iter()))?,
        HookKind::Retain => {
            tensor.retain_grad()?;
            return Ok(None);
        }
    }))
}
