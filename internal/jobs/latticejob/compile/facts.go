package compile

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batch "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// Object is anything that is compiled.
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

// GPUs says in which resources GPUs are asked for.
type GPUs string

const (
	// WholeGPUs are nvidia.com/gpu.
	WholeGPUs GPUs = "whole"
	// SharedGPUs are volcano.sh/vgpu-*.
	SharedGPUs GPUs = "vgpu"
)

// Facts is what a compilation may know of the cluster. It is never changed.
type Facts struct {
	// Served are those of the kinds above that the cluster serves.
	Served map[schema.GroupResource]bool
	// NeedMesh and NeedTracing say that a job must not run without its mesh members, or
	// its TracingPolicies.
	NeedMesh, NeedTracing bool
	// GPUs says in which resources GPUs are asked for; WholeGPUs if empty.
	GPUs GPUs
	// GPUMemoryLabel says that nodes tell the memory of their GPUs in a label.
	GPUMemoryLabel bool
	// GPUModels are values of the product label by the name of a model, in upper case.
	// They go before those that are known.
	GPUModels map[string]string
	// NvidiaRuntime says that there is a RuntimeClass nvidia.
	NvidiaRuntime bool
	// SpreadBy is the label by whose values pods are spread; the host name if empty.
	SpreadBy string
	// Cluster are the values of ${cluster.*}.
	Cluster map[string]string
	// Services are those of the service graph that the job refers to. The job's own
	// tasks need not be there.
	Services map[ServiceKey][]ServicePort
	// AnyService takes those that are not there for such without ports.
	AnyService bool
}

// ServiceKey names a service of the graph.
type ServiceKey struct{ Namespace, Name string }

// ServicePort is a port of a service.
type ServicePort struct {
	Name string
	Port int32
}

// Result is what a job was compiled to.
type Result struct {
	// Objects are to be there before the VCJob is, in the order of their kinds.
	Objects []Object
	// VCJob is the gang itself.
	VCJob *batch.Job
	// Missing are kinds that the job needs and that the cluster does not serve.
	Missing []schema.GroupKind
	// Skipped are kinds that it would have, and can do without.
	Skipped []schema.GroupKind
	// Warnings tell what was ignored.
	Warnings []string
}

// hostnameLabel is by what pods are spread unless something else is said.
const hostnameLabel = corev1.LabelHostname
