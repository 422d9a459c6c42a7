package main

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/config"
)

// TestMissingCertificatesOfWebhooksAreExplained: an operator that is told to serve webhooks, and has no certificate for
// them, says which flags give it one.
func TestMissingCertificatesOfWebhooksAreExplained(t *testing.T) {
	cfg, o := config.Default(), options{webhookCertificates: t.TempDir()}
	if _, err := openWebhooks(t.Context(), nil, cfg, o); err != nil {
		t.Errorf("without webhooks: %v", err)
	}
	cfg.BatchJob.Webhook = ptr.To(true)
	_, err := openWebhooks(t.Context(), nil, cfg, o)
	if err == nil || !strings.Contains(err.Error(), "--webhook-cert-dir") ||
		!strings.Contains(err.Error(), "--webhook-service") {
		t.Errorf("error %v, want one that names both flags", err)
	}
}
