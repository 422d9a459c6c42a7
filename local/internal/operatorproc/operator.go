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
	// stopPatience is how long the operator may take to stop when asked;
	// then it is killed.
	stopPatience = 10 * time.Second
	// steady is how long it must have lived for its next death to count as
	// the first of a new series.
	steady = time.Minute
)

// restarts spaces the starts of an operator that keeps dying. The first comes
// at once, as it would where a kubelet restarts it.
func (c Config) restarts() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 10, Cap: cmp.Or(c.LongestPause, 30*time.Second)}
}

// Config says which operator to run and where.
type Config struct {
	// Path of the operator's binary.
	Path string
	// Kubeconfig is the path of the file by which it reaches the API server.
	Kubeconfig string
	// Configuration is the path of its configuration file; empty for none.
	Configuration string
	// Namespace is where it keeps what it needs for itself.
	Namespace string
	// Rendezvous is the address at which it serves the agents in pods; empty for none.
	Rendezvous string
	// LogFile takes what it prints; emptied by Start.
	LogFile string
	// PIDFile holds the pid of the process that runs at present.
	PIDFile string
	// LongestPause bounds how long one that keeps dying is not started again; 30 s where it is 0.
	LongestPause time.Duration
	// Notify tells the user, in one line, that it died and what follows.
	Notify func(format string, args ...any)
}

// CheckBinary gives an error that says what to do if the path is not that of
// a program.
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

// CheckConfiguration has the operator's binary read a configuration file. If it
// refuses the file, the error is what it says.
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

// Installation says for whom the APIs are installed, and by whom.
type Installation struct {
	// Path of the operator's binary.
	Path string
	// Kubeconfig is the path of the file of an administrator.
	Kubeconfig string
	// Configuration is the path of the operator's configuration file; empty for none.
	Configuration string
	// Namespace is where the operator is to keep what it needs for itself.
	Namespace string
	// User is who runs the operator.
	User string
}

// Install has the operator's binary install the APIs, and grant to the user the rights that the operator needs. If it fails, the
// error is what it says.
func Install(ctx context.Context, in Installation) error {
	arguments := []string{"--kubeconfig", in.Kubeconfig, "--leader-election-namespace", in.Namespace, "--install-for", in.User}
	if in.Configuration != "" {
		arguments = append(arguments, "--config", in.Configuration)
	}
	command := exec.CommandContext(ctx, in.Path, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the APIs: %w; the operator said:\n%s", err, said)
	}
	return nil
}

// Operator is a child process that is kept running.
type Operator struct {
	config Config
	log    *os.File
	cancel context.CancelFunc
	ended  chan struct{}
}

// startsMost bounds the first starts: another program may take the address
// that was free for the operator before it does.
const startsMost = 3

// Start runs the operator and returns when it is ready. If it dies before it
// was ready once, that is an error and nothing runs, unless others have taken
// its address: then it is tried with another. ctx bounds the start alone; Stop
// ends the operator.
func Start(ctx context.Context, c Config) (*Operator, error) {
	log, err := os.OpenFile(c.LogFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the operator's log: %w", err)
	}
	first, err := startReady(ctx, c, log)
	for starts := 1; err != nil && starts < startsMost && ctx.Err() == nil && addressWasTaken(c.LogFile); starts++ {
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

// startReady starts a process and returns when it is ready, or is gone again.
func startReady(ctx context.Context, c Config, log *os.File) (*process, error) {
	p, err := start(c, log)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		p.stop(stopPatience)
		os.Remove(c.PIDFile)
		return nil, err
	}
	return p, nil
}

// addressWasTaken reports whether the operator says in its log that it could not listen.
func addressWasTaken(log string) bool {
	said, err := os.ReadFile(log)
	return err == nil && strings.Contains(string(said), syscall.EADDRINUSE.Error())
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
			current.stop(stopPatience)
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

// announce tells the user when a process that was started again is ready. That
// it never is needs no words here: its end has its own.
func (o *Operator) announce(ctx context.Context, p *process) {
	if p.awaitReady(ctx) == nil {
		o.config.Notify("the operator is ready again, as process %d", p.command.Process.Pid)
	}
}

// replace starts the next process after a pause; ok is false if ctx ended.
func (o *Operator) replace(ctx context.Context, fate string, backoff *wait.Backoff) (next *process, ok bool) {
	for {
		pause := backoff.Step()
		o.config.Notify("the operator ended (%s); starting it again in %s; its log is %s", fate, pause.Round(time.Millisecond), o.config.LogFile)
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
