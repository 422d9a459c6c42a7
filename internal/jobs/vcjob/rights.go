package vcjob

// A VCJob is made of pods, claims, and what its plugins need. Of the latter it is only made sure that the job has them, and hosts are
// written anew: they are never listed.
//
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=bus.volcano.sh,resources=commands,verbs=list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;services,verbs=list;watch;create
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;create
