package supervise

import (
	"fmt"
	"regexp"
	"syscall"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// End is how a command ended.
type End struct {
	// Code it ended with, if Signal is 0; else the signal that ended it.
	Code   int
	Signal syscall.Signal
	// OutOfMemory says that the kernel killed a process of the container for lack of memory.
	OutOfMemory bool
	// Said is the end of what it wrote to its standard error.
	Said []byte
}

// ExitCode is what a shell would say: 128 and the signal for a command that was killed.
func (e End) ExitCode() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// lostPeer is what collective libraries say when another member is gone or its node's
// network is: what befell the program, and not what it did.
var lostPeer = regexp.MustCompile(`(?i)` +
	`ncclSystemError|ncclRemoteError|ncclInternalError|NCCL (communicator was aborted|error.{0,80}(remote process|system error|unhandled))` +
	`|Watchdog caught collective operation timeout` +
	`|gloo.{0,200}(Connection (closed|reset|refused|timed out)|Timed out waiting|Socket|No route to host)` +
	`|(Connection (closed|reset|refused)|Broken pipe).{0,40}by peer` +
	`|(c10d|TCPStore|DistNetworkError|DistStoreError).{0,200}(Connection|connect|Broken pipe|timed? ?out)` +
	`|torch\.distributed\.Dist(Network|Store|Backend)Error` +
	`|ConnectionRe(set|fused)Error|BrokenPipeError` +
	`|horovod.{0,80}HorovodInternalError`)

// failure says what an end that was no success means.
func (e End) failure(hung bool) protocol.Failure {
	f := protocol.Failure{ExitCode: e.ExitCode()}
	switch {
	case hung:
		f.Message = "no sign of life"
	case e.OutOfMemory:
		f.Message = "out of memory"
	case lostPeer.Match(e.Said):
		f.Infrastructure = true
		f.Message = fmt.Sprintf("lost its connection to the others: %.120q", lostPeer.Find(e.Said))
	case e.Signal == syscall.SIGKILL || e.Signal == syscall.SIGTERM:
		// Nobody of this pod has sent it: it came from outside of the program.
		f.Infrastructure = true
		f.Message = "ended from outside by " + e.Signal.String()
	case e.Signal != 0:
		f.Message = "ended by " + e.Signal.String()
	default:
		f.Message = fmt.Sprintf("exit code %d", e.Code)
	}
	return f
}
