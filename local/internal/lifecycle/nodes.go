package lifecycle

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/musterhq/muster/local/internal/controlplane"
	"github.com/musterhq/muster/local/internal/execnode"
	"github.com/musterhq/muster/local/internal/simnode"
	"github.com/musterhq/muster/local/internal/statedir"
)

// Nodes selects the nodes of a cluster.
type Nodes struct {
	// Exec is the number of nodes that run pods as processes of this machine.
	Exec int
	// Simulated is the number of simulated nodes, whose pods run nothing, each with SimulatedGPUs of the product
	// SimulatedGPUProduct.
	Simulated           int
	SimulatedGPUs       int
	SimulatedGPUProduct string
}

// startNodes returns when the cluster has exactly these nodes, apart from nodes that others registered, and they are
// Ready. stop stops them all; it must be called after an error as well.
func startNodes(ctx context.Context, n Nodes, endpoints []netip.AddrPort, plane *controlplane.ControlPlane,
	dir *statedir.Dir, out *report) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	client, err := kubernetes.NewForConfig(plane.Admin())
	if err != nil {
		return stop, fmt.Errorf("making a client of kube-apiserver: %w", err)
	}
	if err := removeExecNodes(ctx, client, n.Exec); err != nil {
		return stop, err
	}
	for i := range n.Exec {
		node, err := startExecNode(ctx, execNodePrefix+strconv.Itoa(i), endpoints, plane, dir, out)
		if err != nil {
			return stop, err
		}
		stops = append(stops, node.Stop)
	}
	// Call it also for zero nodes: it removes the nodes of an earlier start.
	simulated, err := startWithin(ctx, func(ctx context.Context) (*simnode.Cluster, error) {
		return simnode.Start(ctx, simnode.Config{
			RestConfig: plane.Admin(),
			Nodes:      n.Simulated,
			GPUs:       n.SimulatedGPUs,
			GPUProduct: n.SimulatedGPUProduct,
			Logf:       out.line,
		})
	})
	if err != nil {
		return stop, err
	}
	stops = append(stops, simulated.Stop)
	if n.Simulated > 0 {
		out.step("%d simulated nodes are ready", n.Simulated)
	}
	return stop, nil
}

// execNodePrefix, followed by a number from 0, is the name of an exec node.
const execNodePrefix = "local-"

func startExecNode(ctx context.Context, name string, endpoints []netip.AddrPort, plane *controlplane.ControlPlane,
	dir *statedir.Dir, out *report) (*execnode.Node, error) {
	certificate, clients, err := plane.KubeletServing()
	if err != nil {
		return nil, err
	}
	node, err := startWithin(ctx, func(ctx context.Context) (*execnode.Node, error) {
		return execnode.Start(ctx, execnode.Config{
			RestConfig:    plane.Admin(),
			Name:          name,
			Dir:           dir.Path("nodes", name),
			ServingCert:   certificate,
			ClientCAs:     clients,
			ClusterDomain: plane.ClusterDomain(),
			HostEndpoints: endpoints,
			Logf:          out.line,
		})
	})
	if err != nil {
		return nil, err
	}
	out.step("node %s is ready", name)
	return node, nil
}

// removeExecNodes deletes the Nodes of an earlier start beyond the present number: nothing would run pods scheduled to
// them.
func removeExecNodes(ctx context.Context, client kubernetes.Interface, keep int) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for nodes of an earlier start: %w", err)
	}
	for _, node := range nodes.Items {
		number, ours := strings.CutPrefix(node.Name, execNodePrefix)
		if i, err := strconv.Atoi(number); !ours || err != nil || i < keep {
			continue
		}
		if err := client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting node %s of an earlier start: %w", node.Name, err)
		}
	}
	return nil
}

// startWithin starts something that runs until the context passed to start ends. The end of ctx aborts the start but
// does not stop what was started, which is stopped in its own order.
func startWithin[T any](ctx context.Context, start func(context.Context) (T, error)) (T, error) {
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	started, err := start(lifetime)
	if err != nil {
		cancel()
		return started, err
	}
	release()
	return started, nil
}
