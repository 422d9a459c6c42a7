package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is what the containers of one pod share.
type sandbox struct {
	id      string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	// network is nil on the machine's network. It is set when the sandbox is made and closed when it is stopped.
	network Network
	stopped bool // guarded by Runtime.mu
}

// uid of the pod the sandbox is for.
func (s *sandbox) uid() string { return s.config.GetMetadata().GetUid() }

// resolvConf is the sandbox's own /etc/resolv.conf, empty if it uses the machine's.
func (s *sandbox) resolvConf(podDir string) string {
	if s.config.GetDnsConfig() == nil {
		return ""
	}
	return filepath.Join(podDir, "resolv.conf")
}

// RunPodSandbox implements RuntimeService.
func (r *Runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig,
	handler string) (string, error) {
	if handler != "" {
		return "", fmt.Errorf("runtime class handler %q: this node has none; leave spec.runtimeClassName out", handler)
	}
	s := &sandbox{id: newID(), config: config, created: time.Now()}
	podDir := r.options.PodDir(s.uid())
	if err := os.MkdirAll(filepath.Join(podDir, "work"), 0o755); err != nil {
		return "", fmt.Errorf("making the working directory of the pod: %w", err)
	}
	if path := s.resolvConf(podDir); path != "" {
		if err := os.WriteFile(path, resolvConf(config.GetDnsConfig()), 0o644); err != nil {
			return "", fmt.Errorf("writing the pod's resolv.conf: %w", err)
		}
	}
	hostNetwork := config.GetLinux().GetSecurityContext().GetNamespaceOptions().
		GetNetwork() == runtimeapi.NamespaceMode_NODE
	if r.options.NewNetwork != nil && !hostNetwork {
		network, err := r.options.NewNetwork(config)
		if err != nil {
			return "", fmt.Errorf("making the network of the pod: %w", err)
		}
		s.network = network
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		if s.network != nil {
			s.network.Close()
		}
		return "", errSpawnerStopped
	}
	r.sandboxes[s.id] = s
	return s.id, nil
}

func resolvConf(dns *runtimeapi.DNSConfig) []byte {
	var text strings.Builder
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if len(dns.GetSearches()) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(dns.GetSearches(), " "))
	}
	if len(dns.GetOptions()) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(dns.GetOptions(), " "))
	}
	return []byte(text.String())
}

// StopPodSandbox implements RuntimeService: it kills what still runs in the sandbox and gives its network back.
func (r *Runtime) StopPodSandbox(_ context.Context, id string) error {
	r.mu.Lock()
	s, ok := r.sandboxes[id]
	r.mu.Unlock()
	if !ok {
		return nil
	}
	return r.stopSandbox(s)
}

func (r *Runtime) stopSandbox(s *sandbox) error {
	r.mu.Lock()
	alreadyStopped := s.stopped
	s.stopped = true
	var running []*container
	for _, c := range r.containers {
		if c.sandbox == s.id && c.running() {
			running = append(running, c)
		}
	}
	r.mu.Unlock()
	for _, c := range running {
		c.kill()
	}
	if s.network == nil || alreadyStopped {
		return nil
	}
	if err := s.network.Close(); err != nil {
		return fmt.Errorf("taking down the network of the pod: %w", err)
	}
	return nil
}

// RemovePodSandbox implements RuntimeService.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sandboxes, id)
	return nil
}

// PodSandboxStatus implements RuntimeService.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	network := &runtimeapi.PodSandboxNetworkStatus{Ip: r.options.HostAddress.String()}
	if s.network != nil {
		network.Ip = s.network.Address().String()
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(), Network: network,
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
	}}, nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.stopped {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

// ListPodSandbox implements RuntimeService.
func (r *Runtime) ListPodSandbox(_ context.Context,
	filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.PodSandbox
	for _, s := range r.sandboxes {
		if filter.GetId() != "" && filter.GetId() != s.id ||
			filter.GetState() != nil && filter.GetState().GetState() != s.state() ||
			!hasLabels(s.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		})
	}
	return list, nil
}

// NetworkOf returns the network of a pod's sandbox: nil for one on the machine's, and false if there is no sandbox.
func (r *Runtime) NetworkOf(podUID string) (Network, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s.uid() == podUID && !s.stopped {
			return s.network, true
		}
	}
	return nil, false
}
