package batchjob

// batch/v1 Jobs are suspended and resumed; Kubernetes runs them. They own their Workloads, which an API server with
// OwnerReferencesPermissionEnforcement accepts only from clients who may update the Job's finalizers.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch;patch
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs/finalizers,verbs=update

// The completed pods of a Job that restarts as a whole are deleted.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
