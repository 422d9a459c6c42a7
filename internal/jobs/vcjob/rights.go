package vcjob

// The children of a VCJob are pods, claims and the objects of its plugins. Plugin objects are created if they
// are missing, and the ConfigMap of hosts is updated; they are never listed.
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
