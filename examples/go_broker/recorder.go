package main

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
)

// Fields are numbers by name: the arguments of a step, or what the broker saw behind it.
type Fields map[string]int

// event is a line of the recording. Its keys are those of `gapless schema events`.
type event struct {
	Source   string `json:"source"`
	Spec     string `json:"spec"`
	Trace    string `json:"trace"`
	Position int    `json:"position"`
	Action   string `json:"action"`
	Args     Fields `json:"args"`
	Outcome  string `json:"outcome,omitempty"`
	Saw      Fields `json:"saw,omitempty"`
}

// Recorder writes a line for each step.
type Recorder struct {
	mutex sync.Mutex
	file  *os.File
	lines *bufio.Writer
	steps int
}

// NewRecorder begins a recording.
func NewRecorder(path string) (*Recorder, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	recorder := &Recorder{file: file, lines: bufio.NewWriter(file)}
	_, err = recorder.lines.WriteString(`{"schema":"gapless-events","version":1,"profile":"strict"}` + "\n")
	return recorder, err
}

// Step records one step of a queue. The caller has the lock under which the step took effect, so that the
// position, which is given here, is the order in which steps took effect. outcome: "ok", "refused" or "unknown".
func (r *Recorder) Step(trace, action string, args Fields, outcome string, saw Fields) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	line, err := json.Marshal(event{"broker", "dispatch", trace, r.steps, action, args, outcome, saw})
	if err == nil {
		_, err = r.lines.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err) // a recording with a hole proves nothing
	}
	r.steps++
}

// Close writes what is buffered.
func (r *Recorder) Close() error {
	if err := r.lines.Flush(); err != nil {
		return err
	}
	return r.file.Close()
}
