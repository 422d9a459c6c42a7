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

// TestRoundSurvivesCertificateRenewal: agents that are connected under the old certificate, agents that lost their
// connection, and new agents all continue.
func TestRoundSurvivesCertificateRenewal(t *testing.T) {
	// Agents use the real time: the first certificate is about to expire for them, but still valid.
	clock := testclock.NewFakeClock(time.Now().Add(-certificate.Lifetime * 9 / 10))
	o := newOperatorOf(t, "2:3", clock)
	proxy := newProxy(t, o.address)
	first, other := o.run(0, works), o.run(1, works, "MUSTER_RENDEZVOUS="+proxy.address)
	first.awaitOutput("part 0 of 2")
	other.awaitOutput("part 1 of 2")
	before := o.servedCertificate()
	clock.SetTime(time.Now())
	after := o.servedCertificate()
	if before.Equal(after) || !after.NotAfter.After(time.Now().Add(certificate.Lifetime/2)) {
		t.Errorf("a new connection gets a certificate valid until %s, and got one valid until %s before, want a renewed one",
			after.NotAfter, before.NotAfter)
	}
	proxy.close()
	other.awaitOutput("cannot be asked")
	proxy.open()
	o.awaitRequest("uid-job-worker-1")
	first.wantNoOutput("saved")
	other.wantNoOutput("saved")
	o.run(2, works).awaitOutput("part 2 of 3")
	first.awaitOutput("part 0 of 3")
	other.awaitOutput("part 1 of 3")
}

// servedCertificate returns the certificate that a new connection gets.
func (o *operator) servedCertificate() *x509.Certificate {
	o.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(o.authority.Trusted()))
	connection, err := tls.Dial("tcp", o.address,
		&tls.Config{RootCAs: roots, ServerName: protocol.ServerName, MinVersion: tls.VersionTLS13})
	if err != nil {
		o.t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0]
}
