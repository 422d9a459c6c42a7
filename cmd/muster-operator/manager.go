package main

import (
	"fmt"
	"os"

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
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/listwatch"
	"github.com/musterhq/muster/internal/webhook"
)

func newManager(cluster *rest.Config, o options, trainingJobGroup string, hooks webhooks) (manager.Manager, error) {
	namespace := o.leaderElectionNamespace
	if namespace == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		namespace = "kube-system"
	}
	metrics, err := metricsServer(o)
	if err != nil {
		return nil, err
	}
	term, err := termOf(o.leaseDuration)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        newScheme(trainingJobGroup),
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.probeAddress,
		WebhookServer:                 webhookserver.NewServer(hooks.options(o)),
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "muster.dev",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true, // who ends in order has nobody wait
		LeaseDuration:                 &term.lease,
		RenewDeadline:                 &term.renew,
		RetryPeriod:                   &term.retry,
		GracefulShutdownTimeout:       ptr.To(shutdownPatience),
		NewCache:                      listwatch.NewCache(nil, quotaGroups...),
		// Who does not lead reads along, so that it can take over at once.
		Controller: ctrlconfig.Controller{EnableWarmup: ptr.To(true)},
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: only(o.namespace),
			ByObject:          cached(o.namespace, hooks),
		},
		// What a reconcile wrote, the next one sees: plans are made of what there is.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("caches", listwatch.Synced(mgr.GetCache()))
}

// quotaGroups are the API groups that decisions about quota rest on: one object less would have what it holds be given to others.
var quotaGroups = []string{kueue.GroupVersion.Group, scheduling.GroupVersion.Group}

// only has the cache keep what is in the namespace, if one is named; what has none is kept all the same.
func only(namespace string) map[string]cache.Config {
	if namespace == "" {
		return nil
	}
	return map[string]cache.Config{namespace: {}}
}

// cached is what the cache keeps less than all of. Of pods it keeps those of all namespaces, whatever jobs are run: they take
// room of nodes.
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
	out[&corev1.Event{}] = jobs.Refusals()
	if hooks.certificates != nil {
		kind, which := webhook.Cached()
		out[kind] = which
	}
	return out
}

// newScheme knows every API that the operator reads or writes.
func newScheme(trainingJobGroup string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, jobset.AddToScheme, tensorstack.AddToScheme,
		lattice.AddToScheme, volcano.AddToScheme, bus.AddToScheme, scheduling.AddToScheme, breezeml.AddToSchemeAs(trainingJobGroup)} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
