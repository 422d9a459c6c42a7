package webhook

import (
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/musterhq/muster/internal/certificate"
)

// TestTheAPIServerTrustsTheOperatorsCertificates: the CA bundle is written at once, and only if it differs.
func TestTheAPIServerTrustsTheOperatorsCertificates(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := registration.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := &registration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []registration.MutatingWebhook{{Name: "a.muster.dev"}, {Name: "b.muster.dev"}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).Build()
	trusted := ""
	k := &keeper{client: c, trusted: func() string { return trusted }}
	key := client.ObjectKeyFromObject(object)
	version := ""
	for _, step := range []struct {
		trusted string
		written bool
	}{{"one ", true}, {"one ", false}, {"one two ", true}, {"two one ", true}, {"two one ", false}} {
		trusted = step.trusted
		result, err := k.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter != certificate.RenewInterval {
			t.Fatalf("Reconcile = %+v, %v, want a requeue after the renewal interval", result, err)
		}
		var now registration.MutatingWebhookConfiguration
		if err := c.Get(t.Context(), key, &now); err != nil {
			t.Fatal(err)
		}
		for _, how := range now.Webhooks {
			if got := string(how.ClientConfig.CABundle); got != step.trusted {
				t.Errorf("%+v: CA bundle of %s = %q", step, how.Name, got)
			}
		}
		if written := now.ResourceVersion != version; written != step.written {
			t.Errorf("%+v: written = %t", step, written)
		}
		version = now.ResourceVersion
	}
}

func TestNothingIsWrittenWithoutAWebhookConfiguration(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := registration.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	k := &keeper{client: fake.NewClientBuilder().WithScheme(scheme).Build(), trusted: func() string { return "" }}
	if result, err := k.Reconcile(t.Context(),
		ctrl.Request{NamespacedName: client.ObjectKey{Name: configurationName}}); err != nil || result != (ctrl.Result{}) {
		t.Errorf("Reconcile = %+v, %v, want nothing", result, err)
	}
}
