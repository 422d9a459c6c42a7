// Package webhook has the API server reach and trust the operator where its configuration turns webhooks on: their certificates are
// those of an authority of the operators' own, which the object that the chart makes for the webhooks is told of. The
// operator's wiring calls it. It knows nothing of what the API server asks.
package webhook
