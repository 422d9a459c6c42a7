package admission

// What the engine hears of, and what Workloads are decided by.
//
// +kubebuilder:rbac:groups="",resources=namespaces;limitranges;nodes;pods,verbs=list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=admissionchecks;clusterqueues;cohorts;localqueues;resourceflavors;topologies;workloads,verbs=list;watch

// Decisions, and what befalls a Workload for its own sake. One that was decided on is read anew after a conflict.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=get;patch;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status;clusterqueues/status;cohorts/status;localqueues/status,verbs=patch

// What keeps in being what is in use.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;resourceflavors,verbs=patch

// Jobs whose Workloads were deactivated are deleted where the configuration says so.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=delete
// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=delete
// +kubebuilder:rbac:groups=batch.tensorstack.dev,resources=genericjobs,verbs=delete
// +kubebuilder:rbac:groups=lattice.dev,resources=latticejobs,verbs=delete
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs,verbs=delete
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs,verbs=delete
