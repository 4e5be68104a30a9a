//! `examples/protocols/two_phase_commit.py` with any number of managers, for Stateright: the same states and properties.
//!
//! `two_phase_commit THREADS MANAGERS` prints what it found as JSON.

use peers::explore;
use stateright::{Model, Property};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Working,
    Prepared,
    Committed,
    Aborted,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    stage: Vec<Stage>,
    promised: Vec<bool>,
    received: Vec<bool>,
    outcome: Stage,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Prepare(usize),
    GiveUp(usize),
    Receive(usize),
    Commit,
    Abort,
    Learn(usize),
}

struct TwoPhaseCommit {
    managers: usize,
}

fn always(name: &'static str, holds: fn(&TwoPhaseCommit, &State) -> bool) -> Property<TwoPhaseCommit> {
    Property::always(name, holds)
}

fn every(s: &State, holds: impl Fn(usize) -> bool) -> bool {
    (0..s.stage.len()).all(holds)
}

impl Model for TwoPhaseCommit {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let (stage, no) = (vec![Stage::Working; self.managers], vec![false; self.managers]);
        vec![State { stage, promised: no.clone(), received: no, outcome: Stage::Working }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        let open = s.outcome == Stage::Working;
        for m in 0..self.managers {
            if s.stage[m] == Stage::Working {
                steps.extend([Step::Prepare(m), Step::GiveUp(m)]);
            }
            if open && s.promised[m] {
                steps.push(Step::Receive(m));
            }
            if !open {
                steps.push(Step::Learn(m));
            }
        }
        if open {
            steps.push(Step::Abort);
            if s.received.iter().all(|&received| received) {
                steps.push(Step::Commit);
            }
        }
    }

    fn next_state(&self, s: &State, step: Step) -> Option<State> {
        let mut t = s.clone();
        match step {
            Step::Prepare(m) => (t.stage[m], t.promised[m]) = (Stage::Prepared, true),
            Step::GiveUp(m) => t.stage[m] = Stage::Aborted,
            Step::Receive(m) => t.received[m] = true,
            Step::Commit => t.outcome = Stage::Committed,
            Step::Abort => t.outcome = Stage::Aborted,
            Step::Learn(m) => t.stage[m] = s.outcome,
        }
        Some(t)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            always("no two outcomes", |_, s| {
                !(s.stage.contains(&Stage::Committed) && s.stage.contains(&Stage::Aborted))
            }),
            always("a manager that works has promised nothing", |_, s| {
                every(s, |m| !(s.stage[m] == Stage::Working && s.promised[m]))
            }),
            always("what was received was promised", |_, s| every(s, |m| !s.received[m] || s.promised[m])),
            always("managers commit what was decided", |_, s| {
                every(s, |m| s.stage[m] != Stage::Committed || s.outcome == Stage::Committed)
            }),
            always("a promise is broken only by the outcome", |_, s| {
                every(s, |m| !(s.stage[m] == Stage::Aborted && s.promised[m]) || s.outcome == Stage::Aborted)
            }),
            always("who commits has all promises", |_, s| s.outcome != Stage::Committed || every(s, |m| s.received[m])),
            always("the coordinator is never prepared", |_, s| s.outcome != Stage::Prepared),
        ]
    }
}

fn main() {
    let managers = std::env::args().nth(2).map_or(7, |text| text.parse().expect("a number of managers"));
    explore(TwoPhaseCommit { managers });
}
