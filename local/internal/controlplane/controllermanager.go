package controlplane

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// heartbeatGrace is how long a node may send no heartbeat before it counts as lost: practically forever, since local
// and simulated nodes send none.
const heartbeatGrace = "876000h"

// endpointsBatchPeriod is how long the controllers of endpoints wait for more changes of pods. It delays host names of
// pods by as much; Kubernetes' own scalability tests use 500 ms.
const endpointsBatchPeriod = "200ms"

// disabledControllers are disabled since they need a cloud, pod CIDRs, attachable disks or a metrics server. The TTL
// controller would annotate each node with what only kubelets read.
var disabledControllers = []string{
	names.HorizontalPodAutoscalerController,
	names.NodeIpamController,
	names.PersistentVolumeAttachDetachController,
	names.PersistentVolumeExpanderController,
	names.SELinuxWarningController,
	names.TTLController,
}

type controllerManager struct {
	config *config.Config
	cancel context.CancelFunc
}

func newControllerManager(ctx context.Context, c *credentials, log *logFile) (*controllerManager, error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	known, offByDefault, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	if err := parse(o.Flags(known, offByDefault, aliases), []string{
		"--kubeconfig=" + c.managerKubeconfig,
		"--kube-api-qps=" + clientQPS,
		"--kube-api-burst=" + clientBurst,
		"--leader-elect=false",
		"--profiling=false",
		"--secure-port=0",
		"--controllers=*,-" + strings.Join(disabledControllers, ",-"),
		// Each controller acts as its own service account, as in clusters
		// whose policies look at the user.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.serviceAccountKey,
		"--root-ca-file=" + c.authority.CertFile(),
		"--cluster-signing-cert-file=" + c.authority.CertFile(),
		"--cluster-signing-key-file=" + c.authority.KeyFile(),
		"--service-cluster-ip-range=" + serviceRange,
		"--node-monitor-grace-period=" + heartbeatGrace,
		"--node-startup-grace-period=" + heartbeatGrace,
		// Each period copies every node: with thousands of idle nodes the default of 5 s takes 5 % of a core.
		"--node-monitor-period=10s",
		"--concurrent-job-syncs=10",
		"--concurrent-gc-syncs=10",
		// Otherwise the endpoints of a headless Service are written again for nearly every pod of a gang that starts,
		// all of them each time.
		"--endpoint-updates-batch-period=" + endpointsBatchPeriod,
		"--endpointslice-updates-batch-period=" + endpointsBatchPeriod,
	}); err != nil {
		return nil, fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	// Config starts what lives as long as the controllers, not as the start.
	lifetime, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), log.logger))
	built, err := o.Config(lifetime, known, offByDefault, aliases)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("building kube-controller-manager: %w", err)
	}
	return &controllerManager{config: built, cancel: cancel}, nil
}

func (c *controllerManager) run(ctx context.Context) error {
	defer c.cancel()
	return app.Run(ctx, c.config.Complete())
}

// awaitPodsCreatable blocks until namespace default has what controllers create there and every pod needs: its service
// account and the ConfigMap with the CA certificate.
func awaitPodsCreatable(ctx context.Context, admin *rest.Config) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("making a client of kube-apiserver: %w", err)
	}
	core := client.CoreV1().RESTClient()
	var all errgroup.Group
	for resource, object := range map[string]struct {
		name string
		kind runtime.Object
	}{
		"serviceaccounts": {"default", &corev1.ServiceAccount{}},
		"configmaps":      {"kube-root-ca.crt", &corev1.ConfigMap{}},
	} {
		all.Go(func() error {
			one := fields.OneTermEqualSelector("metadata.name", object.name)
			list := cache.NewListWatchFromClient(core, resource, corev1.NamespaceDefault, one)
			_, err := watchtools.UntilWithSync(ctx, list, object.kind, nil, appeared)
			if err != nil {
				return fmt.Errorf("waiting for %s %s in the namespace default: %w", resource, object.name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

func appeared(event watch.Event) (bool, error) {
	return event.Type == watch.Added, nil
}
