package rendezvous

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// SecretName is that of the Secret with the certificate of the rendezvous, in the
// operator's namespace. It is made once and outlives operators: agents that run trust it.
const SecretName = "muster-rendezvous"

// lifetime of the certificate. It serves one purpose for those who were given it by name,
// and to replace it ends the contact with all agents that run.
const lifetime = 20 * 365 * 24 * time.Hour

// Certificate reads the certificate, and makes it if there is none yet. The text is what
// agents are to trust, as PEM.
func Certificate(ctx context.Context, secrets coreclient.SecretInterface, now time.Time) (tls.Certificate, string, error) {
	secret, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if secret, err = newSecret(now); err != nil {
			return tls.Certificate{}, "", err
		}
		secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another operator was faster
			secret, err = secrets.Get(ctx, SecretName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("reading or making Secret %s: %w", SecretName, err)
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("reading Secret %s (delete it to have it made anew): %w", SecretName, err)
	}
	return certificate, string(secret.Data[corev1.TLSCertKey]), nil
}

func newSecret(now time.Time) (*corev1.Secret, error) {
	certificate, key, err := newCertificate(now)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the rendezvous: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}, nil
}

// newCertificate signs itself: there is no authority beyond it.
func newCertificate(now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: protocol.ServerName},
		DNSNames:     []string{protocol.ServerName},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
