package rendezvous

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/musterhq/muster/internal/certificate"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

const (
	// SecretName is that of the Secret with the authority of the rendezvous, in the operator's namespace. It outlives
	// operators: agents that run trust what is in it.
	SecretName = "muster-rendezvous"

	// The authority after the present one is beside it, from the middle of its life on. A fourth of a life later it takes its place:
	// whose pod was made a year before that, or earlier, is heard no more; all others trust it.
	nextCertKey, nextPrivateKeyKey = "next.crt", "next.key"

	// authorityLifetime is that of what agents trust. They are given it when their pod is made, and keep it.
	authorityLifetime = 4 * 365 * 24 * time.Hour

	// lookEvery is how often it is seen to that certificates are renewed.
	lookEvery = 6 * time.Hour
)

// Authority is what agents trust, and what they are shown. All of it is renewed while they are served, well before it ends.
type Authority struct {
	secrets coreclient.SecretInterface
	clock   clock.WithTicker
	log     logr.Logger

	mu      sync.Mutex
	signer  tls.Certificate
	trusted string
	serving *tls.Certificate
}

// OpenAuthority reads the authority, and makes it if there is none yet.
func OpenAuthority(ctx context.Context, secrets coreclient.SecretInterface, clock clock.WithTicker, log logr.Logger) (*Authority, error) {
	a := &Authority{secrets: secrets, clock: clock, log: log}
	secret, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if secret, err = newSecret(clock.Now()); err != nil {
			return nil, err
		}
		secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another operator was faster
			secret, err = secrets.Get(ctx, SecretName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading or making Secret %s: %w", SecretName, err)
	}
	return a, a.take(secret)
}

func newSecret(now time.Time) (*corev1.Secret, error) {
	authority, key, err := certificate.Authority(protocol.ServerName, authorityLifetime, now)
	if err != nil {
		return nil, fmt.Errorf("making the authority of the rendezvous: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: authority, corev1.TLSPrivateKeyKey: key},
	}, nil
}

// take has what the Secret holds be used from now on.
func (a *Authority) take(secret *corev1.Secret) error {
	signer, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("reading Secret %s (delete it to have it made anew): %w", SecretName, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trusted = string(secret.Data[corev1.TLSCertKey]) + string(secret.Data[nextCertKey])
	if a.signer.Leaf != nil && a.signer.Leaf.Equal(signer.Leaf) {
		return nil
	}
	a.signer = signer
	a.serving, err = certificate.Signed(&signer, protocol.ServerName, a.clock.Now())
	return err
}

// Trusted is what agents in new pods are to trust, as PEM.
func (a *Authority) Trusted() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trusted
}

// shown is what agents are shown: one that is valid for a while yet.
func (a *Authority) shown(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !certificate.Aged(a.serving.Leaf, 3, a.clock.Now()) {
		return a.serving, nil
	}
	serving, err := certificate.Signed(&a.signer, protocol.ServerName, a.clock.Now())
	if err != nil {
		return nil, err
	}
	a.serving = serving
	return serving, nil
}

// Start implements manager.Runnable. It runs where the manager leads: who does not serves nobody, and reads the Secret again when it does.
func (a *Authority) Start(ctx context.Context) error {
	ticker := a.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := a.renew(ctx); err != nil && ctx.Err() == nil {
			a.log.Error(err, "the authority of the rendezvous is not renewed; it is tried again", "in", lookEvery)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// renew takes what the Secret holds by now, and puts another authority beside an old one, or in its place.
func (a *Authority) renew(ctx context.Context) error {
	secret, err := a.secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", SecretName, err)
	}
	if err := a.take(secret); err != nil {
		return err
	}
	now, after := a.clock.Now(), secret.DeepCopy()
	switch {
	case len(after.Data[nextCertKey]) > 0:
		if due, err := a.isDue(after, now); !due {
			return err
		}
		after.Data[corev1.TLSCertKey], after.Data[corev1.TLSPrivateKeyKey] = after.Data[nextCertKey], after.Data[nextPrivateKeyKey]
		delete(after.Data, nextCertKey)
		delete(after.Data, nextPrivateKeyKey)
		a.log.Info("another authority of the rendezvous takes the place of the old one")
	case certificate.Aged(a.signer.Leaf, 2, now):
		authority, key, err := certificate.Authority(protocol.ServerName, authorityLifetime, now)
		if err != nil {
			return fmt.Errorf("making another authority of the rendezvous: %w", err)
		}
		after.Data[nextCertKey], after.Data[nextPrivateKeyKey] = authority, key
		a.log.Info("new pods are to trust another authority of the rendezvous too")
	default:
		return nil
	}
	written, err := a.secrets.Update(ctx, after, metav1.UpdateOptions{})
	if err != nil { // another leader may have been faster: what it did is taken at the next look
		return fmt.Errorf("writing Secret %s: %w", SecretName, err)
	}
	return a.take(written)
}

// isDue reports whether the next authority is to take the place of the present one: pods have been given both for long, or that
// could soon sign nothing any more.
func (a *Authority) isDue(secret *corev1.Secret, now time.Time) (bool, error) {
	next, err := tls.X509KeyPair(secret.Data[nextCertKey], secret.Data[nextPrivateKeyKey])
	if err != nil {
		return false, fmt.Errorf("reading the next authority in Secret %s (remove %s to have it made anew): %w", SecretName, nextCertKey, err)
	}
	return certificate.Aged(next.Leaf, 1, now) || !now.Before(a.signer.Leaf.NotAfter.Add(-certificate.Lifetime)), nil
}
