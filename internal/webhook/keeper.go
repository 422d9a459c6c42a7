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

// configurationName is the name of the chart's MutatingWebhookConfiguration.
const configurationName = "muster-webhooks"

// Cached restricts the operator's cache to the webhook configuration of that name, the only one that it may read.
func Cached() (client.Object, cache.ByObject) {
	return &registration.MutatingWebhookConfiguration{},
		cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", configurationName)}
}

// keeper sets the CA bundles of the webhook configuration to the trusted certificates.
type keeper struct {
	client  client.Client
	trusted func() string
}

func (k *keeper) addTo(mgr manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(mgr).Named("webhook").For(&registration.MutatingWebhookConfiguration{}).
		Complete(k); err != nil {
		return fmt.Errorf("keeping %s: %w", configurationName, err)
	}
	return nil
}

// Reconcile updates the CA bundles if they differ. An upgrade of the chart does not set them; if another client
// overwrites them, they are written again.
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
		// A patch replaces the whole list of webhooks, so it must not overwrite a concurrent change.
		if err := k.client.Patch(ctx, after,
			client.MergeFromWithOptions(&seen, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("updating the CA bundles: %w", err)
		}
	}
	return ctrl.Result{RequeueAfter: certificate.RenewInterval}, nil
}
