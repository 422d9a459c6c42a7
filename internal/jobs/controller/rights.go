package controller

// What all jobs depend on.
//
// +kubebuilder:rbac:groups="",resources=namespaces;nodes;events,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;localqueues;resourceflavors;workloadpriorityclasses,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// The Workloads of jobs.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch

// A job that names a ClusterQueue gets a LocalQueue for it if there is none.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=localqueues,verbs=create

// Pods are listed live to find out whether pods of a deleted job still use quota. The PodGroups of jobs are created, or
// loosened.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=podgroups,verbs=list;watch;create;patch;delete
