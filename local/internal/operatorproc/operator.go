package operatorproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// stopTimeout is how long the operator may take to stop before it is killed.
	stopTimeout = 10 * time.Second
	// steady is how long it must have run for its next death to restart the backoff.
	steady = time.Minute
)

// restarts returns the backoff of an operator that keeps dying. The first restart is immediate, as a kubelet's is.
func (c Config) restarts() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 10,
		Cap: cmp.Or(c.LongestPause, 30*time.Second)}
}

// Config configures an operator process.
type Config struct {
	// Path of the operator's binary.
	Path string
	// Kubeconfig is the path of its kubeconfig.
	Kubeconfig string
	// Configuration is the path of its configuration file; empty for none.
	Configuration string
	// Namespace is where it keeps its own objects.
	Namespace string
	// Rendezvous is the address at which it serves the agents in pods; empty for none.
	Rendezvous string
	// LogFile receives its output; Start truncates it.
	LogFile string
	// PIDFile holds the PID of the current process.
	PIDFile string
	// LongestPause is the maximum backoff between restarts; 0 means 30 s.
	LongestPause time.Duration
	// Notify reports to the user, in one line, that it died and what happens next.
	Notify func(format string, args ...any)
}

// CheckBinary returns an error that says what to do if path is not an executable program.
func CheckBinary(path string) error {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = errors.New("not an executable file")
	}
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return fmt.Errorf("no operator at %s: %w; build it with `make build`, name it with --operator, or leave it out with --no-operator",
			path, err)
	}
	return nil
}

// CheckConfiguration validates a configuration file with the operator's binary, and returns the operator's error
// message.
func CheckConfiguration(ctx context.Context, binary, file string) error {
	_, err := exec.CommandContext(ctx, binary, "--config", file, "--print-config").Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		return errors.New(strings.TrimPrefix(strings.TrimSpace(string(exit.Stderr)), "muster-operator: "))
	case err != nil:
		return fmt.Errorf("having the operator read %s: %w", file, err)
	}
	return nil
}

// Installation configures Install.
type Installation struct {
	// Path of the operator's binary.
	Path string
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string
	// Configuration is the path of the operator's configuration file; empty for none.
	Configuration string
	// Namespace is where the operator keeps its own objects.
	Namespace string
	// User is the user that the operator runs as.
	User string
}

// Install makes the operator's binary install the APIs and grant User the rights that the operator needs. An error
// contains the operator's message.
func Install(ctx context.Context, in Installation) error {
	arguments := []string{"--kubeconfig", in.Kubeconfig, "--leader-election-namespace", in.Namespace,
		"--install-for", in.User}
	if in.Configuration != "" {
		arguments = append(arguments, "--config", in.Configuration)
	}
	command := exec.CommandContext(ctx, in.Path, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only this process
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the APIs: %w; the operator said:\n%s", err, output)
	}
	return nil
}

// Operator is a child process that is restarted when it dies.
type Operator struct {
	config Config
	log    *os.File
	cancel context.CancelFunc
	ended  chan struct{}
}

// maxStarts bounds the attempts of the first start: another program may take the operator's free port before it
// listens.
const maxStarts = 3

// Start runs the operator and returns when it is ready. It returns an error if the operator dies before it was ready,
// unless its port was taken: then it retries with another one. ctx bounds only the start; Stop stops the operator.
func Start(ctx context.Context, c Config) (*Operator, error) {
	log, err := os.OpenFile(c.LogFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the operator's log: %w", err)
	}
	first, err := startReady(ctx, c, log)
	for starts := 1; err != nil && starts < maxStarts && ctx.Err() == nil && addressWasTaken(c.LogFile); starts++ {
		first, err = startReady(ctx, c, log)
	}
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("%w; the operator's log is %s", err, c.LogFile)
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o := &Operator{config: c, log: log, cancel: cancel, ended: make(chan struct{})}
	go o.keepRunning(lifetime, first)
	return o, nil
}

// startReady starts a process and returns when it is ready; on an error no process is left.
func startReady(ctx context.Context, c Config, log *os.File) (*process, error) {
	p, err := start(c, log)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		p.stop(stopTimeout)
		os.Remove(c.PIDFile)
		return nil, err
	}
	return p, nil
}

// addressWasTaken reports whether the operator logged that its address was in use.
func addressWasTaken(log string) bool {
	output, err := os.ReadFile(log)
	return err == nil && strings.Contains(string(output), syscall.EADDRINUSE.Error())
}

// Stop asks the operator to stop, and returns when it is gone.
func (o *Operator) Stop() {
	o.cancel()
	<-o.ended
}

// keepRunning replaces the process whenever it ends, until ctx does.
func (o *Operator) keepRunning(ctx context.Context, current *process) {
	defer close(o.ended)
	defer o.log.Close()
	defer os.Remove(o.config.PIDFile)
	backoff := o.config.restarts()
	for {
		select {
		case <-ctx.Done():
			current.stop(stopTimeout)
			return
		case <-current.exited:
		}
		if current.lived() > steady {
			backoff = o.config.restarts()
		}
		next, ok := o.replace(ctx, current.fate, &backoff)
		if !ok {
			return
		}
		current = next
		go o.announce(ctx, next)
	}
}

// announce reports that a restarted process is ready. It reports nothing if it never is, since its end is reported.
func (o *Operator) announce(ctx context.Context, p *process) {
	if p.awaitReady(ctx) == nil {
		o.config.Notify("the operator is ready again, as process %d", p.command.Process.Pid)
	}
}

// replace starts the next process after a pause; ok is false if ctx ended.
func (o *Operator) replace(ctx context.Context, fate string, backoff *wait.Backoff) (next *process, ok bool) {
	for {
		pause := backoff.Step()
		o.config.Notify("the operator ended (%s); starting it again in %s; its log is %s", fate,
			pause.Round(time.Millisecond), o.config.LogFile)
		select {
		case <-ctx.Done():
			return nil, false
		case <-time.After(pause):
		}
		next, err := start(o.config, o.log)
		if err == nil {
			return next, true
		}
		fate = err.Error()
	}
}
