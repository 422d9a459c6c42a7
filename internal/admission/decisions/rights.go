package decisions

// Decisions are written into the status of Workloads, after a conflict as read from the API server.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=get
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch
