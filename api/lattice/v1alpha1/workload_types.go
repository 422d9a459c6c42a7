package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkloadSpec describes the containers of a pod.
type WorkloadSpec struct {
	// containers, keyed by name. A task has at least one.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Containers map[string]ContainerSpec `json:"containers,omitempty"`

	// resources are the dependencies of the containers, keyed by the names that templates use.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Resources map[string]ResourceSpec `json:"resources,omitempty"`

	// service defines the ports at which each pod is reached.
	//
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`
}

// ServiceSpec defines the ports at which a pod is reached.
type ServiceSpec struct {
	// ports, keyed by name.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Ports map[string]ServicePort `json:"ports,omitempty"`
}

// ServicePort is a port.
type ServicePort struct {
	// port is its number.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// targetPort is the number at which the container listens; default port.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`

	// protocol of the port; default TCP.
	//
	// +optional
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// ContainerSpec is one container.
type ContainerSpec struct {
	SidecarContainer `json:",inline"`

	// envFrom are names of resources of type secret, all of whose keys become environment variables.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EnvFrom []string `json:"envFrom,omitempty"`
}

// SidecarSpec is a container that runs beside the others, or before them.
type SidecarSpec struct {
	SidecarContainer `json:",inline"`

	// init runs it to completion before the others.
	//
	// +optional
	Init *bool `json:"init,omitempty"`
}

// SidecarContainer has the fields common to containers and sidecars.
type SidecarContainer struct {
	// image of the container, required for containers.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// command replaces the image's entrypoint.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Command []string `json:"command,omitempty"`

	// args of the command.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Args []string `json:"args,omitempty"`

	// workingDir of the command.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	WorkingDir string `json:"workingDir,omitempty"`

	// variables of the environment. Those of containers, but not of sidecars, are templates.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=1024
	Variables map[string]string `json:"variables,omitempty"`

	// resources that the container requests, and their limits.
	//
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// files, keyed by the paths where they are mounted.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Files map[string]FileMount `json:"files,omitempty"`

	// volumes, keyed by the paths where they are mounted.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Volumes map[string]VolumeMount `json:"volumes,omitempty"`

	// livenessProbe determines whether the container must be restarted.
	//
	// +optional
	LivenessProbe *Probe `json:"livenessProbe,omitempty"`

	// readinessProbe determines whether it is ready.
	//
	// +optional
	ReadinessProbe *Probe `json:"readinessProbe,omitempty"`

	// startupProbe determines whether it has started.
	//
	// +optional
	StartupProbe *Probe `json:"startupProbe,omitempty"`

	// security configures its privileges, which are hardened by default.
	//
	// +optional
	Security *SecurityContext `json:"security,omitempty"`
}

// ResourceRequirements are amounts of cpu and memory.
type ResourceRequirements struct {
	// requests are guaranteed to the container.
	//
	// +optional
	Requests *ResourceQuantity `json:"requests,omitempty"`

	// limits are the most that it can use.
	//
	// +optional
	Limits *ResourceQuantity `json:"limits,omitempty"`
}

// ResourceQuantity is an amount of each resource.
type ResourceQuantity struct {
	// cpu in cores.
	//
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory in bytes.
	//
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// FileMount is a file created in the container. Exactly one of content, binaryContent and source is set.
type FileMount struct {
	// content is the text of the file, a template.
	//
	// +optional
	Content *string `json:"content,omitempty"`

	// binaryContent is the content in base64.
	//
	// +optional
	BinaryContent *string `json:"binaryContent,omitempty"`

	// source is the name of a file beside the manifest, which tools insert as content before they apply it.
	//
	// +optional
	Source *string `json:"source,omitempty"`

	// mode is the file mode as three or four octal digits.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-7]{3,4}$`
	Mode string `json:"mode,omitempty"`

	// noExpand uses the content without expansion.
	//
	// +optional
	NoExpand *bool `json:"noExpand,omitempty"`

	// reverseExpand expands $${...} and keeps ${...}, for files with many of the latter.
	//
	// +optional
	ReverseExpand *bool `json:"reverseExpand,omitempty"`
}

// VolumeMount is a mounted volume.
type VolumeMount struct {
	// source is ${resources.NAME}, for a resource of type volume. Without it, the volume is an emptyDir of the pod.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Source string `json:"source,omitempty"`

	// path within the volume.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`

	// readOnly prevents the container from writing.
	//
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// medium of an emptyDir: Memory, or the node's default medium if empty.
	//
	// +optional
	// +kubebuilder:validation:Enum=Memory;""
	Medium string `json:"medium,omitempty"`

	// sizeLimit of an emptyDir.
	//
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// Probe is a check of a container, by HTTP or by a command.
type Probe struct {
	// httpGet asks by HTTP.
	//
	// +optional
	HTTPGet *HTTPGetProbe `json:"httpGet,omitempty"`

	// exec runs a command.
	//
	// +optional
	Exec *ExecProbe `json:"exec,omitempty"`

	// initialDelaySeconds is how long to wait after the container's start.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	InitialDelaySeconds *int32 `json:"initialDelaySeconds,omitempty"`

	// periodSeconds is the interval between checks; default 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// timeoutSeconds is the timeout of a check; default 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// failureThreshold is how many consecutive checks must fail; default 3.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// successThreshold is how many consecutive checks must succeed after a failure; default 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
}

// HTTPGetProbe is an HTTP request.
type HTTPGetProbe struct {
	// path of the request.
	//
	// +optional
	Path string `json:"path,omitempty"`
	// port of the request.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// scheme of the request; default HTTP.
	//
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	Scheme corev1.URIScheme `json:"scheme,omitempty"`
	// host of the request; default the pod's address.
	//
	// +optional
	Host string `json:"host,omitempty"`
	// httpHeaders of the request.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	// name of the header.
	Name string `json:"name"`
	// value of the header.
	Value string `json:"value"`
}

// ExecProbe is a command.
type ExecProbe struct {
	// command with its arguments.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	Command []string `json:"command"`
}

// ResourceType is the type of a resource. Any other DNS label is a type defined by the user, for which nothing is
// created.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ResourceType string

const (
	// ServiceResource is another service, or another task, in the cluster.
	ServiceResource ResourceType = "service"
	// ExternalServiceResource is a service outside the cluster.
	ExternalServiceResource ResourceType = "external-service"
	// VolumeResource is a PersistentVolumeClaim.
	VolumeResource ResourceType = "volume"
	// SecretResource is a secret in an external store.
	SecretResource ResourceType = "secret"
	// GPUResource is a number of GPUs, or of shares of GPUs.
	GPUResource ResourceType = "gpu"
)

// Direction is the direction of calls.
//
// +kubebuilder:validation:Enum=outbound;inbound;both
type Direction string

const (
	// Outbound: the task calls the service.
	Outbound Direction = "outbound"
	// Inbound: the service calls the task.
	Inbound Direction = "inbound"
	// Both: each calls the other.
	Both Direction = "both"
)

// ResourceSpec is a dependency of containers.
type ResourceSpec struct {
	// type of the resource.
	Type ResourceType `json:"type"`

	// class of the resource, interpreted by its provider.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class,omitempty"`

	// id of the resource where it is stored: the key in the secret store, the volume, the service.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ID string `json:"id,omitempty"`

	// metadata of the resource.
	//
	// +optional
	Metadata *ResourceMetadata `json:"metadata,omitempty"`

	// params specific to the type.
	//
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Params *runtime.RawExtension `json:"params,omitempty"`

	// direction of calls; default outbound.
	//
	// +optional
	Direction Direction `json:"direction,omitempty"`

	// namespace of the service; default the job's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// ResourceMetadata describes a resource.
type ResourceMetadata struct {
	// annotations of the resource.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
