package execnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/local/internal/execnode/process"
)

// Config configures a node. All fields are required unless they are said to be optional.
type Config struct {
	// RestConfig has a node's rights and more: it reads Services, EndpointSlices, ConfigMaps, Secrets and claims of all
	// namespaces, and creates tokens for service accounts.
	RestConfig *rest.Config
	// Name of the Node.
	Name string
	// Dir is the node's own directory: pods, volumes and logs. A node that starts on the directory of an earlier one of
	// the same name continues with its pods.
	Dir string
	// ServingCert is for the address 127.0.0.1, on which the API server reaches the node.
	ServingCert tls.Certificate
	// ClientCAs sign the certificates of clients that may read logs and run commands in containers.
	ClientCAs *x509.CertPool
	// ClusterDomain is the domain of service names, such as cluster.local.
	ClusterDomain string
	// HostEndpoints are addresses on the machine's loopback that pods with a network of their own can reach too. May be
	// empty.
	HostEndpoints []netip.AddrPort
	// Logf receives lines for the user: what this machine does not allow, once at the start.
	Logf func(format string, args ...any)

	// limit is the maximum isolation of containers, lowered by tests. Nil is all that the machine allows.
	limit *process.Isolation
	// hostNetwork puts pods on the machine's network even as root; for tests.
	hostNetwork bool
}

// Node is a running node.
type Node struct {
	config      Config
	client      kubernetes.Interface
	isolation   process.Isolation
	capacity    corev1.ResourceList
	hostAddress netip.Addr

	cluster *cluster // the objects that the node watches
	network *network // nil on the machine's network
	kubelet *kubelet // the kubelet's parts
	pods    *pods    // a worker for each pod
	server  *server  // kubectl logs, kubectl exec

	stop    context.CancelFunc
	cleanup []func()
}

// registrationTimeout bounds the registration of the Node until pods may be scheduled to it.
const registrationTimeout = 30 * time.Second

// Start registers a node and returns when it is Ready. It runs until Stop, or until the context ends; Stop must be
// called in both cases.
func Start(ctx context.Context, config Config) (*Node, error) {
	n := &Node{config: config}
	if absolute, err := filepath.Abs(config.Dir); err == nil { // volumes are mounted by their full path
		n.config.Dir = absolute
	}
	ctx, n.stop = context.WithCancel(ctx)
	if err := n.start(ctx); err != nil {
		n.Stop()
		return nil, fmt.Errorf("starting node %s: %w", config.Name, err)
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	var err error
	if n.client, err = newClient(n.config.RestConfig, n.config.Name); err != nil {
		return err
	}
	if n.capacity, err = capacity(); err != nil {
		return err
	}
	for _, dir := range []string{n.config.Dir, n.podsDir(), n.logsDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the node's directory: %w", err)
		}
	}
	spawner := process.NewSpawner()
	n.onStop(spawner.Stop)
	if err := n.detect(spawner); err != nil {
		return err
	}
	if n.cluster, err = watchCluster(ctx, n.client, n.config.Name); err != nil {
		return err
	}
	if err := n.openNetwork(); err != nil {
		return err
	}
	n.hostAddress = n.chooseAddress()
	if n.kubelet, err = newKubelet(ctx, n, spawner); err != nil {
		return err
	}
	n.onStop(n.kubelet.close)
	if n.server, err = serve(n); err != nil {
		return err
	}
	n.onStop(n.server.close)
	if err := n.pods.start(ctx); err != nil {
		return err
	}
	n.onStop(n.pods.wait)
	ready, cancel := context.WithTimeout(ctx, registrationTimeout)
	defer cancel()
	return n.register(ready)
}

func newClient(config *rest.Config, node string) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "muster-local/node/" + node
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf,application/json"
	// No client-side limit: the API server is on this machine and does its own flow control.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// detect determines which isolation containers can have here.
func (n *Node) detect(spawner *process.Spawner) error {
	limit := process.Isolation{Mounts: true, Processes: true}
	if n.config.limit != nil {
		limit = *n.config.limit
	}
	scratch, err := os.MkdirTemp(n.config.Dir, "trial-")
	if err != nil {
		return fmt.Errorf("making a directory for a trial: %w", err)
	}
	defer os.RemoveAll(scratch)
	n.isolation, err = process.Detect(spawner, limit, scratch)
	if err != nil {
		n.config.Logf("node %s: this machine allows no mounts without root: pods with volume mounts are refused, and pods cannot find each other by name (%v)",
			n.config.Name, firstLine(err))
	}
	return nil
}

func firstLine(err error) error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) && len(several.Unwrap()) > 0 {
		return several.Unwrap()[0]
	}
	return err
}

// chooseAddress returns the address by which pods know the machine. If it has no other, that is its address in the pod
// network.
func (n *Node) chooseAddress() netip.Addr {
	address := hostAddress()
	if address.IsLoopback() && n.network != nil {
		return n.network.address
	}
	return address
}

func (n *Node) podsDir() string { return filepath.Join(n.config.Dir, "pods") }

func (n *Node) podDir(uid types.UID) string { return filepath.Join(n.podsDir(), string(uid)) }

func (n *Node) logsDir() string { return filepath.Join(n.config.Dir, "logs") }

// memoryDir returns the directory of volumes in memory. It belongs to this node alone, and is the same for the next
// node on the same directory.
func (n *Node) memoryDir() string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return filepath.Join(n.config.Dir, "memory")
	}
	hash := fnv.New64a()
	hash.Write([]byte(n.config.Dir))
	return filepath.Join(memory, "muster-"+strconv.Itoa(os.Getuid())+"-"+strconv.FormatUint(hash.Sum64(), 36))
}

func (n *Node) onStop(f func()) { n.cleanup = append(n.cleanup, f) }

// Stop kills every process that the node started, after a short grace period, and removes its networks. It returns when
// nothing of them is left. The Node object stays: a node on the same directory takes it over.
func (n *Node) Stop() {
	n.stop()
	for len(n.cleanup) > 0 {
		last := n.cleanup[len(n.cleanup)-1]
		n.cleanup = n.cleanup[:len(n.cleanup)-1]
		last()
	}
}
