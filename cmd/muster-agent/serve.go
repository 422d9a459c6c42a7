package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/cmd/muster-agent/process"
	"github.com/musterhq/muster/cmd/muster-agent/supervise"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// forwarded are the signals that the agent passes on to the command.
var forwarded = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGCONT,
}

// reportTimeout bounds the final report to the operator, which also learns of the end from the pod's status.
const reportTimeout = 300 * time.Millisecond

// shell executes what a supervise.Agent decides.
type shell struct {
	settings
	command []string
	agent   *supervise.Agent
	family  *process.Family

	answers   chan answer
	alarm     *time.Timer
	heartbeat *heartbeat
	// request is the current request to the operator. cancelRequest cancels it, and turn distinguishes its answer from
	// answers to earlier requests.
	request       protocol.Request
	cancelRequest context.CancelFunc
	turn          int

	code  int
	ended bool
}

type answer struct {
	turn int
	protocol.Response
}

// serve runs a command in rounds, or a sidecar if command is nil, and returns the exit code.
func serve(command []string) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	s := &shell{command: command, answers: make(chan answer, 1), alarm: time.NewTimer(time.Hour), cancelRequest: func() {}}
	s.alarm.Stop()
	var err error
	if s.settings, err = readSettings(); err != nil {
		logf("%v", err)
		return codeUsage
	}
	s.family = process.New()
	if command == nil {
		os.Remove(s.ready)
		s.agent = supervise.NewSidecar(s.exitCode)
	} else {
		s.agent = supervise.New(s.budget, s.grace)
	}
	s.heartbeat = newHeartbeat(s.hang)
	defer s.heartbeat.stop()
	s.do(s.agent.Begin())
	for !s.ended {
		select {
		case a := <-s.answers:
			if a.turn == s.turn {
				s.do(s.agent.Answered(a.Response, time.Now()))
			}
		case end := <-s.family.Ended():
			s.alarm.Stop()
			s.heartbeat.stop()
			s.do(s.agent.Ended(supervise.End(end), time.Now()))
		case got := <-signals:
			s.do(s.agent.Signalled(got.(syscall.Signal)))
		case <-s.alarm.C:
			s.do(s.agent.Late())
		case <-s.heartbeat.due():
			if s.heartbeat.stopped(time.Now()) {
				s.do(s.agent.Hung())
			}
		}
	}
	return s.code
}

func (s *shell) do(next supervise.Do) {
	if next.Note != "" {
		logf("%s", next.Note)
	}
	if next.Termination != "" {
		report(valueOr(muster.AgentReportVariable, defaultMessage), next.Termination)
	}
	if next.Signal != 0 {
		s.family.Signal(next.Signal)
	}
	if next.Kill {
		s.family.Kill()
	}
	if next.Alarm > 0 {
		s.alarm.Reset(next.Alarm)
	}
	if next.Send != nil {
		s.ask(*next.Send, next.Fresh)
	}
	if next.Start != nil {
		s.start(*next.Start)
	}
	if next.Report != nil {
		s.report(*next.Report)
	}
	if next.Exit {
		s.cancelRequest()
		s.code, s.ended = next.Code, true
	}
}

// ask replaces the current request to the operator.
func (s *shell) ask(request protocol.Request, fresh bool) {
	s.cancelRequest()
	request.Join, request.Address, request.Port = s.request.Join, s.address, s.request.Port
	if fresh {
		request.Join, request.Port = rand.Text(), s.freePort()
	}
	s.request = request
	s.turn++
	turn := s.turn
	ctx, cancel := context.WithCancel(context.Background())
	s.cancelRequest = cancel
	go func() {
		if response, ok := s.operator.Until(ctx, request); ok {
			select {
			case s.answers <- answer{turn, response}:
			case <-ctx.Done():
			}
		}
	}()
}

func (s *shell) start(part protocol.Round) {
	if s.command == nil {
		if err := os.WriteFile(s.ready, nil, 0o644); err != nil {
			s.do(s.agent.NotStarted(err, codeFailed))
		}
		return
	}
	environment := append(supervise.Environment(s.environment, s.job, part), s.heartbeat.start()...)
	s.job.Restarts++
	if err := s.family.Start(s.command, environment); err != nil {
		s.heartbeat.stop()
		s.do(s.agent.NotStarted(err, process.ExitCode(err)))
	}
}

func (s *shell) report(request protocol.Request) {
	s.cancelRequest()
	request.Join, request.Address, request.Port = s.request.Join, s.address, s.request.Port
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	_, _ = s.operator.Once(ctx, request) // best effort: the pod's status shows it later
}

// freePort returns a port for rank 0 to listen on: the configured one, or one that is free now. Another process may
// take it before the program does; then the program fails, and the next round uses another one.
func (s *shell) freePort() int {
	if s.port != 0 {
		return s.port
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return protocol.DefaultMasterPort
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// ready returns the exit code that tells whether the sidecar of the pod has lifted the barrier.
func ready() int {
	if _, err := os.Stat(valueOr(readyVariable, defaultReady)); err != nil {
		return codeFailed
	}
	return 0
}

// report appends a line to the termination message of the container, after what the command wrote there. Where the
// message is not a file that exists, nothing is told.
func report(path, line string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(file, "\nmuster-agent: %s\n", line)
}
