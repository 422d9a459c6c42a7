package managedqueues

// The default queue and its nodes.
//
// +kubebuilder:rbac:groups="",resources=namespaces;nodes,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;resourceflavors;topologies,verbs=create
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;cohorts;resourceflavors;topologies,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;resourceflavors,verbs=patch

// LocalQueues that were made for ClusterQueues that are gone.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=localqueues,verbs=list;watch;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=list;watch

// The signs of a node autoscaler.
//
// +kubebuilder:rbac:groups="",namespace=kube-system,resources=configmaps,resourceNames=cluster-autoscaler-status,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// Volcano's Queues, their ClusterQueues and the cohort of these.
//
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=queues,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=queues/status,verbs=patch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=cohorts,verbs=create;patch;delete
