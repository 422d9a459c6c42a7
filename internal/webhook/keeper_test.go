package webhook

import (
	"testing"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/musterhq/muster/internal/certificate"
)

// TestTheAPIServerTrustsWhatOperatorsShow: at once what they show now and will, and until all of them have looked what they did show.
func TestTheAPIServerTrustsWhatOperatorsShow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := registration.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := &registration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
		Webhooks: []registration.MutatingWebhook{{Name: "a.muster.dev"}, {Name: "b.muster.dev"}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).Build()
	clock := testclock.NewFakePassiveClock(time.Now())
	trusted := ""
	k := &keeper{client: c, trusted: func() string { return trusted }, clock: clock}
	key := client.ObjectKeyFromObject(object)
	version := ""
	for _, step := range []struct {
		after   time.Duration
		trusted string
		want    string
		written bool
	}{
		{0, "one ", "one ", true},
		{0, "one ", "one ", false},
		{24 * time.Hour, "one two ", "one two ", true},
		{24 * time.Hour, "two ", "one two ", false},
		{certificate.LookEvery, "two ", "one two ", false},
		{certificate.LookEvery, "two ", "two ", true},
		{time.Hour, "three ", "two three ", true}, // its Secret was deleted
		{overlap, "three ", "three ", true},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		trusted = step.trusted
		result, err := k.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter != certificate.LookEvery {
			t.Fatalf("%+v, %v", result, err)
		}
		var now registration.MutatingWebhookConfiguration
		if err := c.Get(t.Context(), key, &now); err != nil {
			t.Fatal(err)
		}
		for _, how := range now.Webhooks {
			if got := string(how.ClientConfig.CABundle); got != step.want {
				t.Errorf("%+v: %s trusts %q", step, how.Name, got)
			}
		}
		if written := now.ResourceVersion != version; written != step.written {
			t.Errorf("%+v: written: %t", step, written)
		}
		version = now.ResourceVersion
	}
}

func TestWhereTheChartHasMadeNoObjectNothingIsWritten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := registration.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	k := &keeper{client: fake.NewClientBuilder().WithScheme(scheme).Build(), trusted: func() string { return "" }, clock: testclock.NewFakePassiveClock(time.Now())}
	if result, err := k.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: ConfigurationName}}); err != nil || result != (ctrl.Result{}) {
		t.Errorf("%+v, %v", result, err)
	}
}
