package v1alpha1

// TrainingFramework is by what the pods of a training find each other.
//
// +kubebuilder:validation:Enum=PyTorch;DeepSpeed;Jax
type TrainingFramework string

const (
	// PyTorch is torch.distributed.
	PyTorch TrainingFramework = "PyTorch"
	// DeepSpeed is told what PyTorch is.
	DeepSpeed TrainingFramework = "DeepSpeed"
	// Jax is jax.distributed.
	Jax TrainingFramework = "Jax"
)

// DefaultCoordinator is the task of the coordinator where a training names none.
const DefaultCoordinator = "master"

// TrainingConfig says how the pods of a job train together.
type TrainingConfig struct {
	// framework is by what they find each other.
	//
	// +optional
	// +kubebuilder:default=PyTorch
	Framework TrainingFramework `json:"framework,omitempty"`

	// coordinatorTask is the task whose first pod the others look for. The job is complete with the task.
	//
	// +optional
	// +kubebuilder:default=master
	// +kubebuilder:validation:MaxLength=63
	CoordinatorTask string `json:"coordinatorTask,omitempty"`

	// nccl says how GPUs of different pods talk to each other.
	//
	// +optional
	NCCL *NCCLConfig `json:"nccl,omitempty"`
}

// NCCLConfig says how GPUs of different pods talk to each other.
type NCCLConfig struct {
	// netIf is the network interface, as NCCL_SOCKET_IFNAME.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	NetIf string `json:"netIf,omitempty"`

	// ibHca are the adapters of InfiniBand, as NCCL_IB_HCA.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	IBHCA string `json:"ibHca,omitempty"`

	// gdr has the adapters read the memory of GPUs directly, or keeps them from it.
	//
	// +optional
	GDR *bool `json:"gdr,omitempty"`

	// debug is how much is logged, as NCCL_DEBUG; WARN where it is absent.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Debug string `json:"debug,omitempty"`

	// extraEnv are further variables.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	ExtraEnv map[string]string `json:"extraEnv,omitempty"`
}
