package write

// Events for users. What the plans of an API write is in the rights of that API, and of package controller.
//
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
