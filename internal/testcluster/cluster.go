package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/install"
)

// Options configure the cluster of a test process. The zero value is a control plane with Muster's APIs, no nodes and
// no operator.
type Options struct {
	// ExecNodes run pods as processes of this machine.
	ExecNodes int

	// SimNodes only simulate pods; each has SimGPUs GPUs, or 8 if that is 0.
	SimNodes int
	SimGPUs  int

	// Operator runs Muster's operator, which then installs the APIs itself.
	Operator bool

	// Config is the content of the operator's configuration file; empty for none. It requires Operator.
	Config string

	// NoAPIs omits Muster's APIs.
	NoAPIs bool
}

// OperatorVariable is the environment variable with the absolute path of the operator to run instead of
// bin/muster-operator, such as one built with the race detector.
const OperatorVariable = "MUSTER_TEST_OPERATOR"

// Cluster is a control plane that serves until the test process ends.
type Cluster struct {
	// Config is the client configuration of an administrator, without a client-side rate limit.
	Config *rest.Config

	// Client uses Config, without a cache, and knows Muster's types.
	Client client.Client

	// Kubeconfig is the path of a kubeconfig equivalent to Config. Dir is the cluster's state directory, with its logs
	// under logs/ and the operator's PID in operator.pid.
	Kubeconfig, Dir string

	process *process
}

var shared struct {
	sync.Mutex
	options Options
	started bool
	cluster *Cluster
	err     error
}

// startTimeout bounds the start of a cluster, on a machine that is busy with other tests.
const startTimeout = 4 * time.Minute

// Main runs the tests of a package and exits with their result. It stops the cluster, if one was started. The tests
// fail if the operator was denied a request for a right that the chart does not grant.
func Main(m *testing.M, options Options) {
	log.SetLogger(logr.Discard()) // else controller-runtime logs a stack that no logger was set
	shared.options = options
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "at the end of the test cluster:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Get returns the cluster of this test process, and starts it at the first call. If the start fails, the calling test
// and all later callers fail.
func Get(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.started = true
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		shared.cluster, shared.err = retryKnownCrash(func() (*Cluster, error) { return start(ctx, shared.options) })
	}
	if shared.err != nil {
		t.Fatalf("no test cluster: %v", shared.err)
	}
	return shared.cluster
}

// Another starts a cluster for one test by running program with the arguments, as users do, and returns the path of its
// kubeconfig. The cluster is stopped at the end of the test.
func Another(t testing.TB, program string, arguments ...string) (kubeconfig string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	started, err := retryKnownCrash(func() (started *process, err error) {
		started, kubeconfig, err = startProcess(ctx, program, arguments)
		return started, err
	})
	if err != nil {
		t.Fatalf("no cluster by %s %v: %v", program, arguments, err)
	}
	t.Cleanup(func() {
		if err := started.stop(); err != nil {
			t.Errorf("at the end of the cluster by %s %v: %v", program, arguments, err)
		}
	})
	return kubeconfig
}

// retryKnownCrash calls start, and once more, with a log line, if kube-apiserver crashed because of a known race
// in kube-openapi (handler3, UpdateGroupVersionLazy): a new group appears in the discovery of OpenAPI v3 shortly before
// its specification, and a request in between crashes the process. A busy machine makes that interval long enough.
func retryKnownCrash[T any](start func() (T, error)) (T, error) {
	started, err := start()
	if err != nil && strings.Contains(err.Error(), "k8s.io/kube-openapi/pkg/cached.(*Atomic[...]).Get(") {
		fmt.Fprintln(os.Stderr, "started once more:", err)
		return start()
	}
	return started, err
}

// Scheme returns a scheme of Kubernetes' and Muster's types.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, jobset.AddToScheme,
		tensorstack.AddToScheme, lattice.AddToScheme, volcano.AddToScheme, bus.AddToScheme, scheduling.AddToScheme,
		breezeml.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two packages register the same name: a bug
		}
	}
	return scheme
}

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		return nil
	}
	return errors.Join(refusals(shared.cluster.Dir), shared.cluster.process.stop())
}

func start(ctx context.Context, options Options) (_ *Cluster, err error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	configuration, forget, err := writeConfiguration(options)
	if err != nil {
		return nil, err
	}
	started, kubeconfig, err := startProcess(ctx, binary, arguments(options, configuration))
	if err != nil {
		return nil, errors.Join(err, forget())
	}
	started.forget = forget
	defer func() {
		if err != nil {
			err = errors.Join(err, started.stop())
		}
	}()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.QPS = -1
	if !options.NoAPIs {
		if !options.Operator {
			if err := install.Apply(ctx, config, install.Options{}); err != nil {
				return nil, fmt.Errorf("installing Muster's APIs: %w", err)
			}
		}
		policies, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("making a client: %w", err)
		}
		if err := waitUntilPoliciesAreEnforced(ctx, policies); err != nil {
			return nil, fmt.Errorf("waiting for the admission policies: %w", err)
		}
		if err := waitUntilJobsAreSuspended(ctx, policies); err != nil {
			return nil, fmt.Errorf("waiting until Jobs are held: %w", err)
		}
	}
	direct, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &Cluster{Config: config, Client: direct, Kubeconfig: kubeconfig, Dir: stateDir(kubeconfig),
		process: started}, nil
}

// writeConfiguration writes the operator's configuration, if there is any, to a file, and returns its path and a
// function that removes it. A restarted operator reads the file again.
func writeConfiguration(options Options) (path string, forget func() error, err error) {
	switch {
	case options.Config == "":
		return "", func() error { return nil }, nil
	case !options.Operator:
		return "", nil, errors.New("a test cluster without an operator has no use for the Config in its Options: set Operator too")
	}
	dir, err := os.MkdirTemp("", "muster-config-")
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for the operator's configuration: %w", err)
	}
	path = filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(options.Config), 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("writing the operator's configuration: %w", err), os.RemoveAll(dir))
	}
	return path, func() error { return os.RemoveAll(dir) }, nil
}

func arguments(options Options, configuration string) []string {
	arguments := []string{"up", "--ephemeral", "--nodes", strconv.Itoa(options.ExecNodes)}
	if options.SimNodes > 0 {
		arguments = append(arguments, "--sim-nodes", strconv.Itoa(options.SimNodes))
	}
	if options.SimGPUs > 0 {
		arguments = append(arguments, "--sim-gpus", strconv.Itoa(options.SimGPUs))
	}
	if !options.Operator {
		arguments = append(arguments, "--no-operator")
	} else {
		arguments = append(arguments, "--operator-pause", "1s") // else a test that kills it often would wait 30 s each time
	}
	if configuration != "" {
		arguments = append(arguments, "--config", configuration)
	}
	if operator := os.Getenv(OperatorVariable); operator != "" && options.Operator {
		arguments = append(arguments, "--operator", operator)
	}
	return arguments
}
