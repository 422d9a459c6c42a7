package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	webhookserver "sigs.k8s.io/controller-runtime/pkg/webhook"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission/slim"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/listwatch"
	"github.com/musterhq/muster/internal/webhook"
)

// newManager returns the manager. lost is called if another operator has led since this one did.
func newManager(cluster *rest.Config, o options, term term, trainingJobGroup string, hooks webhooks,
	lost func(why error)) (manager.Manager, error) {
	metrics, err := metricsServer(o)
	if err != nil {
		return nil, err
	}
	events := &leaderEvents{}
	lock, err := newLock(cluster, ownNamespace(o), term, events, lost)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                              newScheme(trainingJobGroup),
		Metrics:                             metrics,
		HealthProbeBindAddress:              o.probeAddress,
		WebhookServer:                       webhookserver.NewServer(hooks.options(o)),
		LeaderElection:                      o.leaderElect,
		LeaderElectionID:                    leaseName, // only for logs and metrics, beside the lock
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true, // after a clean shutdown another operator can lead at once
		GracefulShutdownTimeout:             ptr.To(shutdownTimeout),
		LeaseDuration:                       ptr.To(term.patience + term.lease), // what others see is up to the lock
		RenewDeadline:                       &term.patience,
		RetryPeriod:                         &term.retry,
		NewCache:                            listwatch.NewCache(nil, quotaGroups...),
		// Operators that do not lead fill their caches too, so that they can take over at once.
		Controller: ctrlconfig.Controller{EnableWarmup: ptr.To(true)},
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: only(o.namespace),
			ByObject:          cached(o.namespace, hooks),
		},
		// Reconciles must see their own writes: a plan is derived from what the cache has.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	events.Manager = mgr
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("caches", listwatch.Synced(mgr.GetCache()))
}

// quotaGroups are the API groups of objects that quota decisions depend on: for these the cache must not skip an
// undecodable object, or the quota that it holds would be given away. A Workload that holds none is skipped.
var quotaGroups = []string{kueue.GroupVersion.Group, scheduling.GroupVersion.Group}

// only limits the cache to a namespace, if one is given. Cluster-scoped objects are cached in any case.
func only(namespace string) map[string]cache.Config {
	if namespace == "" {
		return nil
	}
	return map[string]cache.Config{namespace: {}}
}

// cached returns which objects of which kinds the cache keeps, and in what form. Pods are kept of all namespaces, even
// if jobs of only one are run, because they use the capacity of nodes.
func cached(namespace string, hooks webhooks) map[client.Object]cache.ByObject {
	out := slim.ByObject()
	if namespace != "" {
		for kind, by := range out {
			if _, pods := kind.(*corev1.Pod); pods {
				by.Namespaces = map[string]cache.Config{cache.AllNamespaces: {}}
				out[kind] = by
			}
		}
	}
	out[&corev1.Event{}] = controller.Refusals()
	if hooks.certificates != nil {
		kind, which := webhook.Cached()
		out[kind] = which
	}
	return out
}

// newScheme returns a scheme with every API that the operator reads or writes.
func newScheme(trainingJobGroup string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, jobset.AddToScheme,
		tensorstack.AddToScheme, lattice.AddToScheme, volcano.AddToScheme, bus.AddToScheme, scheduling.AddToScheme,
		breezeml.AddToSchemeAs(trainingJobGroup)} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
