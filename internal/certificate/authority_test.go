package certificate

import (
	"context"
	"crypto/x509"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	testclock "k8s.io/utils/clock/testing"
)

var use = Use{Secret: "muster-rendezvous", Server: "rendezvous.muster.dev"}

func open(t *testing.T, secrets coreclient.SecretInterface, clock *testclock.FakeClock) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.Context(), secrets, use, clock, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// believes checks whether a client that trusts these certificates accepts the operator's current one.
func believes(t *testing.T, trusted string, a *Authority, want bool) {
	t.Helper()
	shown, err := a.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(trusted)) {
		t.Fatal("there is nothing to trust")
	}
	_, err = shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: use.Server, CurrentTime: a.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if (err == nil) != want {
		t.Errorf("on %s it is believed: %t, for %v", a.clock.Now().Format(time.DateOnly), !want, err)
	}
}

func TestOperatorsShareTheAuthority(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	one, other := open(t, secrets, clock), open(t, secrets, clock)
	if one.Trusted() != other.Trusted() {
		t.Error("another operator has another authority")
	}
	believes(t, one.Trusted(), other, true)
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: use.Secret}}
	if _, err := secrets.Update(context.Background(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(context.Background(), secrets, use, clock, logr.Discard()); err == nil {
		t.Error("a Secret without a certificate is taken")
	}
}

// TestADeletedAuthorityIsReplaced, by the same one for all operators, without a restart.
func TestADeletedAuthorityIsReplaced(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	one, other := open(t, secrets, clock), open(t, secrets, clock)
	before := one.Trusted()
	if err := secrets.Delete(t.Context(), use.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Authority{one, other} {
		if err := a.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if one.Trusted() == before || one.Trusted() != other.Trusted() {
		t.Errorf("the one that was deleted is used still: %t, both have the same: %t", one.Trusted() == before, one.Trusted() == other.Trusted())
	}
	believes(t, one.Trusted(), other, true)
	believes(t, before, one, false)
}

// TestTheSecretOfAnOlderBuildIsAccepted: it has a self-signed serving certificate, valid for 20 years.
func TestTheSecretOfAnOlderBuildIsAccepted(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	old, key, err := newAuthority(use.Server, 20*365*24*time.Hour, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: use.Secret}, Data: map[string][]byte{corev1.TLSCertKey: old, corev1.TLSPrivateKeyKey: key}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	believes(t, string(old), open(t, secrets, clock), true)
}

// TestTheNextAuthorityIsTrustedBeforeItIsUsed: over ten years, checked each month, what a pod was given within the
// year before is valid at all times, and what was given long ago expires.
func TestTheNextAuthorityIsTrustedBeforeItIsUsed(t *testing.T) {
	const month, year = 30 * 24 * time.Hour, 365 * 24 * time.Hour
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	a := open(t, secrets, clock)
	var given []string // to the pods of each month
	changes := 0
	for months := range 120 {
		if err := a.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(given) > 0 && given[len(given)-1] != a.Trusted() {
			changes++
		}
		given = append(given, a.Trusted())
		for back := 0; back < int(year/month) && back <= months; back++ {
			believes(t, given[months-back], a, true)
		}
		clock.Step(month)
	}
	believes(t, given[0], a, false)
	if changes < 4 || changes > 10 {
		t.Errorf("what is trusted has changed %d times in ten years", changes)
	}
}

// TestOperatorsWithTheFormerAuthorityAreTrusted by clients of operators that have read the Secret, and the other way
// round, both when the next authority is added and when it replaces the current one.
func TestOperatorsWithTheFormerAuthorityAreTrusted(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	operators := []*Authority{open(t, secrets, clock), open(t, secrets, clock), open(t, secrets, clock)}
	changes, trusted := 0, operators[0].Trusted()
	for week := range 10 * 52 {
		for i := range operators { // each week another operator is the first to read the Secret
			first := operators[(week+i)%len(operators)]
			if err := first.renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			if first.Trusted() == trusted {
				continue
			}
			changes, trusted = changes+1, first.Trusted()
			for _, one := range operators {
				for _, other := range operators {
					believes(t, one.Trusted(), other, true)
				}
			}
		}
		clock.Step(7 * 24 * time.Hour)
	}
	if changes < 4 {
		t.Errorf("in ten years there were %d changes", changes)
	}
}
