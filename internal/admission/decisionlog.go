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

// backlogMax is how much of the decision log may wait for the disk, in bytes.
const backlogMax = 64 << 20

// errSlowDisk ends a decision log.
var errSlowDisk = errors.New("the disk does not keep up with the decision log")

// recorder is told what the engine hears and decides, in order.
type recorder interface {
	heard(ev engine.Event)
	decided(at time.Time, decisions []engine.Decision)
	// close returns once all of it is written down.
	close()
}

// unrecorded keeps nothing.
type unrecorded struct{}

func (unrecorded) heard(engine.Event)                   {}
func (unrecorded) decided(time.Time, []engine.Decision) {}
func (unrecorded) close()                               {}

// decisionLog writes a record.Log to a file. The loop never waits for the disk: what is
// not written yet waits in memory, and where that is too much the log ends, with a line
// that says so, and the operator goes on without. The loop's goroutine uses it.
type decisionLog struct {
	log  *record.Log
	file *backlog
	// ended tells that something went wrong, and was said.
	ended bool
}

// openDecisionLog begins a run at the end of the file, which it makes if there is none.
// Only its owner may read it: it names everybody's work.
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

func (d *decisionLog) heard(ev engine.Event) {
	if !d.ended {
		d.check(d.log.Event(ev))
	}
}

func (d *decisionLog) decided(at time.Time, decisions []engine.Decision) {
	if !d.ended {
		d.check(d.log.Pass(at, decisions))
	}
}

// check ends the log after an error: one with a gap would not replay.
func (d *decisionLog) check(err error) {
	if err == nil {
		return
	}
	d.ended = true
	ctrl.Log.WithName("decision-log").Error(err, "the decision log ends here; the operator goes on without it")
	d.file.makeRoom()
	_ = d.log.Cut(err.Error()) // it is best effort: the disk may be full
}

func (d *decisionLog) close() {
	if err := d.file.Close(); err != nil && !d.ended {
		ctrl.Log.WithName("decision-log").Error(err, "the decision log lacks its end")
	}
}

// backlog passes on what is written to it, without making the writer wait.
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

// Write keeps the text until it is passed on. It fails if too much waits, or if what was
// written before could not be passed on.
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

// makeRoom lets a last line be written to a backlog that is full.
func (b *backlog) makeRoom() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max += 4096
}

// Close returns once everything is passed on. Nothing may be written after it.
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
		}
		chunk.Reset()
	}
}
