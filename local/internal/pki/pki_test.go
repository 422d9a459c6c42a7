package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestAnAuthorityIsKeptFromStartToStart(t *testing.T) {
	dir := t.TempDir()
	first := mustAuthority(t, dir, "ca")
	second := mustAuthority(t, dir, "ca")
	if !bytes.Equal(first.PEM(), second.PEM()) {
		t.Error("the second start created another authority")
	}
	if other := mustAuthority(t, dir, "other"); bytes.Equal(first.PEM(), other.PEM()) {
		t.Error("two names have the same authority")
	}
}

func TestAServerAndAClientOfOneAuthorityTrustEachOther(t *testing.T) {
	dir := t.TempDir()
	ca := mustAuthority(t, dir, "ca")
	server, err := ca.Server(dir, "server", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client(dir, "client", "jo", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	seen, err := handshake(mustLoad(t, server), mustLoad(t, client), ca.Pool(), ca.Pool())
	if err != nil {
		t.Fatal(err)
	}
	if seen.Subject.CommonName != "jo" || len(seen.Subject.Organization) != 1 ||
		seen.Subject.Organization[0] != "system:masters" {
		t.Errorf("subject of the client = %s", seen.Subject)
	}
}

func TestClientOfAnotherAuthorityIsRejected(t *testing.T) {
	dir := t.TempDir()
	ca, stranger := mustAuthority(t, dir, "ca"), mustAuthority(t, dir, "stranger")
	server, err := ca.Server(dir, "server", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := stranger.Client(dir, "client", "jo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(mustLoad(t, server), mustLoad(t, client), ca.Pool(), ca.Pool()); err == nil {
		t.Error("the server accepted a certificate of an authority that it does not trust")
	}
}

func TestASigningKeyIsKeptAndPrivate(t *testing.T) {
	dir := t.TempDir()
	path, err := LoadOrMakeSigningKey(dir, "service-account")
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrMakeSigningKey(dir, "service-account"); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
		t.Error("the second start created another key")
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key = %o, want 600", info.Mode().Perm())
	}
}

func TestIncompleteAuthorityIsRecreated(t *testing.T) {
	dir := t.TempDir()
	mustAuthority(t, dir, "ca")
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	mustAuthority(t, dir, "ca")
}

// handshake returns the client's certificate as the server received it.
func handshake(server, client tls.Certificate, clientTrusts, serverTrusts *x509.CertPool) (*x509.Certificate, error) {
	serverEnd, clientEnd := net.Pipe()
	defer serverEnd.Close()
	defer clientEnd.Close()
	dialed := make(chan error, 1)
	go func() {
		dialed <- tls.Client(clientEnd, &tls.Config{
			Certificates: []tls.Certificate{client}, RootCAs: clientTrusts, ServerName: "127.0.0.1",
		}).Handshake()
		// A pipe has no buffer: the server's rejection must be read.
		_, _ = io.Copy(io.Discard, clientEnd)
	}()
	accepted := tls.Server(serverEnd, &tls.Config{
		Certificates: []tls.Certificate{server}, ClientCAs: serverTrusts, ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true,
	})
	if err := accepted.Handshake(); err != nil {
		return nil, err
	}
	if err := <-dialed; err != nil {
		return nil, err
	}
	return accepted.ConnectionState().PeerCertificates[0], nil
}

func mustAuthority(t *testing.T, dir, name string) *Authority {
	t.Helper()
	a, err := LoadOrMakeAuthority(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustLoad(t *testing.T, pair Pair) tls.Certificate {
	t.Helper()
	loaded, err := pair.Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
