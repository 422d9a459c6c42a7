package supervise

import (
	"fmt"
	"regexp"
	"syscall"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// End is how a command ended.
type End struct {
	// Code is its exit code if Signal is 0; otherwise Signal is the signal that terminated it.
	Code   int
	Signal syscall.Signal
	// OutOfMemory is set if the kernel killed a process of the container for lack of memory.
	OutOfMemory bool
	// Stderr is the end of the command's standard error.
	Stderr []byte
}

// ExitCode returns the exit code as a shell has it: 128 + Signal for a command that was killed.
func (e End) ExitCode() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// lostPeer matches messages of collective libraries about a lost peer or network, which are not the fault of the
// program.
var lostPeer = regexp.MustCompile(`(?i)` +
	`ncclSystemError|ncclRemoteError|ncclInternalError|NCCL (communicator was aborted|error.{0,80}(remote process|system error|unhandled))` +
	`|Watchdog caught collective operation timeout` +
	`|gloo.{0,200}(Connection (closed|reset|refused|timed out)|Timed out waiting|Socket|No route to host)` +
	`|(Connection (closed|reset|refused)|Broken pipe).{0,40}by peer` +
	`|(c10d|TCPStore|DistNetworkError|DistStoreError).{0,200}(Connection|connect|Broken pipe|timed? ?out)` +
	`|torch\.distributed\.Dist(Network|Store|Backend)Error` +
	`|ConnectionRe(set|fused)Error|BrokenPipeError` +
	`|horovod.{0,80}HorovodInternalError`)

// failure classifies an unsuccessful end.
func (e End) failure(hung bool) protocol.Failure {
	f := protocol.Failure{ExitCode: e.ExitCode()}
	switch {
	case hung:
		f.Message = "no heartbeat"
	case e.OutOfMemory:
		f.Message = "out of memory"
	case lostPeer.Match(e.Stderr):
		f.Infrastructure = true
		f.Message = fmt.Sprintf("lost its connection to the others: %.120q", lostPeer.Find(e.Stderr))
	case e.Signal == syscall.SIGKILL || e.Signal == syscall.SIGTERM:
		// The agent has not sent it, so it comes from outside the pod.
		f.Infrastructure = true
		f.Message = "ended by a signal from outside: " + e.Signal.String()
	case e.Signal != 0:
		f.Message = "ended by a signal: " + e.Signal.String()
	default:
		f.Message = fmt.Sprintf("exit code %d", e.Code)
	}
	return f
}
