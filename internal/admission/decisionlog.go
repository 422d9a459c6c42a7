package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/record"
)

// backlogMax is how many bytes of the decision log may wait to be written to disk.
const backlogMax = 64 << 20

// errSlowDisk makes a decision log end.
var errSlowDisk = errors.New("the disk does not keep up with the decision log")

// decisionLog writes a record.Log to a file. The loop never waits for the disk: what is not written yet is buffered
// in memory, and if that grows too large the log ends with a line that says so while the operator goes on without it.
// It must be used by the loop's goroutine only. A nil value records nothing.
type decisionLog struct {
	log  *record.Log
	file *backlog
	// ended is set once an error has ended the log and was logged.
	ended bool
}

// openDecisionLog starts a new run at the end of the file, creating it if necessary. The file is readable by its
// owner only, since it names the jobs of all users.
func openDecisionLog(path string, options engine.Options) (*decisionLog, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the decision log: %w", err)
	}
	d := &decisionLog{file: newBacklog(file, backlogMax)}
	if d.log, err = record.Begin(d.file, options); err != nil {
		return nil, err
	}
	return d, nil
}

// recordEvent records an event that the engine is about to apply.
func (d *decisionLog) recordEvent(ev engine.Event) {
	if d != nil && !d.ended {
		d.check(d.log.Event(ev))
	}
}

// recordPass records what the engine decided at that time.
func (d *decisionLog) recordPass(at time.Time, decisions []engine.Decision) {
	if d != nil && !d.ended {
		d.check(d.log.Pass(at, decisions))
	}
}

// recordCheck records a check of waiting workloads at that time.
func (d *decisionLog) recordCheck(at time.Time, missed []engine.Key) {
	if d != nil && !d.ended {
		d.check(d.log.Check(at, missed))
	}
}

// check ends the log after an error: a log with a gap could not be replayed.
func (d *decisionLog) check(err error) {
	if err == nil {
		return
	}
	d.ended = true
	ctrl.Log.WithName("decision-log").Error(err, "the decision log ends here; the operator goes on without it")
	d.file.extend()
	_ = d.log.Cut(err.Error()) // best effort: the disk may be full
}

// close returns once everything is written.
func (d *decisionLog) close() {
	if d == nil {
		return
	}
	if err := d.file.Close(); err != nil && !d.ended {
		ctrl.Log.WithName("decision-log").Error(err, "the end of the decision log was not written")
	}
}

// backlog writes to a file in the background, so that its callers never wait for the disk.
type backlog struct {
	to   io.WriteCloser
	max  int
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	waiting bytes.Buffer
	err     error
}

func newBacklog(to io.WriteCloser, most int) *backlog {
	b := &backlog{to: to, max: most, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.pass()
	return b
}

// Write buffers the text. It fails if too much is buffered, or if an earlier write to the file failed.
func (b *backlog) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
		return 0, b.err
	case b.waiting.Len()+len(text) > b.max:
		return 0, errSlowDisk
	}
	b.waiting.Write(text)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(text), nil
}

// extend allows one last line in a backlog that is full.
func (b *backlog) extend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max += 4096
}

// Close returns once everything is written. Write must not be called after it.
func (b *backlog) Close() error {
	close(b.wake)
	<-b.done
	return errors.Join(b.err, b.to.Close())
}

func (b *backlog) pass() {
	defer close(b.done)
	var chunk bytes.Buffer
	for range b.wake {
		b.mu.Lock()
		chunk, b.waiting = b.waiting, chunk
		b.mu.Unlock()
		if _, err := b.to.Write(chunk.Bytes()); err != nil {
			b.mu.Lock()
			b.err = fmt.Errorf("writing the decision log: %w", err)
			b.mu.Unlock()
			return // what waits already would follow a gap
		}
		chunk.Reset()
	}
}
