package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// Name is the runtime's name: it stands before container IDs in pod status.
	Name    = "process"
	version = "1.0.0"
	// apiVersion is what the kubelet's runtime manager asks of every runtime.
	apiVersion = "0.1.0"
)

// Network is one sandbox's own network.
type Network interface {
	// Address is where the sandbox is reached.
	Address() netip.Addr
	// Namespace is an open file of the network namespace, valid until Close.
	Namespace() *os.File
	// Close takes the network down. The sandbox's processes have ended by then.
	Close() error
}

// Options configure a Runtime.
type Options struct {
	// Dir is the runtime's own directory: its records outlive the process.
	Dir string
	// PodDir gives the directory of a pod by UID. Each pod's working directory is `work` in it.
	PodDir func(uid string) string
	// Isolation is the isolation of containers, as Detect found it.
	Isolation Isolation
	Spawner   *Spawner
	// HostAddress is the address of sandboxes on the machine's network.
	HostAddress netip.Addr
	// NewNetwork makes the network of a sandbox. Nil puts all sandboxes on the machine's.
	NewNetwork func(*runtimeapi.PodSandboxConfig) (Network, error)
	// Changed is called, on any goroutine and without locks held, after a container of the pod started or ended.
	Changed func(podUID string)
}

// Runtime runs containers as processes. It implements the RuntimeService and ImageManagerService of the container
// runtime interface, as far as the kubelet's runtime manager uses them. Safe for concurrent use.
type Runtime struct {
	notNeeded
	options Options

	mu         sync.Mutex
	closed     bool
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

// New returns a runtime that knows the containers of an earlier one on the same directory. It reports containers that
// were still running then as killed.
func New(options Options) (*Runtime, error) {
	r := &Runtime{options: options, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	for _, dir := range []string{r.recordsDir(), r.stagingDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the directory of the container runtime: %w", err)
		}
	}
	if err := r.loadRecords(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Runtime) recordsDir() string { return filepath.Join(r.options.Dir, "containers") }
func (r *Runtime) stagingDir() string { return filepath.Join(r.options.Dir, "roots") }

// Close stops every container with the grace that the context leaves and removes the networks of all sandboxes. No
// container can be started afterwards.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var sandboxes []*sandbox
	for _, s := range r.sandboxes {
		sandboxes = append(sandboxes, s)
	}
	var running []*container
	for _, c := range r.containers {
		if c.running() {
			running = append(running, c)
		}
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range running {
		all.Go(func() { c.stop(ctx) })
	}
	all.Wait()
	for _, s := range sandboxes {
		all.Go(func() { r.stopSandbox(s) })
	}
	all.Wait()
	return nil
}

// Version implements RuntimeService.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: apiVersion, RuntimeName: Name, RuntimeVersion: version,
		RuntimeApiVersion: version}, nil
}

// Status implements RuntimeService.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	if s, ok := r.sandboxes[id]; ok {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "sandbox %s does not exist", id)
}

func (r *Runtime) container(id string) (*container, error) {
	if c, ok := r.containers[id]; ok {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %s does not exist", id)
}

func newID() string {
	var random [16]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// hasLabels reports whether the labels include all the wanted ones.
func hasLabels(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = Images{}
)
