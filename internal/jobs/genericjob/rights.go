package genericjob

// A GenericJob is made of pods and Services, and of a PodGroup where a scheduler wants one.
//
// +kubebuilder:rbac:groups=batch.tensorstack.dev,resources=genericjobs,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=batch.tensorstack.dev,resources=genericjobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch.tensorstack.dev,resources=genericjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create
// +kubebuilder:rbac:groups=scheduler.tensorstack.dev,resources=podgroups,verbs=get;create
