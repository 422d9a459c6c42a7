package controlplane

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
)

// Requests per second, and burst, of the scheduler and of each controller. The API server does flow control; a
// client-side limit would only delay thousands of pods.
const (
	clientQPS   = "5000"
	clientBurst = "10000"
)

type kubeScheduler struct {
	config    *config.CompletedConfig
	scheduler *scheduler.Scheduler
	cancel    context.CancelFunc
}

// newScheduler builds the scheduler with its default profile.
func newScheduler(ctx context.Context, kubeconfig string, log *logFile) (*kubeScheduler, error) {
	o := options.NewOptions()
	if err := parse(*o.Flags, []string{
		"--kubeconfig=" + kubeconfig,
		"--kube-api-qps=" + clientQPS,
		"--kube-api-burst=" + clientBurst,
		"--leader-elect=false",
		"--profiling=false",
		"--secure-port=0",
	}); err != nil {
		return nil, fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	var err error
	if o.InformerName, err = cache.NewInformerName("kube-scheduler"); err != nil {
		return nil, fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	// Setup starts what lives as long as the scheduler, not as the start.
	lifetime, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), log.logger))
	completed, built, err := app.Setup(lifetime, o)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("building kube-scheduler: %w", err)
	}
	return &kubeScheduler{config: completed, scheduler: built, cancel: cancel}, nil
}

func (k *kubeScheduler) run(ctx context.Context) error {
	defer k.cancel()
	return app.Run(ctx, k.config, k.scheduler)
}

// awaitReady blocks until the scheduler's caches have synced.
func (k *kubeScheduler) awaitReady(ctx context.Context) error {
	k.config.InformerFactory.WaitForCacheSync(ctx.Done())
	if err := k.scheduler.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("waiting for kube-scheduler: %w", err)
	}
	return nil
}
