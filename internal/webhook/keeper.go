package webhook

import (
	"bytes"
	"context"
	"fmt"

	registration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/musterhq/muster/internal/certificate"
)

// configurationName is that of the object by which the chart has the API server ask the operator.
const configurationName = "muster-webhooks"

// Cached is what the operator's cache keeps of such objects: that one alone, which is all that it may read.
func Cached() (client.Object, cache.ByObject) {
	return &registration.MutatingWebhookConfiguration{}, cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", configurationName)}
}

// keeper says in the object whom the API server is to trust: all of whose certificates an operator may show.
type keeper struct {
	client  client.Client
	trusted func() string
}

func (k *keeper) addTo(mgr manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(mgr).Named("webhook").For(&registration.MutatingWebhookConfiguration{}).Complete(k); err != nil {
		return fmt.Errorf("keeping %s: %w", configurationName, err)
	}
	return nil
}

// Reconcile writes what the API server does not trust yet, and what it is to trust no more. Who applies the object anew, as an upgrade of
// the chart does, leaves that alone, or it is written again.
func (k *keeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var seen registration.MutatingWebhookConfiguration
	if err := k.client.Get(ctx, request.NamespacedName, &seen); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	bundle, changed, after := []byte(k.trusted()), false, seen.DeepCopy()
	for i := range after.Webhooks {
		how := &after.Webhooks[i].ClientConfig
		changed = changed || !bytes.Equal(how.CABundle, bundle)
		how.CABundle = bundle
	}
	if changed {
		// A list is written as a whole: not over what somebody else has written meanwhile.
		if err := k.client.Patch(ctx, after, client.MergeFromWithOptions(&seen, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("saying whom the API server is to trust: %w", err)
		}
	}
	return ctrl.Result{RequeueAfter: certificate.LookEvery}, nil
}
