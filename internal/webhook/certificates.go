package webhook

import (
	"context"
	"crypto/tls"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/musterhq/muster/internal/certificate"
)

// SecretName is the name of the Secret with the webhooks' authority, in the operator's namespace.
const SecretName = "muster-webhook"

// Certificates are the serving certificates of the webhooks.
type Certificates struct{ authority *certificate.Authority }

// Open reads the webhooks' authority, and creates it if there is none. namespace is the operator's own; service is
// the DNS name of the webhooks' Service, NAME.NAMESPACE.svc.
func Open(ctx context.Context, cluster *rest.Config, namespace, service string) (*Certificates, error) {
	clients, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	use := certificate.Use{Secret: SecretName, Server: service}
	authority, err := certificate.OpenAuthority(ctx, clients.CoreV1().Secrets(namespace), use, clock.RealClock{},
		ctrl.Log.WithName("webhook"))
	if err != nil {
		return nil, fmt.Errorf("opening the authority of the webhooks: %w", err)
	}
	return &Certificates{authority}, nil
}

// Options returns the options of a webhook server that uses the certificates.
func (c *Certificates) Options(port int) webhook.Options {
	return webhook.Options{Port: port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = c.authority.GetCertificate }}}
}

// AddTo adds to the manager the renewal of the certificates, and the controller that makes the API server trust them.
func (c *Certificates) AddTo(mgr manager.Manager) error {
	if err := mgr.Add(c.authority); err != nil {
		return err
	}
	k := &keeper{client: mgr.GetClient(), trusted: c.authority.Trusted}
	return k.addTo(mgr)
}
