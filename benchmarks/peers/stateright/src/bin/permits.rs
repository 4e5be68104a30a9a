//! `spec/permits.py` within its wide bound, for Stateright: the same states, and all invariants.
//!
//! Stateright has no properties of steps, so it checks less. `permits THREADS` prints what it found as JSON.

use peers::explore;
use stateright::{Model, Property};

const REQUESTS: usize = 5; // numbers 0 to 4

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    permits: i8,
    timeout: i8,
    clock: i8,
    window: i8,
    held: i8,
    unanswered: i8,
    waiting: i8,
    stuck: i8,
    cuts: i8,
    taken: [i8; REQUESTS],
    returned: [i8; REQUESTS],
    answers: [i8; REQUESTS],
    since: [i8; REQUESTS],
    waits: [i8; REQUESTS],
}

const INITIAL: State = State {
    permits: 0, timeout: 0, clock: 0, window: 0, held: 0, unanswered: 0, waiting: 0, stuck: 0, cuts: 0,
    taken: [0; REQUESTS], returned: [0; REQUESTS], answers: [0; REQUESTS], since: [0; REQUESTS], waits: [0; REQUESTS],
};

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Open(i8, i8),
    Tick(i8),
    Wait(usize),
    Acquire(usize),
    Reply(usize),
    TimeOut(usize),
    LateReply(usize),
    Disconnect,
    Rest(bool),
}

struct Permits;

fn mine(s: &State, n: usize) -> i8 {
    i8::from(0 < s.timeout && s.window <= s.since[n])
}

fn every(s: &State, holds: impl Fn(&State, usize) -> bool) -> bool {
    (0..REQUESTS).all(|n| holds(s, n))
}

fn always(name: &'static str, holds: fn(&Permits, &State) -> bool) -> Property<Permits> {
    Property::always(name, holds)
}

impl Model for Permits {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![INITIAL]
    }

    fn actions(&self, _: &State, steps: &mut Vec<Step>) {
        for permits in [0, 2] {
            for timeout in [0, 2] {
                steps.push(Step::Open(permits, timeout));
            }
        }
        steps.extend((0..5).map(Step::Tick));
        steps.extend((0..REQUESTS).map(Step::Wait));
        steps.extend((0..REQUESTS).map(Step::Acquire));
        steps.extend((0..REQUESTS).map(Step::Reply));
        steps.extend((0..REQUESTS).map(Step::TimeOut));
        steps.extend((0..REQUESTS).map(Step::LateReply));
        steps.push(Step::Disconnect);
        steps.extend([true, false].map(Step::Rest));
    }

    fn next_state(&self, s: &State, step: Step) -> Option<State> {
        let allowed = match step {
            Step::Open(permits, _) => s.permits == 0 && 0 < permits,
            Step::Tick(time) => s.clock <= time,
            Step::Wait(n) => s.waits[n] == 0 && s.taken[n] == 0,
            Step::Acquire(n) => s.held < s.permits && s.taken[n] == 0,
            Step::Reply(n) => {
                s.returned[n] < s.taken[n] && mine(s, n) <= s.unanswered && s.unanswered - mine(s, n) < s.held
            }
            Step::TimeOut(n) => s.returned[n] < s.taken[n] && 0 < s.held && s.timeout <= s.clock - s.since[n],
            Step::LateReply(n) => 0 < s.taken[n] && s.returned[n] == s.taken[n],
            Step::Disconnect => true,
            Step::Rest(_) => s.waiting == 0 || s.permits <= s.held,
        };
        if !allowed {
            return None;
        }
        let mut t = s.clone();
        match step {
            Step::Open(permits, timeout) => (t.permits, t.timeout) = (permits, timeout),
            Step::Tick(time) => {
                t.clock = time;
                if s.timeout <= time - s.window {
                    (t.window, t.unanswered) = (time, 0);
                }
            }
            Step::Wait(n) => {
                t.waiting += 1;
                t.waits[n] += 1;
            }
            Step::Acquire(n) => {
                t.held += 1;
                t.unanswered += i8::from(0 < s.timeout);
                t.waiting -= s.waits[n];
                t.taken[n] += 1;
                t.since[n] = s.clock;
                t.waits[n] = 0;
            }
            Step::Reply(n) => {
                t.held -= 1;
                t.unanswered -= mine(s, n);
                t.returned[n] += 1;
                t.answers[n] += 1;
            }
            Step::TimeOut(n) => {
                t.held -= 1;
                t.unanswered = s.unanswered.min(t.held);
                t.returned[n] += 1;
            }
            Step::LateReply(n) => t.answers[n] += 1,
            Step::Disconnect => t.cuts += 1,
            Step::Rest(_) => t.stuck = if s.held < s.permits { s.waiting } else { 0 },
        }
        Some(t)
    }

    fn within_boundary(&self, s: &State) -> bool {
        s.clock <= 3 && s.cuts <= 1 && s.answers.iter().all(|&n| n <= 1) && (s.permits == 2 || *s == INITIAL)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            always("no more requests are out than permits", |_, s| s.held <= s.permits),
            always("silence is not answered with a storm", |_, s| 0 <= s.unanswered && s.unanswered <= s.held),
            always("a permit is given back once", |_, s| {
                every(s, |s, n| 0 <= s.returned[n] && s.returned[n] <= s.taken[n] && s.taken[n] <= 1)
            }),
            always("an answered request holds no permit", |_, s| {
                every(s, |s, n| s.answers[n] <= 0 || (0 < s.taken[n] && s.returned[n] == s.taken[n]))
            }),
            always("who waits holds none", |_, s| every(s, |s, n| 0 <= s.waits[n] && s.waits[n] + s.taken[n] <= 1)),
            always("nothing is in the future", |_, s| every(s, |s, n| s.window <= s.clock && s.since[n] <= s.clock)),
            always("nobody waits for a free permit", |_, s| s.stuck == 0),
            always("a stretch is no longer than the timeout", |_, s| {
                let within = if 0 < s.timeout { s.clock - s.window < s.timeout } else { s.clock == s.window };
                within && (s.permits != 0 || s.timeout == 0)
            }),
        ]
    }
}

fn main() {
    explore(Permits);
}
