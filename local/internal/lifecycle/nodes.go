package lifecycle

import (
	"context"

	"github.com/musterhq/muster/local/internal/controlplane"
	"github.com/musterhq/muster/local/internal/simnode"
	"github.com/musterhq/muster/local/internal/statedir"
)

// Nodes says which nodes a cluster has.
type Nodes struct {
	// Exec is the number of nodes that run pods as processes of this machine.
	Exec int
	// Simulated is the number of nodes whose pods only pretend to run, each
	// with SimulatedGPUs of the product SimulatedGPUProduct.
	Simulated           int
	SimulatedGPUs       int
	SimulatedGPUProduct string
}

// startNodes returns when all nodes are registered. stop ends them all.
func startNodes(ctx context.Context, n Nodes, plane *controlplane.ControlPlane, _ *statedir.Dir, out *report) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	// With none asked for, too: it removes those of an earlier start.
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
		stop()
		return nil, err
	}
	stops = append(stops, simulated.Stop)
	if n.Simulated > 0 {
		out.step("%d simulated nodes are registered", n.Simulated)
	}
	return stop, nil
}

// startWithin starts something that lives until its context ends, such that
// the end of ctx gives up the start, but does not end what was started: that
// is stopped in its turn.
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
