// Package v1alpha1 holds the Go types of the operator's configuration file: group config.muster.dev, version v1alpha1,
// kind Configuration.
//
// Anyone may import it. It holds no logic: package internal/config reads the file, fills in what is absent and refuses
// what is wrong. Where an option has the meaning of one of Kueue's configuration, it has that name.
//
// +kubebuilder:object:generate=true
package v1alpha1
