package trainingjob

// A TrainingJob is made of pods and Services. Its group is another one where the installation says so.
//
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs/status,verbs=patch
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;delete
