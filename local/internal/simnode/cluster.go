package simnode

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Config configures a simulation.
type Config struct {
	// RestConfig is that of a user who may write nodes and the status of pods. It is copied, since the simulation sets
	// its own request limits.
	RestConfig *rest.Config
	// Nodes is how many machines there are. Zero is allowed, and removes the machines of an earlier run.
	Nodes int
	// GPUs is how many each machine has. Zero makes machines without GPUs and without GPU labels.
	GPUs int
	// GPUProduct is the value of the label nvidia.com/gpu.product, as NVIDIA's feature discovery would set it, for
	// example NVIDIA-H100-80GB-HBM3.
	GPUProduct string
	// Logf receives, one line at a time, what a user should know. May be nil.
	Logf func(format string, args ...any)
}

// Cluster is a running simulation.
type Cluster struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Check validates the configuration; the error is for the user who gave it.
func (c Config) Check() error {
	c.Logf = func(string, ...any) {}
	_, err := newModel(c)
	return err
}

// Start makes the Nodes match the configuration, and then drives the pods on them until ctx ends or Stop is called. It
// returns when all Nodes exist, are Ready and accept pods. Nodes of an earlier run are updated if they differ, and
// deleted if there are too many.
func Start(ctx context.Context, c Config) (*Cluster, error) {
	if c.RestConfig == nil {
		return nil, errors.New("simulated nodes need a REST configuration of the API server")
	}
	client, err := newClient(c.RestConfig)
	if err != nil {
		return nil, err
	}
	return start(ctx, client, c)
}

func start(ctx context.Context, client kubernetes.Interface, c Config) (*Cluster, error) {
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	kind, err := newModel(c)
	if err != nil {
		return nil, err
	}
	if err := register(ctx, client, kind, c.Nodes); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	cluster := &Cluster{cancel: cancel}
	d := newDriver(client, c.Logf)
	if err := d.start(ctx, &cluster.running); err != nil {
		cluster.Stop()
		return nil, err
	}
	return cluster, nil
}

// Stop ends the simulation and returns when all its goroutines have ended. Nodes and pods stay as they are, for the
// next Start. It may be called more than once.
func (c *Cluster) Stop() {
	c.cancel()
	c.running.Wait()
}

// newClient returns a client without client-side limits: it stands for thousands of kubelets, each of which would have
// its own, and bounds its load by its number of workers instead.
func newClient(shared *rest.Config) (kubernetes.Interface, error) {
	config := rest.CopyConfig(shared)
	config.QPS = -1
	config.RateLimiter = nil
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "muster-simnode"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the simulated nodes: %w", err)
	}
	return client, nil
}
