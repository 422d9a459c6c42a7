package batchjob

// batch/v1 Jobs are stopped and let go; Kubernetes runs them. Their Workloads are owned by them, which an API server that checks
// OwnerReferencesPermissionEnforcement takes only from who may change finalizers.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch;patch
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs/finalizers,verbs=update
