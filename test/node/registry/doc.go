// Package registry builds container images from files of this machine and serves them to a node that can reach no other
// registry. Images are found by the names in manifests, so that the manifests need no change.
package registry
