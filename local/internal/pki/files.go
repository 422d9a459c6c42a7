package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// LoadOrMakeSigningKey gives the path of the private key called name in the
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

// writeKey uses the older of the two encodings: of it alone kube-apiserver
// can take the public half.
func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", raw)
}

// writePEM replaces the file in one step: a start that was killed half-way
// must not leave half a key for the next one to trip over.
func writePEM(path, kind string, raw []byte) error {
	return WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}

// WriteFile puts the secret content at path, mode 0600, in one step: readers
// see the old content or the new.
func WriteFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails, as it should, once renamed
	if _, err := temporary.Write(content); err != nil {
		temporary.Close()
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
