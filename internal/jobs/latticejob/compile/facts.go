package compile

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batch "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// Object is any compiled object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kinds that a cluster may not serve.
var (
	ExternalSecrets = schema.GroupResource{Group: "external-secrets.io", Resource: "externalsecrets"}
	MeshMembers     = schema.GroupResource{Group: "lattice.dev", Resource: "latticemeshmembers"}
	TracingPolicies = schema.GroupResource{Group: "cilium.io", Resource: "tracingpoliciesnamespaced"}
)

// GPUs says which resources GPUs are requested as.
type GPUs string

const (
	// WholeGPUs are requested as nvidia.com/gpu.
	WholeGPUs GPUs = "whole"
	// SharedGPUs are requested as volcano.sh/vgpu-*.
	SharedGPUs GPUs = "vgpu"
)

// Facts are what a compilation may know of the cluster. They are immutable.
type Facts struct {
	// Served are the kinds above that the cluster serves.
	Served map[schema.GroupResource]bool
	// NeedMesh and NeedTracing say that a job must not run without its mesh members, or its TracingPolicies.
	NeedMesh, NeedTracing bool
	// GPUs says which resources GPUs are requested as; WholeGPUs if empty.
	GPUs GPUs
	// GPUMemoryLabel says that nodes have a label with the memory of their GPUs.
	GPUMemoryLabel bool
	// GPUModels maps names of GPU models, in upper case, to values of the product label. They override the built-in ones.
	GPUModels map[string]string
	// NvidiaRuntime says that the RuntimeClass nvidia exists.
	NvidiaRuntime bool
	// SpreadBy is the label over whose values pods are spread; the host name if empty.
	SpreadBy string
	// StrictServiceNames says that the names of Services must begin with a letter.
	StrictServiceNames bool
	// Cluster holds the values of ${cluster.*}.
	Cluster map[string]string
	// Services are the services of the graph that the job refers to. The job's own tasks may be absent.
	Services map[ServiceKey][]ServicePort
	// AnyService treats services that are absent as existing ones without ports.
	AnyService bool
}

// ServiceKey names a service of the graph.
type ServiceKey struct{ Namespace, Name string }

// ServicePort is a port of a service.
type ServicePort struct {
	Name string
	Port int32
}

// Result is the result of a compilation.
type Result struct {
	// Objects must exist before the VCJob; they are ordered by kind.
	Objects []Object
	// VCJob is the gang.
	VCJob *batch.Job
	// Missing are kinds that the job needs and that the cluster does not serve.
	Missing []schema.GroupKind
	// Skipped are optional kinds that the cluster does not serve.
	Skipped []schema.GroupKind
	// Warnings say what was ignored.
	Warnings []string
}

// hostnameLabel is the label over which pods are spread by default.
const hostnameLabel = corev1.LabelHostname
