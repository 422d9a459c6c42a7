package jobs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

const (
	// controllerIndex finds the children of a job by its UID.
	controllerIndex = "metadata.controller.uid"
	// reconcilesAtOnce is how many jobs of an API are reconciled concurrently.
	reconcilesAtOnce = 16
)

// Settings are the same for all job APIs.
type Settings struct {
	// Backoff applies to jobs whose pods are refused.
	Backoff Backoff
	// NativeGangs makes pods belong to PodGroups; see HasNativeGangs. Without it, PodGroups left from an earlier start
	// are loosened.
	NativeGangs bool
	// StrictServiceNames says that Services must have names that begin with a letter; see HasStrictServiceNames.
	StrictServiceNames bool
	// Readiness says when it is reported on Workloads that their pods are ready.
	Readiness Readiness
	// Busy reports whether the API server is overloaded; nil means never.
	Busy func() bool
	// Agent returns what is needed to run commands of pods under muster-agent, as of now. Nil if no job wants it.
	Agent func() podspec.Agent
}

// AddTo adds a controller for each of the APIs to the manager. The manager's cache should keep only the events that
// Refusals selects.
func AddTo(mgr ctrl.Manager, x *write.Executor, settings Settings, apis ...Served) error {
	podGroups := settings.NativeGangs
	if !podGroups {
		var err error
		if podGroups, err = servesPodGroups(mgr.GetRESTMapper()); err != nil {
			return err
		}
	}
	if err := indexChildren(mgr, podGroups, apis); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &kueue.Workload{}, ownerIndex, ownerKeys); err != nil {
		return fmt.Errorf("indexing Workloads by the job's name: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Event{}, refusalIndex, refusalKeys); err != nil {
		return fmt.Errorf("indexing events by what they are about: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Node{}, HostnameIndex, HostnameOf); err != nil {
		return fmt.Errorf("indexing Nodes by host name: %w", err)
	}
	if err := (countForgetter{mgr.GetClient()}).addTo(mgr); err != nil {
		return fmt.Errorf("adding what forgets the counts of deleted namespaces: %w", err)
	}
	left := &orphans{client: mgr.GetClient(), live: mgr.GetAPIReader(), executor: x, clock: clock.RealClock{}, apis: apis}
	if err := left.addTo(mgr); err != nil {
		return err
	}
	watches := newSharedWatches(mgr.GetCache())
	for _, api := range apis {
		if err := api.addTo(mgr, watches, x, settings, api.owned(podGroups), apis); err != nil {
			return err
		}
	}
	return nil
}

// indexChildren makes the cache index children by the job that they belong to. A kind that several APIs own is indexed
// once.
func indexChildren(mgr ctrl.Manager, podGroups bool, apis []Served) error {
	indexed := map[schema.GroupVersionKind]bool{}
	for _, api := range apis {
		for _, kind := range api.owned(podGroups) {
			gvk, err := apiutil.GVKForObject(kind, mgr.GetScheme())
			if err != nil {
				return fmt.Errorf("indexing %T: %w", kind, err)
			}
			if indexed[gvk] {
				continue
			}
			indexed[gvk] = true
			if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind, controllerIndex, api.controllerOf); err != nil {
				return fmt.Errorf("indexing %s by controller: %w", gvk.Kind, err)
			}
		}
	}
	return nil
}
