package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkloadSpec is what runs in a pod.
type WorkloadSpec struct {
	// containers by their names. A task has one at least.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Containers map[string]ContainerSpec `json:"containers,omitempty"`

	// resources are what the containers depend on, by names that templates use.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Resources map[string]ResourceSpec `json:"resources,omitempty"`

	// service has the ports at which each pod is reached.
	//
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`
}

// ServiceSpec has the ports at which a pod is reached.
type ServiceSpec struct {
	// ports by their names.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Ports map[string]ServicePort `json:"ports,omitempty"`
}

// ServicePort is one port.
type ServicePort struct {
	// port is its number.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// targetPort is the number at which the container listens; port where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort *int32 `json:"targetPort,omitempty"`

	// protocol is TCP unless it says otherwise.
	//
	// +optional
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// ContainerSpec is one container.
type ContainerSpec struct {
	SidecarContainer `json:",inline"`

	// envFrom are names of resources of type secret, all of whose keys become variables.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EnvFrom []string `json:"envFrom,omitempty"`
}

// SidecarSpec is a container that runs beside the others, or before them.
type SidecarSpec struct {
	SidecarContainer `json:",inline"`

	// init has it run before the others, to its end.
	//
	// +optional
	Init *bool `json:"init,omitempty"`
}

// SidecarContainer is what containers and sidecars have in common.
type SidecarContainer struct {
	// image is what runs. A container has one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// command goes in place of the image's entry point.
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

	// workingDir is where the command starts.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	WorkingDir string `json:"workingDir,omitempty"`

	// variables of the environment. Those of containers, not of sidecars, are templates.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=1024
	Variables map[string]string `json:"variables,omitempty"`

	// resources are what the container asks for, and how much it may use.
	//
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// files by the paths where they are mounted.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Files map[string]FileMount `json:"files,omitempty"`

	// volumes by the paths where they are mounted.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Volumes map[string]VolumeMount `json:"volumes,omitempty"`

	// livenessProbe says whether the container must be restarted.
	//
	// +optional
	LivenessProbe *Probe `json:"livenessProbe,omitempty"`

	// readinessProbe says whether it can be used.
	//
	// +optional
	ReadinessProbe *Probe `json:"readinessProbe,omitempty"`

	// startupProbe says whether it has started.
	//
	// +optional
	StartupProbe *Probe `json:"startupProbe,omitempty"`

	// security says what it may do beyond what is hardened by default.
	//
	// +optional
	Security *SecurityContext `json:"security,omitempty"`
}

// ResourceRequirements are amounts of cpu and memory.
type ResourceRequirements struct {
	// requests are what the container is sure to have.
	//
	// +optional
	Requests *ResourceQuantity `json:"requests,omitempty"`

	// limits are what it can have at most.
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

// FileMount is a file that is made in the container. It has one of content, binaryContent and source.
type FileMount struct {
	// content is a template of the text.
	//
	// +optional
	Content *string `json:"content,omitempty"`

	// binaryContent is the content in base64.
	//
	// +optional
	BinaryContent *string `json:"binaryContent,omitempty"`

	// source is the name of a file beside the manifest, which tools put in as content before they apply it.
	//
	// +optional
	Source *string `json:"source,omitempty"`

	// mode is what its owner, its group and others may do with it, as three or four octal digits.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-7]{3,4}$`
	Mode string `json:"mode,omitempty"`

	// noExpand takes the content as it is.
	//
	// +optional
	NoExpand *bool `json:"noExpand,omitempty"`

	// reverseExpand leaves ${...} as it is and expands $${...}: for files that have many of the former.
	//
	// +optional
	ReverseExpand *bool `json:"reverseExpand,omitempty"`
}

// VolumeMount is a volume that is mounted.
type VolumeMount struct {
	// source is ${resources.NAME}, of a resource of type volume. Without it the volume is an empty one of the pod's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Source string `json:"source,omitempty"`

	// path within the volume.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`

	// readOnly keeps the container from writing.
	//
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// medium of an empty volume: Memory, or that of the node where it is empty.
	//
	// +optional
	// +kubebuilder:validation:Enum=Memory;""
	Medium string `json:"medium,omitempty"`

	// sizeLimit of an empty volume.
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

	// initialDelaySeconds is how long to wait after the start.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	InitialDelaySeconds *int32 `json:"initialDelaySeconds,omitempty"`

	// periodSeconds is how often to check; every 10 where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// timeoutSeconds is how long an answer may take; 1 where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// failureThreshold is how many checks must fail in a row; 3 where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// successThreshold is how many must succeed in a row after that; 1 where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
}

// HTTPGetProbe is a request by HTTP.
type HTTPGetProbe struct {
	// path of the request.
	//
	// +optional
	Path string `json:"path,omitempty"`
	// port to which it is made.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// scheme is HTTP unless it says otherwise.
	//
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	Scheme corev1.URIScheme `json:"scheme,omitempty"`
	// host is the pod's address unless it says otherwise.
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

// HTTPHeader is one header.
type HTTPHeader struct {
	// name of the header.
	Name string `json:"name"`
	// value of it.
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

// ResourceType is what a resource is. Any other DNS label is a type of the user's own, of which nothing is made.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ResourceType string

const (
	// ServiceResource is another service or task of the cluster.
	ServiceResource ResourceType = "service"
	// ExternalServiceResource is a service outside of it.
	ExternalServiceResource ResourceType = "external-service"
	// VolumeResource is a persistent volume claim.
	VolumeResource ResourceType = "volume"
	// SecretResource is a secret of an external store.
	SecretResource ResourceType = "secret"
	// GPUResource is a number of GPUs, or of parts of them.
	GPUResource ResourceType = "gpu"
)

// Direction is who calls whom.
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

// ResourceSpec is something that containers depend on.
type ResourceSpec struct {
	// type is what it is.
	Type ResourceType `json:"type"`

	// class of the resource, for those who provide it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class,omitempty"`

	// id is its name where it lives: the key in the secret store, the volume, the service.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ID string `json:"id,omitempty"`

	// metadata of the resource.
	//
	// +optional
	Metadata *ResourceMetadata `json:"metadata,omitempty"`

	// params are those of its type.
	//
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Params *runtime.RawExtension `json:"params,omitempty"`

	// direction is who calls whom; outbound where it is absent.
	//
	// +optional
	Direction Direction `json:"direction,omitempty"`

	// namespace of the service; the job's where it is absent.
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
