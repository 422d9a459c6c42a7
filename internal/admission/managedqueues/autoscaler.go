package managedqueues

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/listwatch"
)

// sign is an object whose existence shows that a node autoscaler is installed.
type sign struct {
	kind schema.GroupVersionKind
	client.ObjectKey
}

// autoscalerSigns are the status of cluster-autoscaler, and the CRD of Karpenter's node pools.
var autoscalerSigns = []sign{
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		client.ObjectKey{Namespace: "kube-system", Name: "cluster-autoscaler-status"}},
	{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		client.ObjectKey{Name: "nodepools.karpenter.sh"}},
}

// object returns an empty object of the sign's kind, for which only metadata is read.
func (s sign) object() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(s.kind)
	return out
}

// newSignCache adds a cache to the manager that has only the signs of an autoscaler. The manager's own cache would
// have to hold all ConfigMaps.
func newSignCache(mgr ctrl.Manager) (cache.Cache, error) {
	only := map[client.Object]cache.ByObject{}
	for _, sign := range autoscalerSigns {
		by := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", sign.Name)}
		if sign.Namespace != "" {
			by = cache.ByObject{Namespaces: map[string]cache.Config{sign.Namespace: {FieldSelector: by.Field}}}
		}
		only[sign.object()] = by
	}
	signs, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: only, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the watch for node autoscalers: %w", err)
	}
	if err := mgr.Add(everyReplicaCache{signs}); err != nil {
		return nil, fmt.Errorf("adding the watch for node autoscalers: %w", err)
	}
	if err := mgr.AddReadyzCheck("autoscalers", listwatch.Synced(signs)); err != nil {
		return nil, fmt.Errorf("adding the check of the watch for node autoscalers: %w", err)
	}
	return signs, nil
}

// everyReplicaCache is a cache that also runs on replicas that do not lead: controllers that warm up wait for it, and
// end the operator if it does not sync.
type everyReplicaCache struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everyReplicaCache) NeedLeaderElection() bool { return false }

// autoscalerSeen reports whether any sign of a node autoscaler exists.
func autoscalerSeen(ctx context.Context, signs client.Reader) (bool, error) {
	for _, sign := range autoscalerSigns {
		switch err := signs.Get(ctx, sign.ObjectKey, sign.object()); {
		case err == nil:
			return true, nil
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("looking for %s: %w", sign, err)
		}
	}
	return false, nil
}

// String returns the sign's kind and key.
func (s sign) String() string { return s.kind.Kind + " " + s.ObjectKey.String() }
