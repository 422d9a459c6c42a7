package rendezvous

// Agents prove their pods by tokens, and belong to the job that controls the pod. The certificate is the operator's
// own.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs,verbs=list;watch
// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,resourceNames=muster-rendezvous,verbs=get;update

// Jobs report their progress by the same tokens. A pod's job is the one with the Workload, into which its expected end
// is written; a VCJob may be between both.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=list;watch;patch
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs,verbs=list;watch
