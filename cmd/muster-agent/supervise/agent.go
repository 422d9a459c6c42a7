package supervise

import (
	"fmt"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Do is what the agent has to do next. If several fields are set, they are executed in the order of the fields.
type Do struct {
	// Signal is to be sent to the command, 0 for none.
	Signal syscall.Signal
	// Kill ends the command and all that it started.
	Kill bool
	// Alarm asks for a call of Late after that time, unless the command ends before; 0 for none.
	Alarm time.Duration
	// Send, if not nil, replaces the request to the operator. The caller fills in Join, Address and Port; Fresh says
	// that Join and Port must be new.
	Send  *protocol.Request
	Fresh bool
	// Start runs the command with this rank in a round.
	Start *protocol.Round
	// Exit ends the agent with Code, after Report, if set, has been sent once.
	Exit   bool
	Code   int
	Report *protocol.Request
	// Termination is written to the termination message of the container, empty for nothing: it tells the end of a command
	// that failed too often from that of a container that was killed.
	Termination string
	// Note is a line for the log of the container, empty for none.
	Note string
}

// Budget limits how often a failed command is restarted.
type Budget struct {
	// Failures limits failures of the program itself during the life of the agent; negative for no limit.
	Failures int
	// InfrastructureFailures limits consecutive failures for other reasons; a round that lasted Steady resets the count.
	// Negative for no limit.
	InfrastructureFailures int
	Steady                 time.Duration
}

type phase int

const (
	waiting  phase = iota // waiting for a round
	running               // the command is running
	stopping              // stopping the command before the next round
	leaving               // stopping the command for good
	ended
)

// Agent is the state of an agent. The zero value is not valid: use New or NewSidecar.
type Agent struct {
	budget Budget
	grace  time.Duration
	// A sidecar agent has no command: it exits when its round is over, so that its pod is restarted.
	sidecar     bool
	sidecarCode int

	phase phase
	part  protocol.Round
	began time.Time
	// failures and infrastructureFailures are what Budget limits.
	failures, infrastructureFailures int
	// hung says that the command of the current round was killed because it gave no heartbeat.
	hung bool
}

// leastGrace replaces a grace period of 0, which pods may have: an Alarm of 0 would be none, and a command that ignores
// SIGTERM would run on.
const leastGrace = time.Millisecond

// New returns an agent that runs a command. grace is how long the command may take to stop.
func New(budget Budget, grace time.Duration) *Agent {
	return &Agent{budget: budget, grace: max(grace, leastGrace)}
}

// NewSidecar returns an agent beside the other containers of its pod, which exits with code once its round is over.
func NewSidecar(code int) *Agent { return &Agent{sidecar: true, sidecarCode: code} }

// Begin must be called first.
func (a *Agent) Begin() Do {
	return Do{Send: &protocol.Request{State: protocol.Waiting}, Fresh: true}
}

// Answered handles an answer of the operator.
func (a *Agent) Answered(answer protocol.Response, now time.Time) Do {
	switch {
	case answer.Refused != "" && a.phase == waiting:
		a.phase = ended
		return Do{Exit: true, Code: 1, Note: "the operator refuses this pod: " + answer.Refused}
	case answer.Finished != "" && a.phase == waiting:
		a.phase = ended
		return Do{Exit: true, Note: "the command need not run: " + answer.Finished}
	case answer.Round != nil && a.phase == waiting:
		a.phase, a.part, a.began, a.hung = running, *answer.Round, now, false
		do := Do{Start: answer.Round, Send: a.inRound(),
			Note: fmt.Sprintf("round %d: rank %d of %d", a.part.Number, a.part.Rank, a.part.Size)}
		return do
	case answer.Over != "" && a.phase == running && a.sidecar:
		a.phase = ended
		return Do{Exit: true, Code: a.sidecarCode, Note: fmt.Sprintf("round %d is over: %s", a.part.Number, answer.Over)}
	case answer.Over != "" && a.phase == running:
		a.phase = stopping
		return Do{Signal: syscall.SIGTERM, Alarm: a.grace,
			Note: fmt.Sprintf("round %d is over: %s", a.part.Number, answer.Over)}
	}
	return Do{}
}

func (a *Agent) inRound() *protocol.Request {
	return &protocol.Request{State: protocol.Running, Round: a.part.Number, Rank: a.part.Rank, Size: a.part.Size,
		Master: a.part.Master(), ID: a.part.ID}
}

// Ended handles the end of the command.
func (a *Agent) Ended(end End, now time.Time) Do {
	// Kill what the command started and left behind: it could hold devices and ports.
	do := Do{Kill: true}
	switch {
	case a.phase == leaving:
		a.phase = ended
		do.Exit, do.Code = true, end.ExitCode()
	case a.phase == stopping:
		do = a.awaitRound(do, nil)
	case a.phase != running:
	case end.ExitCode() == 0:
		a.phase = ended
		do.Exit, do.Report = true, a.inRound()
		do.Report.State = protocol.Done
	default:
		do = a.failed(do, end, now)
	}
	return do
}

func (a *Agent) failed(do Do, end End, now time.Time) Do {
	failure := end.failure(a.hung)
	var within bool
	if failure.Infrastructure {
		if now.Sub(a.began) >= a.budget.Steady {
			a.infrastructureFailures = 0
		}
		a.infrastructureFailures++
		within = a.budget.InfrastructureFailures < 0 || a.infrastructureFailures <= a.budget.InfrastructureFailures
	} else {
		a.failures++
		within = a.budget.Failures < 0 || a.failures <= a.budget.Failures
	}
	if !within {
		a.phase = ended
		do.Exit, do.Code = true, max(1, end.ExitCode())
		do.Note = fmt.Sprintf("the command failed (%s), and was run again often enough", failure.Message)
		do.Termination = do.Note
		return do
	}
	do.Note = fmt.Sprintf("the command failed (%s); it is run again with the next round", failure.Message)
	return a.awaitRound(do, &failure)
}

// awaitRound makes the agent wait for the next round.
func (a *Agent) awaitRound(do Do, failure *protocol.Failure) Do {
	a.phase = waiting
	do.Send, do.Fresh = &protocol.Request{State: protocol.Waiting, Round: a.part.Number, Failure: failure}, true
	return do
}

// Late handles that the command has not stopped in time.
func (a *Agent) Late() Do {
	if a.phase == stopping || a.phase == leaving {
		return Do{Kill: true, Note: "the command has not stopped in time and is killed"}
	}
	return Do{}
}

// Hung handles that the command has given no heartbeat for too long.
func (a *Agent) Hung() Do {
	if a.phase != running {
		return Do{}
	}
	a.hung = true
	return Do{Kill: true, Note: "the command has sent no heartbeat in time and is killed"}
}

// Signalled handles a signal sent to the agent. The first request to terminate is passed on, and the agent exits with
// the command; the second kills the command. Other signals are passed on.
func (a *Agent) Signalled(signal syscall.Signal) Do {
	if signal != syscall.SIGTERM && signal != syscall.SIGINT {
		if a.phase == waiting || a.phase == ended {
			return Do{}
		}
		return Do{Signal: signal}
	}
	switch {
	case a.phase == leaving:
		return Do{Kill: true, Note: "asked to end a second time: the command is killed"}
	case a.phase == waiting || a.phase == running && a.sidecar:
		a.phase = ended
		return Do{Exit: true, Code: 128 + int(signal)}
	case a.phase == running || a.phase == stopping:
		// There is no alarm here: the kubelet bounds the time by killing the agent, and the command dies with it.
		already := a.phase == stopping
		a.phase = leaving
		if already && signal == syscall.SIGTERM {
			return Do{}
		}
		return Do{Signal: signal}
	}
	return Do{}
}

// NotStarted handles that the command could not be started. Another round would not help.
func (a *Agent) NotStarted(err error, code int) Do {
	a.phase = ended
	return Do{Exit: true, Code: code, Note: err.Error()}
}
