//! A program as code, for whoever reads a failed test.

use core::fmt;

use crate::program::{Custom, Factor, Formula, LeafGrad, Output, Pick, Program, Returned, Step};
use crate::reference::Reference;

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{{")?;
        for (variable, leaf) in self.leaves.iter().enumerate() {
            let tracked = match leaf.tracked {
                None => "constant".to_owned(),
                Some(LeafGrad::Default) => "leaf".to_owned(),
                Some(LeafGrad::Declared(grad_dtype)) => format!("leaf, gradient {grad_dtype}"),
            };
            writeln!(f, "    let v{variable} = {}{:?}; // {tracked}", leaf.dtype, leaf.values)?;
        }
        for step in 0..self.steps.len() {
            self.step(f, step)?;
        }
        let reference = Reference::new(self);
        let tracked = reference.tracked();
        for root in self.roots.iter().filter(|_| !tracked.is_empty()) {
            let at = tracked[root.at.of(tracked.len())];
            match &root.seed {
                None => writeln!(f, "    root v{at};")?,
                Some(seed) => {
                    let leaf = if seed.tracked { " // a leaf" } else { "" };
                    writeln!(f, "    root v{at}, seed {}{:?};{leaf}", seed.dtype, seed.values)?;
                }
            }
        }
        write!(f, "}}")
    }
}

impl Program {
    fn step(&self, f: &mut fmt::Formatter<'_>, step: usize) -> fmt::Result {
        let variables = self.variables_of(step);
        let name = |pick: Pick| format!("v{}", pick.of(variables.start));
        let names: Vec<_> = variables.clone().map(|variable| format!("v{variable}")).collect();
        let made = match &self.steps[step] {
            Step::Custom(custom) => {
                let given = |input: &Option<Pick>| input.map_or("_".to_owned(), name);
                let inputs: Vec<_> = custom.inputs.iter().map(given).collect();
                format!("F{step}({})", inputs.join(", "))
            }
            &Step::Add(a, b) => format!("{} + {}", name(a), name(b)),
            &Step::Mul(a, b) => format!("{} * {}", name(a), name(b)),
            &Step::Cast(x, dtype) => format!("{}.cast({dtype})", name(x)),
            &Step::Redeclare(x, grad_dtype) => format!("{}.with_grad_dtype({grad_dtype})", name(x)),
            &Step::Detach(x) => format!("{}.detach()", name(x)),
        };
        writeln!(f, "    let {} = {made};", names.join(", "))?;
        if let Step::Custom(custom) = &self.steps[step] { custom.listing(f) } else { Ok(()) }
    }
}

impl Custom {
    fn listing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outputs: Vec<_> = self.outputs.iter().map(|output| self.output(output)).collect();
        let formula = match self.formula {
            Formula::Values => "from values",
            Formula::Recorded(Factor::One) => "recorded",
            Formula::Recorded(Factor::Input) => "recorded, times the input",
            Formula::Recorded(Factor::Output) => "recorded, times the output",
        };
        let zeros = if self.materializes { "" } else { ", no zeros" };
        let saves = if self.saves() { ", saves" } else { "" };
        let too_many = if self.returns_too_many { ", one too many" } else { "" };
        let returns: Vec<_> = self.returns.iter().map(|returned| self.returned(returned)).collect();
        writeln!(f, "        // forward: {}{saves}", outputs.join("; "))?;
        writeln!(f, "        // backward, {formula}{zeros}: {}{too_many}", returns.join("; "))
    }

    fn output(&self, output: &Output) -> String {
        let values = if output.converts_input {
            "the first input".to_owned()
        } else {
            let squares = if self.formula == Formula::Recorded(Factor::Input) { "²" } else { "" };
            format!("{:?} · inputs{squares}", &output.weights[..self.inputs.len()])
        };
        let grad = match (output.differentiable, self.declares) {
            (false, _) => "not differentiable".to_owned(),
            (true, true) => format!("gradient {}", output.declared),
            (true, false) => "undeclared".to_owned(),
        };
        format!("{} = {values}, {grad}", output.dtype)
    }

    fn returned(&self, returned: &Returned) -> String {
        let Some(dtype) = returned.dtype else { return "none".to_owned() };
        let through = match (returned.through, self.formula) {
            (Some(through), Formula::Recorded(_)) => format!(" through a Function, gradient {through}"),
            _ => String::new(),
        };
        format!("{dtype} = {:?} · gradients{through}", &returned.weights[..self.outputs.len()])
    }
}
