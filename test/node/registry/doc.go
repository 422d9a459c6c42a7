// Package registry builds container images from files of this machine and serves them to a node that has no access to
// other registries. It serves images by the names that manifests use, so that the manifests need no change.
package registry
