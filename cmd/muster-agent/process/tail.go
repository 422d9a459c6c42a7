package process

import (
	"io"
	"os"
	"sync"
	"time"
)

// kept is how much of the end of what a command says is looked at.
const kept = 16 << 10

// tail passes on what is written to a pipe and keeps the end of it.
type tail struct {
	mu   sync.Mutex
	last []byte
	done chan struct{}
}

// follow copies until all writers have closed the pipe.
func follow(from *os.File, to io.Writer) *tail {
	t := &tail{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		defer from.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				_, _ = to.Write(buffer[:n]) // nobody is left to tell
				t.keep(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return t
}

func (t *tail) keep(said []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, said...)
	if over := len(t.last) - kept; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
}

// end gives what was said last, once all has been said or patience is over.
func (t *tail) end(patience time.Duration) []byte {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.last...)
}
