package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	webhookserver "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/placer"
	"github.com/musterhq/muster/internal/webhook"
)

// webhooks are the admission webhooks of Jobs and pods. If certificates is nil, their certificate is read from files.
type webhooks struct{ certificates *webhook.Certificates }

// openWebhooks loads or creates the certificates if cfg, which must be defaulted, enables a webhook.
func openWebhooks(ctx context.Context, cluster *rest.Config, cfg *v1alpha1.Configuration, o options) (webhooks, error) {
	if !*cfg.Placement.Webhook && !*cfg.BatchJob.Webhook {
		return webhooks{}, nil
	}
	if o.webhookService == "" {
		return webhooks{}, checkFiles(o.webhookCertificates)
	}
	certificates, err := webhook.Open(ctx, cluster, ownNamespace(o), o.webhookService)
	return webhooks{certificates}, err
}

// checkFiles reports files of a certificate that cannot be used. The server of the webhooks would end the operator for
// them too, without saying what they are for.
func checkFiles(dir string) error {
	if _, err := tls.LoadX509KeyPair(filepath.Join(dir, corev1.TLSCertKey),
		filepath.Join(dir, corev1.TLSPrivateKeyKey)); err != nil {
		return fmt.Errorf("the configuration enables webhooks, and their certificate cannot be read (name its directory with --webhook-cert-dir, or the webhooks' Service with --webhook-service to have certificates made): %w", err)
	}
	return nil
}

func (w webhooks) options(o options) webhookserver.Options {
	if w.certificates == nil {
		return webhookserver.Options{Port: o.webhookPort, CertDir: o.webhookCertificates}
	}
	return w.certificates.Options(o.webhookPort)
}

// addTo registers the webhooks. The manager is not ready before they are served.
func (w webhooks) addTo(ctx context.Context, mgr manager.Manager, cfg *v1alpha1.Configuration) error {
	if !*cfg.Placement.Webhook && !*cfg.BatchJob.Webhook {
		return nil
	}
	if *cfg.Placement.Webhook {
		if err := placer.AddWebhook(mgr); err != nil {
			return err
		}
	}
	if *cfg.BatchJob.Webhook {
		batchjob.AddWebhook(mgr, cmp.Or(ownName(ctx, mgr.GetConfig()), install.DefaultOperatorUser))
	}
	if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("adding the check of the webhooks: %w", err)
	}
	if w.certificates == nil {
		return nil
	}
	return w.certificates.AddTo(mgr)
}
