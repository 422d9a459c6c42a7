package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/musterhq/muster/local/internal/atomicfile"
)

// LoadOrMakeSigningKey returns the path of the private key called name in the
// folder, made if absent: PEM, ECDSA over P-256.
func LoadOrMakeSigningKey(folder, name string) (string, error) {
	path := filepath.Join(folder, name+".key")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading the key %s: %w", name, err)
	}
	key, err := newKey()
	if err != nil {
		return "", err
	}
	if err := writeKey(path, key); err != nil {
		return "", fmt.Errorf("making the key %s: %w", name, err)
	}
	return path, nil
}

// writeKey uses the older encoding (SEC 1), since kube-apiserver derives the public key only from that one.
func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", raw)
}

func writePEM(path, kind string, raw []byte) error {
	return atomicfile.Write(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}
