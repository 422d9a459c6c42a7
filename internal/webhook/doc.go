// Package webhook makes the API server trust the operator's webhooks, where the configuration enables them: their
// certificates are signed by an authority that the operators share, and the package keeps the CA bundles in the
// chart's webhook configuration up to date. It is called by the operator's main package, and knows nothing of the
// webhooks' requests.
package webhook
