package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// player performs the steps of one run on a broker, in the place of its workers.
type player struct {
	trace    string
	folder   string
	recorder *Recorder
	fault    string
	broker   *Broker
	queue    *Queue
	workers  int   // that may be at the queue at once
	waiting  []job // that no worker has
	taken    []job // that a worker has
	last     int   // the number that was written last
}

// perform reads the runs that `gapless generate dispatch` has made, performs them, and records what the broker does.
func perform(runs, out, fault string) error {
	file, err := os.Open(runs)
	if err != nil {
		return err
	}
	defer file.Close()
	folder, err := os.MkdirTemp("", "broker-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	recorder, err := NewRecorder(out)
	if err != nil {
		return err
	}
	players := map[string]*player{}
	lines := bufio.NewScanner(file)
	lines.Scan() // the first line says what the file is
	for lines.Scan() {
		var step event
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			return err
		}
		p, known := players[step.Trace]
		if !known {
			p = &player{trace: step.Trace, folder: filepath.Join(folder, step.Trace), recorder: recorder, fault: fault, last: -1}
			players[step.Trace] = p
		}
		if step.Action == "crash" {
			players[step.Trace] = nil // this broker has no way back from a crash: the rest of the run is left out
		}
		if players[step.Trace] != nil && !p.step(step.Action, step.Args) {
			recorder.Step(step.Trace, step.Action, step.Args, "refused", nil)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return recorder.Close()
}

// step performs a step, which the broker records with the numbers that it chooses itself; false where it refuses.
func (p *player) step(action string, args Fields) bool {
	if action == "open" || p.broker == nil {
		return action == "open" && p.open(args["number"], args["overlap"] == 1)
	}
	number := args["number"]
	switch action {
	case "scan":
		if number != p.queue.scanned {
			return false // the broker gives the numbers
		}
		_, err := p.broker.Send(0, []byte("a message"))
		must(err)
	case "take":
		p.gather()
		at := index(p.waiting, number)
		if at < 0 || len(p.taken) >= p.workers {
			return false
		}
		p.broker.take(p.waiting[at])
		p.taken, p.waiting = append(p.taken, p.waiting[at]), slices.Delete(p.waiting, at, at+1)
	case "write":
		at := index(p.taken, number)
		if at < 0 {
			return false
		}
		p.broker.write(p.taken[at])
		p.taken, p.last = slices.Delete(p.taken, at, at+1), number
	case "commit":
		if args["to"] != p.broker.visible(p.queue, p.last) {
			return false // the broker chooses how far
		}
		p.broker.commit(p.queue, p.last)
	case "flush":
		p.broker.Flush(p.queue, time.Hour) // as far as the broker chooses
	case "end":
		return p.end()
	default:
		panic("no such step: " + action)
	}
	return true
}

// open begins a broker with a queue of so many entries, which another one has left.
func (p *player) open(number int, overlap bool) bool {
	if number < 0 || p.broker != nil {
		return false
	}
	must(os.Mkdir(p.folder, 0o755))
	unseen, err := NewRecorder(os.DevNull)
	must(err)
	before, err := Open(p.folder, []string{p.trace}, 1, unseen, "")
	must(err)
	for range number {
		_, err := before.Send(0, []byte("an old message"))
		must(err)
	}
	must(before.Close())
	p.workers = 1
	if overlap {
		p.workers = room
	}
	p.broker, err = open(p.folder, []string{p.trace}, p.workers, p.recorder, p.fault)
	must(err)
	p.queue = p.broker.queues[0]
	return true
}

// gather takes over the jobs that wait for workers.
func (p *player) gather() {
	for len(p.broker.jobs) > 0 {
		p.waiting = append(p.waiting, <-p.broker.jobs)
	}
}

// end says that the broker has come to rest, if there is nothing for workers to do.
func (p *player) end() bool {
	p.gather()
	q := p.queue
	if len(p.waiting)+len(p.taken) > 0 || p.broker.visible(q, p.last) > q.committed || q.flushed < q.committed {
		return false
	}
	p.recorder.Step(p.trace, "end", Fields{}, "ok", Fields{"committed": q.committed, "flushed": q.flushed})
	return true
}

func index(jobs []job, number int) int {
	return slices.IndexFunc(jobs, func(one job) bool { return one.number == number })
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
