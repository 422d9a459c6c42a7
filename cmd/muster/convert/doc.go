// Package convert rewrites manifests of Kueue's API versions that Muster does not serve as the one that it serves. It
// is pure: text in, text out, without a cluster.
package convert
