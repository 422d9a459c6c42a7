// Package certificate makes the operator's serving certificates and renews them in time: self-signed certificates, and
// certificates of an authority that operators share in a Secret. It knows nothing of the clients that trust them.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Lifetime is the lifetime of a serving certificate. It is renewed after three quarters of that.
const Lifetime = 90 * 24 * time.Hour

// clockSkew is by how much clients' clocks may be slow.
const clockSkew = time.Hour

// aged reports whether that many quarters of the certificate's lifetime have passed.
func aged(c *x509.Certificate, fourths time.Duration, now time.Time) bool {
	return !now.Before(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 4 * fourths))
}

// isEarly reports whether the certificate is not valid yet: it was made while this machine's clock was ahead. That it
// becomes valid may take as long as the clock was ahead, which may be years.
func isEarly(c *x509.Certificate, now time.Time) bool { return now.Before(c.NotBefore) }

// newAuthority makes a self-signed certificate that can sign others, and its key, both as PEM.
func newAuthority(name string, lifetime time.Duration, now time.Time) (certificate, key []byte, err error) {
	template, private, err := newTemplate(name, lifetime, now)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage |= x509.KeyUsageCertSign
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("signing an authority: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// signed makes a serving certificate for the use that is signed by the authority and does not outlive it. Its key is
// kept in memory only.
func signed(authority *tls.Certificate, use Use, now time.Time) (*tls.Certificate, error) {
	template, private, err := newTemplate(use.Server, Lifetime, now)
	if err != nil {
		return nil, err
	}
	for _, host := range use.Hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if template.NotAfter.After(authority.Leaf.NotAfter) {
		template.NotAfter = authority.Leaf.NotAfter
	}
	return sign(template, authority.Leaf, private, authority.PrivateKey)
}

func sign(template, authority *x509.Certificate, private *ecdsa.PrivateKey, by any) (*tls.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, authority, private.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, nil
}

func newTemplate(name string, lifetime time.Duration, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		// The serial number tells authorities of the same name apart.
		Subject:   pkix.Name{CommonName: name, SerialNumber: serial.Text(36)},
		DNSNames:  []string{name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, private, nil
}

// SelfSigned is a self-signed certificate, for clients that do not verify it. It is made on first use, and renewed in
// time.
type SelfSigned struct {
	Name  string
	Clock clock.PassiveClock

	mu    sync.Mutex
	shown *tls.Certificate
}

// GetCertificate returns the certificate; it is for tls.Config.GetCertificate.
func (s *SelfSigned) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if s.shown != nil && !aged(s.shown.Leaf, 3, now) && !isEarly(s.shown.Leaf, now) {
		return s.shown, nil
	}
	template, private, err := newTemplate(s.Name, Lifetime, now)
	if err != nil {
		return nil, err
	}
	shown, err := sign(template, template, private, private)
	if err != nil {
		return nil, err
	}
	s.shown = shown
	return shown, nil
}
