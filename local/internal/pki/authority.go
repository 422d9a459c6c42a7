package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// clockSkew lets a client whose clock is a little behind accept what was
	// just signed.
	clockSkew = time.Hour
)

// Authority signs certificates. Its files are <name>.crt and <name>.key.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	certFile    string
}

// LoadOrMakeAuthority reads the authority called name from the folder, or creates it if it is missing or about to
// expire.
func LoadOrMakeAuthority(folder, name string) (*Authority, error) {
	pair := filePair(folder, name)
	loaded, err := loadAuthority(pair)
	if err == nil && time.Until(loaded.certificate.NotAfter) > leafLife {
		return loaded, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the authority %s: %w; remove %s to start with a new one", name, err, folder)
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "muster-local-" + name},
		NotAfter:              time.Now().Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	if _, err := signAndWrite(pair, template, template, key, key); err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	return loadAuthority(pair)
}

func loadAuthority(pair Pair) (*Authority, error) {
	loaded, err := pair.Load()
	if err != nil {
		return nil, err
	}
	key, ok := loaded.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in %s cannot sign", pair.KeyFile)
	}
	return &Authority{certificate: loaded.Leaf, key: key, certFile: pair.CertFile}, nil
}

// CertFile is the path of the authority's certificate, PEM.
func (a *Authority) CertFile() string { return a.certFile }

// KeyFile is the path of the authority's key, PEM.
func (a *Authority) KeyFile() string {
	return a.certFile[:len(a.certFile)-len(".crt")] + ".key"
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Pool returns a pool that trusts only this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Server signs a new serving certificate for the names and addresses and
// writes it to <folder>/<name>.crt and .key.
func (a *Authority) Server(folder, name string, dnsNames []string, addresses []net.IP) (Pair, error) {
	return a.issue(folder, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dnsNames,
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client signs a new client certificate of the user and groups and writes it
// to <folder>/<name>.crt and .key.
func (a *Authority) Client(folder, name, user string, groups ...string) (Pair, error) {
	return a.issue(folder, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issue(folder, name string, template *x509.Certificate) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template.NotAfter = time.Now().Add(leafLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	pair, err := signAndWrite(filePair(folder, name), template, a.certificate, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate %s: %w", name, err)
	}
	return pair, nil
}

func signAndWrite(pair Pair, template, parent *x509.Certificate, key *ecdsa.PrivateKey,
	parentKey crypto.Signer) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-clockSkew)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, err
	}
	if err := writePEM(pair.CertFile, "CERTIFICATE", raw); err != nil {
		return Pair{}, err
	}
	return pair, writeKey(pair.KeyFile, key)
}

// Pair names the two files of a certificate and its key, both PEM.
type Pair struct{ CertFile, KeyFile string }

// Load reads the pair; Leaf is set.
func (p Pair) Load() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
}

func filePair(folder, name string) Pair {
	base := filepath.Join(folder, name)
	return Pair{CertFile: base + ".crt", KeyFile: base + ".key"}
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	return key, nil
}
