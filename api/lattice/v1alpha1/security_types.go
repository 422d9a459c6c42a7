package v1alpha1

// SecurityContext configures the privileges of a container, which is hardened by default.
type SecurityContext struct {
	// capabilities are added to the remaining ones.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Capabilities []string `json:"capabilities,omitempty"`

	// dropCapabilities are removed; default all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	DropCapabilities []string `json:"dropCapabilities,omitempty"`

	// privileged gives the container access to everything on its node; default false.
	//
	// +optional
	Privileged *bool `json:"privileged,omitempty"`

	// readOnlyRootFilesystem prevents writes outside of volumes; default true.
	//
	// +optional
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`

	// runAsNonRoot prevents it from running as root; default true, unless runAsUser is 0.
	//
	// +optional
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`

	// runAsUser is the user that it runs as.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the group that it runs as.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// allowPrivilegeEscalation lets it gain more privileges than its parent process; default false.
	//
	// +optional
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty"`

	// seccompProfile restricts its system calls; default RuntimeDefault.
	//
	// +optional
	// +kubebuilder:validation:Enum=RuntimeDefault;Localhost;Unconfined
	SeccompProfile string `json:"seccompProfile,omitempty"`

	// seccompLocalhostProfile is the profile on the node, used with Localhost.
	//
	// +optional
	SeccompLocalhostProfile string `json:"seccompLocalhostProfile,omitempty"`

	// apparmorProfile restricts its access to resources; default RuntimeDefault.
	//
	// +optional
	// +kubebuilder:validation:Enum=RuntimeDefault;Localhost;Unconfined
	ApparmorProfile string `json:"apparmorProfile,omitempty"`

	// apparmorLocalhostProfile is the profile on the node, used with Localhost.
	//
	// +optional
	ApparmorLocalhostProfile string `json:"apparmorLocalhostProfile,omitempty"`

	// allowedBinaries are the only binaries that may be executed, in addition to its command; "*" allows all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	AllowedBinaries []string `json:"allowedBinaries,omitempty"`
}
