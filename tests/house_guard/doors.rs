//! That nothing in `src/cuda` reaches the driver before it is known to be there: cudarc panics where it is not.
//!
//! The question is asked in one function. Some types can only be had from cudarc: those that hide something of it, or such a
//! type again. Whoever has a value of one is behind the question already; so are functions that are given one. All others
//! that can be called from outside of the module are its **doors**, and the first step of each towards the driver has to be
//! the question, be it through other functions.
//!
//! This is why `src/cuda` shows nothing of cudarc to the rest of the crate, which is checked as well.

use std::collections::BTreeSet;
use std::path::Path;

use super::functions::{self, Function, Module, Reach, Step, Types};

const FOLDER: &str = "src/cuda";

/// Where a function's steps lead first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Nowhere,
    Question,
    Driver,
}

struct Doors<'a> {
    module: &'a Module,
    /// Types of which there is no value without the driver.
    proof: BTreeSet<&'a str>,
}

impl<'a> Doors<'a> {
    fn new(module: &'a Module) -> Self {
        let mut doors = Self {
            module,
            proof: BTreeSet::new(),
        };
        // One type may be a proof because of another.
        loop {
            let known = doors.proof.len();
            let proofs = module.structures.iter();
            let proofs = proofs.filter(|structure| doors.is_proof(&structure.hides));
            let proofs: Vec<_> = proofs.map(|structure| structure.name.as_str()).collect();
            doors.proof.extend(proofs);
            if doors.proof.len() == known {
                return doors;
            }
        }
    }

    fn is_proof(&self, types: &Types) -> bool {
        types.foreign || types.names.iter().any(|name| self.proof.contains(name.as_str()))
    }

    /// Whether `function` can be called by somebody who has nothing of the driver's.
    fn is_door(&self, function: &Function) -> bool {
        let structures = || self.module.structures.iter();
        let hidden =
            |owner: &String| structures().any(|structure| structure.name == *owner && !structure.public);
        let reached = match function.reach {
            Reach::Module => false,
            Reach::Crate => true,
            Reach::Type => !function.owner.as_ref().is_some_and(hidden),
        };
        reached && !self.is_proof(&function.takes)
    }

    /// `behind`: the functions whose steps lead here.
    fn first(&self, function: &'a Function, behind: &mut Vec<&'a Function>) -> First {
        if behind.iter().any(|before| std::ptr::eq(*before, function)) {
            return First::Nowhere;
        }
        behind.push(function);
        let steps = function.steps.iter();
        let first = steps
            .map(|step| self.leads(step, behind))
            .find(|first| *first != First::Nowhere);
        behind.pop();
        first.unwrap_or(First::Nowhere)
    }

    fn leads(&self, step: &Step, behind: &mut Vec<&'a Function>) -> First {
        let called = |function: &Function| match step {
            Step::Function(owner, name) => function.owner == *owner && function.name == *name,
            Step::Method(name) => function.method && function.name == *name,
            Step::Ask(_) | Step::Driver => false,
        };
        match step {
            Step::Ask(_) => First::Question,
            Step::Driver => First::Driver,
            Step::Function(..) | Step::Method(_) => {
                let functions = self.module.functions.iter();
                let functions =
                    functions.filter(|function| called(function) && !self.is_proof(&function.takes));
                let firsts: Vec<_> = functions.map(|function| self.first(function, behind)).collect();
                [First::Driver, First::Question]
                    .into_iter()
                    .find(|first| firsts.contains(first))
                    .unwrap_or(First::Nowhere)
            }
        }
    }
}

fn title(function: &Function) -> String {
    let owner = function.owner.iter().map(|owner| format!("{owner}::"));
    owner.chain([function.name.clone()]).collect()
}

/// The doors, for a test to show that they are found.
pub fn doors(root: &Path) -> Vec<String> {
    let module = functions::module(root, FOLDER);
    let doors = Doors::new(&module);
    let all = module.functions.iter().filter(|function| doors.is_door(function));
    all.filter(|function| doors.first(function, &mut Vec::new()) != First::Nowhere)
        .map(title)
        .collect()
}

/// What is wrong with `src/cuda` below `root`.
pub fn findings(root: &Path) -> Vec<String> {
    let module = functions::module(root, FOLDER);
    let mut findings = module.faults.clone();

    let asks = module.functions.iter().flat_map(|function| {
        let lines = function.steps.iter().filter_map(|step| match step {
            Step::Ask(line) => Some(line),
            _ => None,
        });
        let file = function.place.rsplit_once(':').unwrap().0;
        lines.map(move |line| format!("{file}:{line}"))
    });
    let asks: Vec<_> = asks.collect();
    if asks.len() != 1 {
        findings.push(format!(
            "{FOLDER}: is_culib_present is asked in {} places ({}), not in one: call the function that asks",
            asks.len(),
            asks.join(", ")
        ));
    }

    let doors = Doors::new(&module);
    for function in &module.functions {
        if doors.is_door(function) && doors.first(function, &mut Vec::new()) == First::Driver {
            findings.push(format!(
                "{}: {} reaches the driver before is_culib_present was asked: it panics where there is no driver",
                function.place,
                title(function)
            ));
        }
    }
    for (place, name) in &module.leaks {
        findings.push(format!(
            "{place}: `{name}` shows something of cudarc outside of {FOLDER}: give it a type of our own"
        ));
    }
    findings
}
