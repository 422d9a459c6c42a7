package latticejob

// A LatticeJob is compiled to a VCJob and the objects that it needs, which are applied. Mesh members
// are watched once the cluster serves them; they are listed when a job that cannot be compiled is
// removed from the mesh, and with TracingPolicies when a job with a changed spec is applied. A job with a
// schedule creates other LatticeJobs.
//
// +kubebuilder:rbac:groups=lattice.dev,resources=latticejobs,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=lattice.dev,resources=latticejobs/status,verbs=patch
// +kubebuilder:rbac:groups=lattice.dev,resources=latticejobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch.volcano.sh,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;persistentvolumeclaims;secrets;serviceaccounts,verbs=get;create;patch
// +kubebuilder:rbac:groups=external-secrets.io,resources=externalsecrets,verbs=get;create;patch
// +kubebuilder:rbac:groups=lattice.dev,resources=latticemeshmembers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cilium.io,resources=tracingpoliciesnamespaced,verbs=get;list;create;patch;delete

// The result of a compilation depends on the cluster's Services and RuntimeClasses.
//
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch
