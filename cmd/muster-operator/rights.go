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
