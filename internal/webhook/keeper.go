package webhook

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/musterhq/muster/internal/certificate"
)

// ConfigurationName is that of the object by which the chart has the API server ask the operator.
const ConfigurationName = "muster-webhooks"

// Cached is what the operator's cache keeps of such objects: that one alone, which is all that it may read.
func Cached() (client.Object, cache.ByObject) {
	return &registration.MutatingWebhookConfiguration{}, cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", ConfigurationName)}
}

// overlap is for how long an authority that is none any more is trusted: by then all operators have looked, and none shows what it signed.
const overlap = 2 * certificate.LookEvery

// keeper says in the object whom the API server is to trust.
type keeper struct {
	client  client.Client
	trusted func() string
	clock   clock.PassiveClock

	mu sync.Mutex
	// present is what was to be trusted at the last look, since then; before is what was before that.
	present, before string
	since           time.Time
}

func (k *keeper) addTo(mgr manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(mgr).Named("webhook").For(&registration.MutatingWebhookConfiguration{}).Complete(k); err != nil {
		return fmt.Errorf("keeping %s: %w", ConfigurationName, err)
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
	bundle, changed, after := []byte(k.bundle()), false, seen.DeepCopy()
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

// bundle is what the API server is to trust now.
func (k *keeper) bundle() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	trusted, now := k.trusted(), k.clock.Now()
	if trusted != k.present {
		k.present, k.before, k.since = trusted, k.present, now
	}
	switch {
	case now.Sub(k.since) >= overlap || strings.Contains(k.present, k.before):
		return k.present
	case strings.Contains(k.before, k.present):
		return k.before
	}
	return k.before + k.present
}
