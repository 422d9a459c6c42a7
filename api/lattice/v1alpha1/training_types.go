package v1alpha1

// TrainingFramework is the framework by which the pods of a training find each other.
//
// +kubebuilder:validation:Enum=PyTorch;DeepSpeed;Jax
type TrainingFramework string

const (
	// PyTorch is torch.distributed.
	PyTorch TrainingFramework = "PyTorch"
	// DeepSpeed is configured like PyTorch.
	DeepSpeed TrainingFramework = "DeepSpeed"
	// Jax is jax.distributed.
	Jax TrainingFramework = "Jax"
)

// DefaultCoordinator is the coordinator task of a training without coordinatorTask.
const DefaultCoordinator = "master"

// TrainingConfig configures distributed training.
type TrainingConfig struct {
	// framework by which the pods find each other.
	//
	// +optional
	// +kubebuilder:default=PyTorch
	Framework TrainingFramework `json:"framework,omitempty"`

	// coordinatorTask is the task whose first pod is the rendezvous of the others. The job completes with this task.
	//
	// +optional
	// +kubebuilder:default=master
	// +kubebuilder:validation:MaxLength=63
	CoordinatorTask string `json:"coordinatorTask,omitempty"`

	// nccl configures communication between GPUs of different pods.
	//
	// +optional
	NCCL *NCCLConfig `json:"nccl,omitempty"`
}

// NCCLConfig configures communication between GPUs of different pods.
type NCCLConfig struct {
	// netIf is the network interface, as NCCL_SOCKET_IFNAME.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	NetIf string `json:"netIf,omitempty"`

	// ibHca are the InfiniBand adapters, as NCCL_IB_HCA.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	IBHCA string `json:"ibHca,omitempty"`

	// gdr enables or disables GPUDirect RDMA.
	//
	// +optional
	GDR *bool `json:"gdr,omitempty"`

	// debug is the log level, as NCCL_DEBUG; default WARN.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Debug string `json:"debug,omitempty"`

	// extraEnv are additional environment variables.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	ExtraEnv map[string]string `json:"extraEnv,omitempty"`
}
