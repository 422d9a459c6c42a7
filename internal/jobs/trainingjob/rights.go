package trainingjob

// A TrainingJob consists of pods and Services. The installation may give its API another group.
//
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs/status,verbs=patch
// +kubebuilder:rbac:groups=breezeml.ai,resources=trainingjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;delete
