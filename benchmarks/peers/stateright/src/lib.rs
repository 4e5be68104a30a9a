//! What all models share: how they are run, and how what was found is told.

use stateright::{Checker, Model};
use std::hash::Hash;
use std::time::Instant;

/// Explores a model, breadth first, on so many threads as the first argument says; prints what it found as JSON.
pub fn explore<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + 'static,
{
    let threads = std::env::args().nth(1).map_or(1, |text| text.parse().expect("a number of threads"));
    let began = Instant::now();
    let found = model.checker().threads(threads).spawn_bfs().join();
    let seconds = began.elapsed().as_secs_f64();
    let broken: Vec<_> = found.discoveries().into_keys().collect();
    println!(
        "{{\"seconds\": {seconds}, \"states\": {}, \"generated\": {}, \"broken\": {}}}",
        found.unique_state_count(), found.state_count(), broken.len()
    );
}
