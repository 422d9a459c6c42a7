package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/cmd/muster-agent/ask"
	"github.com/musterhq/muster/cmd/muster-agent/supervise"
)

// The environment variables that configure the agent. A variable that begins with MUSTER_ is for the agent only.
const (
	serverVariable    = "MUSTER_RENDEZVOUS"       // host:port of the operator's rendezvous
	authorityVariable = "MUSTER_RENDEZVOUS_CA"    // its CA certificate, as PEM
	tokenVariable     = "MUSTER_RENDEZVOUS_TOKEN" // path of the pod's token for it
	addressVariable   = "MUSTER_POD_IP"           // address at which the other pods reach this one
	graceVariable     = "MUSTER_CHECKPOINT_GRACE" // how long the command may take to stop
	hangVariable      = "MUSTER_HANG_TIMEOUT"     // how long it may go without a heartbeat
	readyVariable     = "MUSTER_READY_FILE"       // path of the file that marks the barrier as lifted
	exitCodeVariable  = "MUSTER_RESTART_EXIT_CODE"
	idVariable        = "LATTICE_RDZV_ID"
	restartsVariable  = "LATTICE_MAX_RESTARTS"
	portVariable      = "MASTER_PORT" // set by the user, optional
)

const (
	defaultToken    = "/var/run/secrets/muster.dev/token"
	defaultReady    = "/tmp/muster-ready"
	defaultMessage  = "/dev/termination-log"
	defaultRestarts = 3
	defaultGrace    = 30 * time.Second
	defaultExitCode = 42
	// infrastructureFailures is how often in a row a command may be restarted after failures that are not its own fault.
	infrastructureFailures = 20
	// steady is the duration of a round after which a failure counts as a new one rather than as the same one
	// repeating.
	steady = 5 * time.Minute
)

type settings struct {
	operator *ask.Operator
	job      supervise.Job
	address  string
	port     int // 0 for any free port
	budget   supervise.Budget
	grace    time.Duration
	hang     time.Duration // 0 disables the check
	ready    string
	exitCode int
	// environment is the part of the agent's environment that the command inherits.
	environment []string
}

func readSettings() (settings, error) {
	r := reader{}
	s := settings{
		job: supervise.Job{ID: os.Getenv(idVariable), Endpoint: r.required(serverVariable),
			MaxRestarts: r.integer(restartsVariable, defaultRestarts)},
		address:  os.Getenv(addressVariable),
		port:     r.integer(portVariable, 0),
		grace:    r.duration(graceVariable, defaultGrace),
		hang:     r.duration(hangVariable, 0),
		ready:    valueOr(readyVariable, defaultReady),
		exitCode: r.integer(exitCodeVariable, defaultExitCode),
	}
	s.budget = supervise.Budget{Failures: s.job.MaxRestarts, InfrastructureFailures: infrastructureFailures,
		Steady: steady}
	if s.budget.Failures < 0 {
		s.budget.InfrastructureFailures = -1
	}
	if s.address == "" {
		s.address = r.hostname()
	}
	s.environment = withPython(slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == authorityVariable || name == serverVariable || name == tokenVariable
	}))
	authority := r.required(authorityVariable)
	if r.err != nil {
		return s, r.err
	}
	var err error
	s.operator, err = ask.New(s.job.Endpoint, authority, valueOr(tokenVariable, defaultToken), logf)
	return s, err
}

// reader reads variables and keeps the first error.
type reader struct{ err error }

func (r *reader) required(name string) string {
	value := os.Getenv(name)
	if value == "" && r.err == nil {
		r.err = fmt.Errorf("the variable %s is not set: the operator sets it where it adds the agent", name)
	}
	return value
}

func (r *reader) integer(name string, otherwise int) int {
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("the variable %s is %q, which is no number", name, value)
	}
	return n
}

// hostname returns the pod's host name, by which other pods reach it if a headless Service gives it DNS.
func (r *reader) hostname() string {
	name, err := os.Hostname()
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("asking for the name of this pod: %w", err)
	}
	return name
}

// duration parses 90s, 2m and, as usual in Kubernetes' APIs, plain seconds.
func (r *reader) duration(name string, otherwise time.Duration) time.Duration {
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(seconds) * time.Second
	}
	d, err := time.ParseDuration(value)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("the variable %s is %q, which is no time, such as 90s", name, value)
	}
	return d
}

func valueOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
