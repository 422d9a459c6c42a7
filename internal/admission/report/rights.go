package report

// Why Workloads wait, and the status of queues and cohorts.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status;clusterqueues/status;cohorts/status;localqueues/status,verbs=patch
