package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultGroup is the group of the kinds in this package unless an installation gives them another.
const DefaultGroup = "breezeml.ai"

var (
	// GroupVersion is the group and version of every kind in this package, unless another group is configured.
	GroupVersion = VersionOf(DefaultGroup)

	// AddToScheme adds this package's kinds to a scheme. It never fails for a scheme that does not yet hold other
	// types under the same names.
	AddToScheme = AddToSchemeAs(DefaultGroup)
)

// VersionOf returns the group and version of the kinds for another group name.
func VersionOf(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: "v1"}
}

// AddToSchemeAs returns the AddToScheme for another group name.
func AddToSchemeAs(group string) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(VersionOf(group), &TrainingJob{}, &TrainingJobList{})
		metav1.AddToGroupVersion(scheme, VersionOf(group))
		return nil
	}
}
