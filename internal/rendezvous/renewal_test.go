package rendezvous

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/musterhq/muster/internal/certificate"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Agents connected under the old certificate, agents that lost their connection, and new agents all go
// on.
func TestRoundSurvivesCertificateRenewal(t *testing.T) {
	// Agents use the real time: the first certificate is close to its end for them, but still valid.
	clock := testclock.NewFakeClock(time.Now().Add(-certificate.Lifetime * 9 / 10))
	o := newOperatorOf(t, "2:3", clock)
	proxy := newProxy(t, o.address)
	first, other := o.run(0, works), o.run(1, works, "MUSTER_RENDEZVOUS="+proxy.address)
	first.says("part 0 of 2")
	other.says("part 1 of 2")
	before := o.servedCertificate()
	clock.SetTime(time.Now())
	after := o.servedCertificate()
	if before.Equal(after) || !after.NotAfter.After(time.Now().Add(certificate.Lifetime/2)) {
		t.Errorf("who comes is shown a certificate that ends %s, and one that ends %s before", after.NotAfter, before.NotAfter)
	}
	proxy.close()
	other.says("cannot be asked")
	proxy.open()
	o.awaitRequest("uid-job-worker-1")
	first.quiet("saved")
	other.quiet("saved")
	o.run(2, works).says("part 2 of 3")
	first.says("part 0 of 3")
	other.says("part 1 of 3")
}

// servedCertificate returns the certificate that a new connection is shown.
func (o *operator) servedCertificate() *x509.Certificate {
	o.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(o.authority.Trusted()))
	connection, err := tls.Dial("tcp", o.address, &tls.Config{RootCAs: roots, ServerName: protocol.ServerName, MinVersion: tls.VersionTLS13})
	if err != nil {
		o.t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0]
}
