package certificate

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
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

// wantTrusted checks whether a client that trusts these certificates accepts the operator's current one.
func wantTrusted(t *testing.T, trusted string, a *Authority, want bool) {
	t.Helper()
	shown, err := a.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(trusted)) {
		t.Fatal("no trusted certificates")
	}
	_, err = shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: use.Server, CurrentTime: a.clock.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if (err == nil) != want {
		t.Errorf("on %s the certificate is trusted = %t: %v", a.clock.Now().Format(time.DateOnly), !want, err)
	}
}

func TestOperatorsShareTheAuthority(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	one, other := open(t, secrets, clock), open(t, secrets, clock)
	if one.Trusted() != other.Trusted() {
		t.Error("two operators have different authorities")
	}
	wantTrusted(t, one.Trusted(), other, true)
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: use.Secret}}
	if _, err := secrets.Update(context.Background(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(context.Background(), secrets, use, clock, logr.Discard()); err == nil {
		t.Error("OpenAuthority accepted a Secret without a certificate")
	}
}

// TestASecretThatCannotBeReadIsTriedAgain: an operator that starts while the Secret is damaged, or may not be read,
// uses it once that is mended.
func TestASecretThatCannotBeReadIsTriedAgain(t *testing.T) {
	damaged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: use.Secret, Namespace: "muster-system"},
		Data: map[string][]byte{corev1.TLSCertKey: []byte("garbage")}}
	client, clock := fake.NewClientset(damaged), testclock.NewFakeClock(time.Now())
	forbidden := true
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return forbidden, nil, apierrors.NewForbidden(corev1.Resource("secrets"), use.Secret, nil)
	})
	secrets := client.CoreV1().Secrets("muster-system")
	a, err := OpenAuthority(t.Context(), secrets, use, clock, logr.Discard())
	if !apierrors.IsForbidden(err) {
		t.Fatalf("OpenAuthority = %v, want that it is forbidden", err)
	}
	forbidden = false
	if err := a.renew(t.Context()); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("renew = %v, want an error that says what to do with the Secret", err)
	}
	if _, err := a.GetCertificate(nil); err == nil || a.Trusted() != "" {
		t.Errorf("there is a certificate: %v; trusted: %q", err, a.Trusted())
	}
	if err := secrets.Delete(t.Context(), use.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTrusted(t, a.Trusted(), a, true)
}

// TestACertificateThatCannotSignIsNoAuthority: a serving certificate that someone puts into the Secret is reported, and
// the operator keeps the authority that it has. No client would accept what such a certificate signs.
func TestACertificateThatCannotSignIsNoAuthority(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	a := open(t, secrets, clock)
	before := a.Trusted()
	template, key, err := newTemplate(use.Server, Lifetime, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := sign(template, template, key, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: use.Secret}, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.renew(t.Context()); err == nil || !strings.Contains(err.Error(), "not one of an authority") {
		t.Errorf("renew = %v, want an error that says what is wrong with the Secret", err)
	}
	wantTrusted(t, before, a, true)
}

// TestOnlyCertificatesAreTrusted: what someone puts into the Secret in place of the next or the former authority, or
// behind one, must not reach the clients.
func TestOnlyCertificatesAreTrusted(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	a := open(t, secrets, clock)
	secret, err := secrets.Get(t.Context(), use.Secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := string(secret.Data[corev1.TLSCertKey])
	for _, key := range []string{corev1.TLSCertKey, nextCertKey, formerCertKey} {
		secret.Data[key] = append(secret.Data[key], "-----BEGIN CERTIFICATE-----\ngarbage"...)
	}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_ = a.renew(t.Context()) // it reports the next authority, which cannot be read
	if got := a.Trusted(); got != want {
		t.Errorf("trusted:\n%s\nwant\n%s", got, want)
	}
	if got := open(t, secrets, clock).Trusted(); got != want {
		t.Errorf("trusted after a restart:\n%s\nwant\n%s", got, want)
	}
}

// TestCertificatesOfAClockThatWasAheadAreReplaced: an operator that started while its clock was ahead serves valid
// certificates again once the clock is right, whether it has made the authority then or found one.
func TestCertificatesOfAClockThatWasAheadAreReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		existed bool
		ahead   time.Duration
	}{
		"by a day, authority made before":     {true, 24 * time.Hour},
		"by half a year, authority made then": {false, 183 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(now)
			if tc.existed {
				open(t, secrets, clock)
			}
			clock.SetTime(now.Add(tc.ahead))
			a := open(t, secrets, clock)
			clock.SetTime(now)
			for range 2 { // at first, the next authority is only added
				if err := a.renew(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			wantTrusted(t, a.Trusted(), a, true)
			before := a.Trusted()
			if err := a.renew(t.Context()); err != nil || a.Trusted() != before {
				t.Errorf("renew = %v, and changed the trusted certificates once more = %t", err, a.Trusted() != before)
			}
		})
	}
}

// TestADeletedAuthorityIsReplaced: all operators replace it by the same new one, without a restart.
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
		t.Errorf("deleted authority still in use = %t, both have the same = %t", one.Trusted() == before,
			one.Trusted() == other.Trusted())
	}
	wantTrusted(t, one.Trusted(), other, true)
	wantTrusted(t, before, one, false)
}

// TestTheSecretOfAnOlderBuildIsAccepted: that Secret has a self-signed serving certificate, valid for 20 years.
func TestTheSecretOfAnOlderBuildIsAccepted(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	old, key, err := newAuthority(use.Server, 20*365*24*time.Hour, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: use.Secret},
		Data: map[string][]byte{corev1.TLSCertKey: old, corev1.TLSPrivateKeyKey: key}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantTrusted(t, string(old), open(t, secrets, clock), true)
}

// TestTheNextAuthorityIsTrustedBeforeItIsUsed: over ten years, checked each month, the certificates that a pod got
// within the year before are valid at all times, and those from long ago expire.
func TestTheNextAuthorityIsTrustedBeforeItIsUsed(t *testing.T) {
	const month, year = 30 * 24 * time.Hour, 365 * 24 * time.Hour
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	a := open(t, secrets, clock)
	var given []string // the certificates of the pods of each month
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
			wantTrusted(t, given[months-back], a, true)
		}
		clock.Step(month)
	}
	wantTrusted(t, given[0], a, false)
	if changes < 4 || changes > 10 {
		t.Errorf("the trusted certificates changed %d times in ten years, want 4 to 10", changes)
	}
}

// TestOperatorsWithTheFormerAuthorityAreTrusted: clients of operators that have read the Secret trust them, and the
// other way round, both when the next authority is added and when it replaces the current one.
func TestOperatorsWithTheFormerAuthorityAreTrusted(t *testing.T) {
	secrets, clock := fake.NewClientset().CoreV1().Secrets("muster-system"), testclock.NewFakeClock(time.Now())
	operators := []*Authority{open(t, secrets, clock), open(t, secrets, clock), open(t, secrets, clock)}
	changes, trusted := 0, operators[0].Trusted()
	for week := range 10 * 52 {
		for i := range operators { // each week another operator reads the Secret first
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
					wantTrusted(t, one.Trusted(), other, true)
				}
			}
		}
		clock.Step(7 * 24 * time.Hour)
	}
	if changes < 4 {
		t.Errorf("the trusted certificates changed %d times in ten years, want at least 4", changes)
	}
}
