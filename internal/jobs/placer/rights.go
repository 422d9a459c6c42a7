package placer

// Gated pods are given their places, or ended where they can have none. One that changed in between is read anew.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=list;watch
