package certificate

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
)

const (
	// The authority after the present one is beside it, from the middle of its life on. A fourth of a life later it takes its place:
	// who was told whom to trust a year before that, or earlier, and never since, hears no more; all others trust it.
	nextCertKey, nextPrivateKeyKey = "next.crt", "next.key"

	// The authority before the present one is beside it too, without its key, until another is to follow: operators that have not looked
	// yet show what it signed, whoever has told others whom to trust.
	formerCertKey = "former.crt"

	// authorityLifetime is that of what others trust. Pods are given it when they are made, and keep it.
	authorityLifetime = 4 * 365 * 24 * time.Hour

	// LookEvery is how often it is seen to that certificates are renewed: for so long operators may use different authorities, of which
	// all are trusted, unless somebody has deleted the Secret.
	LookEvery = time.Minute
)

// Use is what an authority is for.
type Use struct {
	// Secret is the name of the Secret that it is kept in. It outlives operators, and so does what others trust.
	Secret string
	// Server is the name in the certificates that it signs.
	Server string
}

// Authority is what others trust, and what they are shown. All of it is renewed while it runs, well before it ends.
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

// OpenAuthority reads the authority, and makes it if there is none yet.
func OpenAuthority(ctx context.Context, secrets coreclient.SecretInterface, use Use, clock clock.WithTicker, log logr.Logger) (*Authority, error) {
	a := &Authority{use: use, secrets: secrets, clock: clock, log: log.WithValues("secret", use.Secret)}
	secret, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	return a, a.take(secret)
}

// read gives the Secret, and makes it if there is none: nobody has asked for an authority yet, or somebody has deleted it to have
// another.
func (a *Authority) read(ctx context.Context) (*corev1.Secret, error) {
	secret, err := a.secrets.Get(ctx, a.use.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if secret, err = newSecret(a.use, a.clock.Now()); err != nil {
			return nil, err
		}
		a.log.Info("making an authority: there is none")
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

// take has what the Secret holds be used from now on.
func (a *Authority) take(secret *corev1.Secret) error {
	signer, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("reading Secret %s (delete it to have it made anew): %w", a.use.Secret, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trusted = string(secret.Data[corev1.TLSCertKey]) + string(secret.Data[nextCertKey]) + string(secret.Data[formerCertKey])
	if a.signer.Leaf != nil && a.signer.Leaf.Equal(signer.Leaf) {
		return nil
	}
	a.signer = signer
	a.serving, err = signed(&signer, a.use.Server, a.clock.Now())
	return err
}

// Trusted is what others are to trust from now on, as PEM.
func (a *Authority) Trusted() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trusted
}

// Show is for a tls.Config: it gives a certificate that is valid for a while yet.
func (a *Authority) Show(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !aged(a.serving.Leaf, 3, a.clock.Now()) {
		return a.serving, nil
	}
	serving, err := signed(&a.signer, a.use.Server, a.clock.Now())
	if err != nil {
		return nil, err
	}
	a.serving = serving
	return serving, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: who does not lead may be asked too. Of several that renew the Secret
// at once one is first.
func (a *Authority) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (a *Authority) Start(ctx context.Context) error {
	ticker := a.clock.NewTicker(LookEvery)
	defer ticker.Stop()
	for {
		if err := a.renew(ctx); err != nil && ctx.Err() == nil {
			a.log.Error(err, "the authority is not renewed; it is tried again", "in", LookEvery)
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
	secret, err := a.read(ctx)
	if err != nil {
		return err
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
		after.Data[formerCertKey] = after.Data[corev1.TLSCertKey]
		after.Data[corev1.TLSCertKey], after.Data[corev1.TLSPrivateKeyKey] = after.Data[nextCertKey], after.Data[nextPrivateKeyKey]
		delete(after.Data, nextCertKey)
		delete(after.Data, nextPrivateKeyKey)
		a.log.Info("another authority takes the place of the old one")
	case aged(a.signer.Leaf, 2, now):
		authority, key, err := newAuthority(a.use.Server, authorityLifetime, now)
		if err != nil {
			return fmt.Errorf("making another authority: %w", err)
		}
		after.Data[nextCertKey], after.Data[nextPrivateKeyKey] = authority, key
		delete(after.Data, formerCertKey)
		a.log.Info("another authority is to be trusted too")
	default:
		return nil
	}
	written, err := a.secrets.Update(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) { // another operator was faster: what it did is taken at the next look
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", a.use.Secret, err)
	}
	return a.take(written)
}

// isDue reports whether the next authority is to take the place of the present one: pods have been given both for long, or that
// could soon sign nothing any more.
func (a *Authority) isDue(secret *corev1.Secret, now time.Time) (bool, error) {
	next, err := tls.X509KeyPair(secret.Data[nextCertKey], secret.Data[nextPrivateKeyKey])
	if err != nil {
		return false, fmt.Errorf("reading the next authority in Secret %s (remove %s to have it made anew): %w", a.use.Secret, nextCertKey, err)
	}
	return aged(next.Leaf, 1, now) || !now.Before(a.signer.Leaf.NotAfter.Add(-Lifetime)), nil
}
