//! PyTorch as a contender: a Python process that takes its turns over a pipe.
//!
//! A request is a line of JSON, `{"case": …, …}`; the answer is `{"values": […]}` with one number for each metric, or
//! `{"error": …}`. What the cases are is written in `torch_peer.py`. Without a Python that has torch every answer is "not measured".

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;
use crate::measure::{Column, Contender};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/torch_peer.py");

/// How long torch's threads may go on looking for work after a turn, before the next one begins.
const REST: Duration = Duration::from_millis(10);

/// The Python process, if there is one.
#[derive(Clone, Debug)]
pub struct Torch(Result<Rc<RefCell<Process>>, String>);

#[derive(Debug)]
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Torch {
    /// Starts the Python named by `GRADPACT_PYTHON`, or `python3`, and asks it for torch.
    pub fn start() -> Self {
        let python = std::env::var("GRADPACT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let started = Process::start(&python).map_err(|error| format!("not measured ({error})"));
        Self(started.map(|process| Rc::new(RefCell::new(process))))
    }

    /// No Python at all.
    pub fn none() -> Self {
        Self(Err("not measured".to_owned()))
    }

    /// A contender whose turn is the answer to `request`.
    pub fn contender(&self, request: Value) -> Contender {
        let process = match &self.0 {
            Ok(process) => Rc::clone(process),
            Err(reason) => return Contender::absent(Column::PyTorch, reason),
        };
        Contender::new(Column::PyTorch, move || {
            let answer = process.borrow_mut().ask(&request)?;
            std::thread::sleep(REST);
            let values = answer["values"].as_array().ok_or_else(|| format!("no values in {answer}"))?;
            Ok(values.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect())
        })
    }

    /// Which torch it is, with how many threads.
    pub fn describe(&self) -> String {
        let asked = self
            .0
            .as_ref()
            .map_err(String::clone)
            .map(|process| process.borrow_mut().ask(&serde_json::json!({ "case": "version" })));
        match asked {
            Ok(Ok(answer)) => {
                format!("PyTorch {}", answer["version"].as_str().unwrap_or("of unknown version"))
            }
            Ok(Err(error)) => format!("PyTorch failed: {error}"),
            Err(reason) => format!("PyTorch {reason}"),
        }
    }
}

impl Process {
    fn start(python: &str) -> Outcome<Self> {
        let mut command = Command::new(python);
        command.arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Where the machine is busy otherwise, threads that spin while they wait make its turns a hundred times longer.
        if std::env::var_os("OMP_WAIT_POLICY").is_none() {
            command.env("OMP_WAIT_POLICY", "passive");
        }
        let mut child = command.spawn().map_err(|error| format!("`{python}`: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).ok_or("no pipes")?;
        let mut process = Self { child, stdin, stdout: BufReader::new(stdout) };
        process.ask(&serde_json::json!({ "case": "version" }))?;
        Ok(process)
    }

    fn ask(&mut self, request: &Value) -> Outcome<Value> {
        writeln!(self.stdin, "{request}")?;
        self.stdin.flush()?;
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err("the Python process has ended".into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned().into()),
            None => Ok(answer),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ours alone; it would also end by itself when its input does.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}
