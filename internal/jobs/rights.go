package jobs

// What all jobs depend on.
//
// +kubebuilder:rbac:groups="",resources=namespaces;nodes;events,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;localqueues;resourceflavors;workloadpriorityclasses,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// Their Workloads.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch

// Who names a ClusterQueue gets a LocalQueue to it where there is none.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=localqueues,verbs=create

// Whether the API server keeps gangs is asked by a pod that is not stored, once its namespace takes any. Whether pods of an ended job still hold quota is
// asked of the API server itself.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;create
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=podgroups,verbs=list;watch;create;patch;delete

// What people are told.
//
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
