package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

const (
	// The next authority is in the Secret as well from the middle of the current one's life on, and replaces it a
	// quarter of a life later. Clients that read the trusted certificates at least once during that year trust it by
	// then.
	nextCertKey, nextPrivateKeyKey = "next.crt", "next.key"

	// The former authority stays in the Secret, without its key, until there is a next one: other operators may serve
	// certificates that it signed until they read the Secret again.
	formerCertKey = "former.crt"

	// authorityLifetime is the lifetime of an authority. Pods get the trusted certificates when they are created and
	// keep them.
	authorityLifetime = 4 * 365 * 24 * time.Hour

	// RenewInterval is the interval at which an Authority reads its Secret and renews it. For so long operators may use
	// different authorities; all of these are trusted, unless the Secret was deleted.
	RenewInterval = time.Minute
)

// Use is what an authority is used for.
type Use struct {
	// Secret is the name of the Secret with the authority. It outlives the operator, as does the trust of others in
	// it.
	Secret string
	// Server is the DNS name in the certificates that it signs.
	Server string
	// Hosts are further names and IP addresses in these certificates, for clients that connect to one of them and expect
	// it in the certificate.
	Hosts []string
}

// Authority is a certificate authority in a Secret and the serving certificate that it signs. Both are renewed while
// it runs, well before they expire.
type Authority struct {
	use     Use
	secrets coreclient.SecretInterface
	clock   clock.WithTicker
	log     logr.Logger

	mu      sync.Mutex
	signer  tls.Certificate
	trusted string
	serving *tls.Certificate
}

// OpenAuthority reads the authority from its Secret, which it creates if there is none. One for which that fails can be
// used all the same: it has no certificates until Start has read the Secret.
func OpenAuthority(ctx context.Context, secrets coreclient.SecretInterface, use Use, clock clock.WithTicker,
	log logr.Logger) (*Authority, error) {
	a := &Authority{use: use, secrets: secrets, clock: clock, log: log.WithValues("secret", use.Secret)}
	secret, err := a.read(ctx)
	if err != nil {
		return a, err
	}
	return a, a.load(secret)
}

// read returns the Secret, and creates it if it does not exist: on first use, or after it was deleted to get a new
// authority.
func (a *Authority) read(ctx context.Context) (*corev1.Secret, error) {
	secret, err := a.secrets.Get(ctx, a.use.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if secret, err = newSecret(a.use, a.clock.Now()); err != nil {
			return nil, err
		}
		a.log.Info("creating an authority: there is none")
		secret, err = a.secrets.Create(ctx, secret, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another operator was faster
			secret, err = a.secrets.Get(ctx, a.use.Secret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading or making Secret %s: %w", a.use.Secret, err)
	}
	return secret, nil
}

func newSecret(use Use, now time.Time) (*corev1.Secret, error) {
	authority, key, err := newAuthority(use.Server, authorityLifetime, now)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: use.Secret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: authority, corev1.TLSPrivateKeyKey: key},
	}, nil
}

// load makes the content of the Secret the authority's state.
func (a *Authority) load(secret *corev1.Secret) error {
	signer, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("reading Secret %s (delete it to have it created again): %w", a.use.Secret, err)
	}
	if !signer.Leaf.IsCA { // no client accepts certificates that it signs
		return fmt.Errorf("reading Secret %s (delete it to have it created again): its certificate is not one of an authority", a.use.Secret)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trusted = trustedIn(secret)
	if a.signer.Leaf != nil && a.signer.Leaf.Equal(signer.Leaf) {
		return nil
	}
	a.signer = signer
	a.serving, err = signed(&signer, a.use, a.clock.Now())
	return err
}

// trustedIn returns the authorities of the Secret that clients must trust, as PEM: the one that signs, the next and the
// former. What is no certificate is left out, because clients refuse a bundle with a part that they cannot read.
func trustedIn(secret *corev1.Secret) string {
	var bundle []byte
	for _, key := range []string{corev1.TLSCertKey, nextCertKey, formerCertKey} {
		found, _ := cert.ParseCertsPEM(secret.Data[key]) // fails if there is none
		for _, c := range found {
			bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})...)
		}
	}
	return string(bundle)
}

// Trusted returns the certificates that clients must trust from now on, as PEM; "" if the Secret could not be read yet.
func (a *Authority) Trusted() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trusted
}

// GetCertificate returns a serving certificate that is valid for some time to come; it is for
// tls.Config.GetCertificate.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.serving == nil {
		return nil, fmt.Errorf("the Secret %s could not be read yet", a.use.Secret)
	}
	now := a.clock.Now()
	if !aged(a.serving.Leaf, 3, now) && !isEarly(a.serving.Leaf, now) {
		return a.serving, nil
	}
	serving, err := signed(&a.signer, a.use, now)
	if err != nil {
		return nil, err
	}
	a.serving = serving
	return serving, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: replicas that do not lead serve requests too. If
// several renew the Secret at once, the first one wins.
func (a *Authority) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it renews the authority until the context ends.
func (a *Authority) Start(ctx context.Context) error {
	ticker := a.clock.NewTicker(RenewInterval)
	defer ticker.Stop()
	for {
		if err := a.renew(ctx); err != nil && ctx.Err() == nil {
			a.log.Error(err, "renewing the authority failed; retrying", "in", RenewInterval)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// renew reads the Secret, and adds the next authority or puts it in place of the current one when it is time.
func (a *Authority) renew(ctx context.Context) error {
	secret, err := a.read(ctx)
	if err != nil {
		return err
	}
	if err := a.load(secret); err != nil {
		return err
	}
	now, after := a.clock.Now(), secret.DeepCopy()
	switch {
	case len(after.Data[nextCertKey]) > 0:
		if due, err := a.isDue(after, now); !due {
			return err
		}
		after.Data[formerCertKey] = after.Data[corev1.TLSCertKey]
		after.Data[corev1.TLSCertKey], after.Data[corev1.TLSPrivateKeyKey] = after.Data[nextCertKey],
			after.Data[nextPrivateKeyKey]
		delete(after.Data, nextCertKey)
		delete(after.Data, nextPrivateKeyKey)
		a.log.Info("the next authority replaces the current one")
	case aged(a.signer.Leaf, 2, now), farAhead(a.signer.Leaf, now):
		authority, key, err := newAuthority(a.use.Server, authorityLifetime, now)
		if err != nil {
			return fmt.Errorf("creating the next authority: %w", err)
		}
		after.Data[nextCertKey], after.Data[nextPrivateKeyKey] = authority, key
		delete(after.Data, formerCertKey)
		a.log.Info("the next authority is trusted as well")
	default:
		return nil
	}
	written, err := a.secrets.Update(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) { // another operator was faster: its write is read at the next tick
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", a.use.Secret, err)
	}
	return a.load(written)
}

// farAhead reports whether the authority becomes valid only a day from now or later, so that no client accepts it. One
// that is less early is waited for: an operator whose own clock is slow must not replace it.
func farAhead(authority *x509.Certificate, now time.Time) bool {
	return isEarly(authority, now.Add(24*time.Hour))
}

// isDue reports whether the next authority is to replace the current one: clients have had a quarter of its life to
// read it, or the current one is about to expire or not valid yet.
func (a *Authority) isDue(secret *corev1.Secret, now time.Time) (bool, error) {
	next, err := tls.X509KeyPair(secret.Data[nextCertKey], secret.Data[nextPrivateKeyKey])
	if err != nil {
		return false, fmt.Errorf("reading the next authority in Secret %s (remove %s to have it created again): %w",
			a.use.Secret, nextCertKey, err)
	}
	return aged(next.Leaf, 1, now) || !now.Before(a.signer.Leaf.NotAfter.Add(-Lifetime)) ||
		farAhead(a.signer.Leaf, now), nil
}
