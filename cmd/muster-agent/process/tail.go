package process

import (
	"io"
	"os"
	"sync"
	"time"
)

// kept is how many bytes of the end of the output are kept.
const kept = 16 << 10

// tail copies the text that is written to a pipe, and keeps the end of the text.
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
				_, _ = to.Write(buffer[:n]) // there is nowhere to report an error
				t.keep(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return t
}

func (t *tail) keep(output []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, output...)
	if over := len(t.last) - kept; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
}

// end returns the last output, once all writers have closed the pipe or patience is over.
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
