package main

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	entryBytes = 12 // of an entry of a queue: where its message lies, and how long it is
	room       = 8  // for jobs that no worker has
)

// Broker appends messages to one log. Workers write an entry for each into its queue, several at a queue at once.
type Broker struct {
	mutex    sync.Mutex // of the log, its end, and the numbers that messages get
	log      *os.File
	end      int64
	queues   []*Queue
	jobs     chan job
	workers  sync.WaitGroup
	recorder *Recorder
	fault    string
}

// Queue is what consumers read: the entries before `committed`.
type Queue struct {
	name      string
	file      *os.File
	scanned   int // the number that the next message gets; under the lock of the log
	mutex     sync.Mutex
	written   map[int]bool // entries that are in the file, from `committed` on
	committed int          // consumers see the entries before
	flushed   int          // the entries before are on disk
}

// job is an entry to be written.
type job struct {
	queue    *Queue
	number   int
	position int64
	size     int
}

// Open makes a broker in a folder, with empty queues, or with those that a broker left there when it was closed.
func Open(folder string, queues []string, workers int, recorder *Recorder, fault string) (*Broker, error) {
	b, err := open(folder, queues, workers, recorder, fault)
	if err != nil {
		return nil, err
	}
	for range workers {
		b.workers.Add(1)
		go b.work()
	}
	return b, nil
}

// open makes a broker whose workers have not begun.
func open(folder string, queues []string, workers int, recorder *Recorder, fault string) (*Broker, error) {
	log, end, err := found(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	b := &Broker{log: log, end: end, jobs: make(chan job, room), recorder: recorder, fault: fault}
	overlap := 0 // 1 where several workers may be at one queue
	if workers > 1 {
		overlap = 1
	}
	for n, name := range queues {
		file, size, err := found(filepath.Join(folder, fmt.Sprintf("queue-%d", n)))
		if err != nil {
			return nil, err
		}
		first := int(size / entryBytes)
		q := &Queue{name: name, file: file, scanned: first, written: map[int]bool{}, committed: first, flushed: first}
		b.queues = append(b.queues, q)
		recorder.Step(name, "open", Fields{"number": first, "overlap": overlap}, "ok", nil)
	}
	return b, nil
}

// found opens a file, which is made if it is not there, and says how long it is.
func found(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, err
	}
	about, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	return file, about.Size(), nil
}

// Send appends a message, and returns its number in the queue.
func (b *Broker) Send(queue int, body []byte) (int, error) {
	q := b.queues[queue]
	b.mutex.Lock()
	if _, err := b.log.WriteAt(body, b.end); err != nil {
		b.mutex.Unlock()
		return 0, err
	}
	next := job{q, q.scanned, b.end, len(body)}
	b.end += int64(len(body))
	if b.fault != "twin" || next.number%2 == 0 { // twin: a message gets the number of the one before
		q.scanned++
	}
	b.recorder.Step(q.name, "scan", Fields{"number": next.number}, "ok", Fields{"scanned": q.scanned})
	b.mutex.Unlock()
	if b.fault == "drop" && len(b.jobs) > 1 {
		return next.number, nil // workers are busy: the entry is never written
	}
	b.jobs <- next
	return next.number, nil
}

// work writes entries until there are no more.
func (b *Broker) work() {
	defer b.workers.Done()
	for next := range b.jobs {
		b.take(next)
		time.Sleep(time.Duration(rand.Intn(50)) * time.Microsecond) // as if entries were larger: some overtake others
		b.write(next)
		b.commit(next.queue, next.number)
	}
}

// take says that a worker is at the queue.
func (b *Broker) take(next job) {
	next.queue.mutex.Lock()
	defer next.queue.mutex.Unlock()
	b.recorder.Step(next.queue.name, "take", Fields{"number": next.number}, "ok", nil)
}

// write writes an entry, where no consumer looks yet.
func (b *Broker) write(next job) {
	q := next.queue
	var entry [entryBytes]byte
	binary.BigEndian.PutUint64(entry[:], uint64(next.position))
	binary.BigEndian.PutUint32(entry[8:], uint32(next.size))
	if _, err := q.file.WriteAt(entry[:], int64(next.number)*entryBytes); err != nil {
		panic(err) // nothing was promised yet: the next start writes it
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.written[next.number] = true
	b.recorder.Step(q.name, "write", Fields{"number": next.number}, "ok", nil)
}

// commit lets consumers see all entries before the first that is not written.
func (b *Broker) commit(q *Queue, number int) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	to := b.visible(q, number)
	if to == q.committed {
		return
	}
	for ; q.committed < to; q.committed++ {
		delete(q.written, q.committed)
	}
	b.recorder.Step(q.name, "commit", Fields{"to": to}, "ok", Fields{"committed": q.committed})
}

// visible says how far consumers may see, once an entry is written. The caller has the queue's lock.
func (b *Broker) visible(q *Queue, number int) int {
	to := q.committed
	for q.written[to] {
		to++
	}
	switch {
	case b.fault == "gap" && number >= to:
		to = number + 1 // the last worker shows what others have not written yet
	case b.fault == "late" && to > q.committed:
		to-- // the last entry waits for the next one
	}
	return to
}

// reach says how far a flush goes. The caller has the queue's lock.
func (b *Broker) reach(q *Queue) int {
	if b.fault == "eager" {
		return q.scanned // entries count as safe that are not written
	}
	return q.committed
}

// Flush puts the entries that consumers see on disk. It waits no longer than `patience` before it reports the outcome
// as unknown; then the disk is let finish, so that one flush of a queue runs at a time.
func (b *Broker) Flush(q *Queue, patience time.Duration) bool {
	q.mutex.Lock()
	to := b.reach(q)
	q.mutex.Unlock()
	done := make(chan error, 1)
	go func() { done <- q.file.Sync() }()
	select {
	case err := <-done:
		if err != nil {
			panic(err) // after a failed fsync a second one proves nothing
		}
		q.mutex.Lock()
		q.flushed = to
		b.recorder.Step(q.name, "flush", Fields{"to": to}, "ok", Fields{"flushed": q.flushed})
		q.mutex.Unlock()
		return true
	case <-time.After(patience):
		q.mutex.Lock()
		b.recorder.Step(q.name, "flush", Fields{"to": to}, "unknown", nil)
		q.mutex.Unlock()
		<-done
		return false
	}
}

// Close ends in order: no message is sent any more, every entry is written, every queue is on disk. Then it is at rest.
func (b *Broker) Close() error {
	close(b.jobs)
	b.workers.Wait()
	for _, q := range b.queues {
		b.Flush(q, time.Hour)
		b.recorder.Step(q.name, "end", Fields{}, "ok", Fields{"committed": q.committed, "flushed": q.flushed})
		if err := q.file.Close(); err != nil {
			return err
		}
	}
	return b.log.Close()
}
