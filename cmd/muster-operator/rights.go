package main

// Leader election among several operators.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=muster-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=muster-system,resources=leases,resourceNames=muster.dev,verbs=get;update
// +kubebuilder:rbac:groups="";events.k8s.io,namespace=muster-system,resources=events,verbs=create;patch

// The leader publishes its configuration; see publish.go.
//
// +kubebuilder:rbac:groups="",namespace=kube-public,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=kube-public,resources=configmaps,resourceNames=muster-config,verbs=get;update

// With --metrics-secure, the API server authenticates and authorizes the readers of metrics.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
