package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestServingCertificatesAreRenewedBeforeTheyExpire(t *testing.T) {
	clock := testclock.NewFakePassiveClock(epoch)
	s := &SelfSigned{Name: "localhost", Clock: clock}
	get := func(after time.Duration) *x509.Certificate {
		t.Helper()
		clock.SetTime(epoch.Add(after))
		shown, err := s.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(shown.Leaf)
		if _, err := shown.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost",
			CurrentTime: clock.Now()}); err != nil {
			t.Errorf("after %s: the certificate is invalid: %v", after, err)
		}
		return shown.Leaf
	}
	first := get(0)
	if !get(Lifetime / 2).Equal(first) {
		t.Error("the certificate was renewed after half of its lifetime")
	}
	second := get(Lifetime * 4 / 5)
	if second.Equal(first) {
		t.Error("the certificate was not renewed after three quarters of its lifetime")
	}
	if get(10 * Lifetime).Equal(second) {
		t.Error("the second certificate was not renewed after it expired")
	}
}

func TestSignedCertificatesDoNotOutliveTheAuthority(t *testing.T) {
	certificate, key, err := newAuthority("muster", Lifetime/2, epoch)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signed(&authority, Use{Server: "muster", Hosts: []string{"muster.svc", "10.0.0.1"}}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if signed.Leaf.NotAfter.After(authority.Leaf.NotAfter) {
		t.Errorf("the certificate is valid until %s, the authority until %s", signed.Leaf.NotAfter, authority.Leaf.NotAfter)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	for _, name := range []string{"muster", "muster.svc", "10.0.0.1"} {
		if _, err := signed.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name,
			CurrentTime: epoch.Add(time.Hour)}); err != nil {
			t.Error(err)
		}
	}
}
