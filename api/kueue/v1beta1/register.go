package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta1"}

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme. It never fails for a scheme that does not yet hold other
	// types under the same names.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group resource for a plural resource name such as "workloads".
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&AdmissionCheck{}, &AdmissionCheckList{},
		&ClusterQueue{}, &ClusterQueueList{},
		&Cohort{}, &CohortList{},
		&LocalQueue{}, &LocalQueueList{},
		&ResourceFlavor{}, &ResourceFlavorList{},
		&Topology{}, &TopologyList{},
		&Workload{}, &WorkloadList{},
		&WorkloadPriorityClass{}, &WorkloadPriorityClassList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
