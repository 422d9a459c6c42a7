package admission

// Watched by the engine and the lifecycle of Workloads.
//
// +kubebuilder:rbac:groups="",resources=namespaces;limitranges;nodes;pods,verbs=list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=admissionchecks;clusterqueues;cohorts;localqueues;resourceflavors;topologies;workloads,verbs=list;watch

// Steps of the lifecycle of a Workload.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=patch;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch

// The finalizer on objects in use.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;resourceflavors,verbs=patch

// Jobs of deactivated Workloads, which are deleted where the configuration says so.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=delete
// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=delete
// +kubebuilder:rbac:groups=batch.tensorstack.dev,resources=genericjobs,verbs=delete
// +kubebuilder:rbac:groups=lattice.dev,resources=latticejobs,verbs=delete
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs,verbs=delete
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs,verbs=delete

// What keeps pods from being ready may be a claim that does not exist: only whether it does is read. It may be a
// ConfigMap or a Secret: events of the pod say so, and neither is read.
//
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=list
