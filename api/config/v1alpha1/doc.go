// Package v1alpha1 has the Go types of the operator's configuration file: group config.muster.dev, version v1alpha1,
// kind Configuration.
//
// Any package may import it. It has no logic: package internal/config reads the file, sets defaults and validates it.
// An option that exists in Kueue's configuration has the same name here.
//
// +kubebuilder:object:generate=true
package v1alpha1
