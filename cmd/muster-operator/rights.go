package main

// Of several operators one leads.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=muster-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=muster-system,resources=leases,resourceNames=muster.dev,verbs=get;update
// +kubebuilder:rbac:groups="";events.k8s.io,namespace=muster-system,resources=events,verbs=create;patch

// It says what it decides by.
//
// +kubebuilder:rbac:groups="",namespace=kube-public,resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",namespace=kube-public,resources=configmaps,resourceNames=muster-config,verbs=get;update

// Metrics are for who may get them: whose token it is, and what he may, the API server says.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
