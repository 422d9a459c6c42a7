package lifecycle

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// report prints progress for the user: a line for each step, with the time since the start.
type report struct {
	began time.Time

	mu  sync.Mutex // lines come from several goroutines
	out io.Writer
}

func newReport(out io.Writer) *report {
	return &report{began: time.Now(), out: out}
}

// line writes one line and ignores errors: that nobody can read it is no reason to stop.
func (r *report) line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

func (r *report) step(format string, args ...any) {
	r.line("%s (%.1fs)", fmt.Sprintf(format, args...), time.Since(r.began).Seconds())
}

// ready writes the line that scripts wait for; its format is part of the command's interface.
func (r *report) ready(kubeconfig string) {
	r.line("ready in %.1fs: export KUBECONFIG=%s", time.Since(r.began).Seconds(), kubeconfig)
}
