package probe

// The dry-run creation of a pod shows whether the API server keeps pods in PodGroups; the ServiceAccount shows whether
// the namespace takes pods yet. The dry-run creation of a Service shows which names the API server takes.
//
// +kubebuilder:rbac:groups="",resources=pods;services,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get
