// A small broker under load, which records what it does for `gapless check`.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Faults that can be planted: commits pass what is not written; busy workers miss a message; two messages share a
// number; the last entry waits for the next one; what is not written counts as safe.
var faults = []string{"gap", "drop", "twin", "late", "eager"}

func main() {
	messages := flag.Int("messages", 2000, "how many are sent")
	queues := flag.Int("queues", 4, "queues of the broker")
	workers := flag.Int("workers", 4, "goroutines that write entries")
	patience := flag.Duration("patience", 200*time.Microsecond, "how long a flush may take before its outcome is unknown")
	out := flag.String("out", "trace.ndjson", "the recording")
	performed := flag.String("perform", "", "a file of gapless generate: its runs are performed instead")
	fault := flag.String("fault", "", "one of "+strings.Join(faults, ", "))
	flag.Parse()
	if *fault != "" && !slices.Contains(faults, *fault) {
		fmt.Fprintln(os.Stderr, "no such fault:", *fault)
		os.Exit(2)
	}
	if *performed != "" {
		if err := perform(*performed, *out, *fault); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	if err := run(*messages, *queues, *workers, *patience, *out, *fault); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// run sends messages from a goroutine for each queue, while another one flushes, and stops in order.
func run(messages, queues, workers int, patience time.Duration, out, fault string) error {
	folder, err := os.MkdirTemp("", "broker-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	recorder, err := NewRecorder(out)
	if err != nil {
		return err
	}
	names := make([]string, queues)
	for n := range names {
		names[n] = fmt.Sprintf("orders/%d", n)
	}
	broker, err := Open(folder, names, workers, recorder, fault)
	if err != nil {
		return err
	}
	var producers, flusher sync.WaitGroup
	for queue := range queues {
		producers.Add(1)
		go func() {
			defer producers.Done()
			for n := queue; n < messages; n += queues {
				if _, err := broker.Send(queue, []byte(fmt.Sprintf("message %d", n))); err != nil {
					panic(err)
				}
			}
		}()
	}
	stop := make(chan struct{})
	unknown := 0
	flusher.Add(1)
	go func() {
		defer flusher.Done()
		for {
			for _, queue := range broker.queues {
				if !broker.Flush(queue, patience) {
					unknown++
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	producers.Wait()
	close(stop)
	flusher.Wait()
	if err := broker.Close(); err != nil {
		return err
	}
	fmt.Printf("%d messages in %d queues, %d steps recorded, %d flushes with an unknown outcome\n",
		messages, queues, recorder.steps, unknown)
	return recorder.Close()
}
