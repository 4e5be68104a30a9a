//! `spec/dispatch.py` with 8 or 10 messages (its wide bound), for Stateright: the same states, and all invariants.
//!
//! Stateright has no properties of steps, so it checks less. `dispatch THREADS MESSAGES` prints what it found as JSON.

use peers::explore;
use stateright::{Model, Property};

const NOBODY: i8 = -1;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<const KEYS: usize> {
    lives: i8,
    overlap: i8,
    start: i8,
    flushed: i8,
    committed: i8,
    scanned: i8,
    at: i8,
    taken: [i8; KEYS],
    bits: [i8; KEYS],
    written: [i8; KEYS],
}

fn initial<const KEYS: usize>() -> State<KEYS> {
    State {
        lives: 0, overlap: 0, start: 0, flushed: 0, committed: 0, scanned: 0, at: NOBODY,
        taken: [0; KEYS], bits: [0; KEYS], written: [0; KEYS],
    }
}

fn key(n: i8) -> usize {
    (n + 1) as usize
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Open(i8, i8),
    Scan(i8),
    Take(i8),
    Write(i8),
    Commit(i8),
    Flush(i8),
    Crash(i8),
}

/// Numbers go from -1 on: those of the messages, and three more that are tried.
struct Dispatch<const KEYS: usize>;

fn all_written<const KEYS: usize>(s: &State<KEYS>, low: i8, high: i8) -> bool {
    (low..high).all(|n| s.bits[key(n)] == 1)
}

fn every<const KEYS: usize>(s: &State<KEYS>, holds: impl Fn(&State<KEYS>, i8) -> bool) -> bool {
    (0..KEYS as i8 - 2).all(|n| holds(s, n))
}

fn always<const KEYS: usize>(
    name: &'static str, holds: fn(&Dispatch<KEYS>, &State<KEYS>) -> bool,
) -> Property<Dispatch<KEYS>> {
    Property::always(name, holds)
}

impl<const KEYS: usize> Model for Dispatch<KEYS> {
    type State = State<KEYS>;
    type Action = Step;

    fn init_states(&self) -> Vec<State<KEYS>> {
        vec![initial()]
    }

    fn actions(&self, _: &State<KEYS>, steps: &mut Vec<Step>) {
        let numbers = KEYS as i8 - 2;
        for number in [-1, 1] {
            for overlap in [1, 0] {
                steps.push(Step::Open(number, overlap));
            }
        }
        steps.extend((0..numbers).map(Step::Scan));
        steps.extend((0..numbers).map(Step::Take));
        steps.extend((0..numbers).map(Step::Write));
        steps.extend((0..numbers + 1).map(Step::Commit));
        steps.extend((0..numbers + 1).map(Step::Flush));
        steps.extend((0..numbers + 1).map(Step::Crash));
    }

    fn next_state(&self, s: &State<KEYS>, step: Step) -> Option<State<KEYS>> {
        let allowed = match step {
            Step::Open(number, _) => s.lives == 0 && s.scanned == 0 && 0 <= number,
            Step::Scan(number) => number == s.scanned,
            Step::Take(n) => {
                s.committed <= n && n < s.scanned && s.taken[key(n)] == 0 && (s.overlap > 0 || s.at == NOBODY)
            }
            Step::Write(n) => s.taken[key(n)] == 1 && s.bits[key(n)] == 0,
            Step::Commit(to) => s.committed <= to && all_written(s, s.committed, to) && s.bits[key(to)] == 0,
            Step::Flush(to) => s.flushed <= to && to <= s.committed,
            Step::Crash(kept) => s.flushed <= kept && all_written(s, s.committed, kept),
        };
        if !allowed {
            return None;
        }
        let mut t = s.clone();
        match step {
            Step::Open(n, overlap) => {
                t.lives = 1;
                t.overlap = overlap;
                (t.start, t.flushed, t.committed, t.scanned) = (n, n, n, n);
            }
            Step::Scan(n) => t.scanned = n + 1,
            Step::Take(n) => {
                t.at = n;
                t.taken[key(n)] += 1;
            }
            Step::Write(n) => {
                t.at = NOBODY;
                t.bits[key(n)] = 1;
                t.written[key(n)] += 1;
            }
            Step::Commit(to) => t.committed = to,
            Step::Flush(to) => t.flushed = to,
            Step::Crash(kept) => {
                t.lives += 1;
                (t.flushed, t.committed, t.scanned, t.at) = (kept, kept, kept, NOBODY);
                for place in key(kept)..KEYS {
                    (t.taken[place], t.bits[place], t.written[place]) = (0, 0, 0);
                }
            }
        }
        Some(t)
    }

    fn within_boundary(&self, s: &State<KEYS>) -> bool {
        s.scanned <= KEYS as i8 - 3 && s.lives <= 3 && (s.start == 1 || *s == initial())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            always("positions are ordered", |_, s| {
                0 <= s.start && s.start <= s.flushed && s.flushed <= s.committed && s.committed <= s.scanned
            }),
            always("lives are counted", |_, s| 0 <= s.lives),
            always("the commit position never passes a gap", |_, s| {
                every(s, |s, n| !(s.start <= n && n < s.committed) || s.written[key(n)] == 1)
            }),
            always("every entry is written once", |_, s| {
                every(s, |s, n| 0 <= s.written[key(n)] && s.written[key(n)] <= 1)
            }),
            always("the bitmap tells what is written", |_, s| every(s, |s, n| s.bits[key(n)] == s.written[key(n)])),
            always("what is written was taken once", |_, s| {
                every(s, |s, n| {
                    let taken = s.taken[key(n)];
                    0 <= taken && taken <= 1 && s.written[key(n)] <= taken
                })
            }),
            always("what is taken was given", |_, s| {
                every(s, |s, n| s.taken[key(n)] <= 0 || (s.start <= n && n < s.scanned))
            }),
            always("one worker is at the queue unless they may overlap", |_, s| {
                every(s, |s, n| !(s.overlap <= 0 && s.taken[key(n)] > s.written[key(n)]) || s.at == n)
            }),
            always("who is at the queue has an entry to write", |_, s| {
                s.at == NOBODY || (s.taken[key(s.at)] == 1 && s.written[key(s.at)] == 0)
            }),
        ]
    }
}

fn main() {
    match std::env::args().nth(2).as_deref() {
        Some("8") => explore(Dispatch::<12>),
        Some("10") => explore(Dispatch::<14>),
        _ => panic!("8 or 10 messages"),
    }
}
