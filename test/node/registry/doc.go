// Package registry makes container images of files of this machine and serves them to a node as a registry would, for a node
// that reaches no other. What a pod asks for is found by the name in its manifest, so that manifests stay as they are.
package registry
