package v1alpha1

// SecurityContext says what a container may do beyond what is hardened by default.
type SecurityContext struct {
	// capabilities are added to those that are left.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Capabilities []string `json:"capabilities,omitempty"`

	// dropCapabilities are taken away: all where it is absent.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	DropCapabilities []string `json:"dropCapabilities,omitempty"`

	// privileged gives the container all that its node has; false where it is absent.
	//
	// +optional
	Privileged *bool `json:"privileged,omitempty"`

	// readOnlyRootFilesystem keeps it from writing outside of volumes; true where it is absent.
	//
	// +optional
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`

	// runAsNonRoot keeps it from running as root; true where it is absent, unless runAsUser is 0.
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

	// allowPrivilegeEscalation lets it gain more rights than its parent; false where it is absent.
	//
	// +optional
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty"`

	// seccompProfile is which system calls it may make; RuntimeDefault where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Enum=RuntimeDefault;Localhost;Unconfined
	SeccompProfile string `json:"seccompProfile,omitempty"`

	// seccompLocalhostProfile is the profile on the node, with Localhost.
	//
	// +optional
	SeccompLocalhostProfile string `json:"seccompLocalhostProfile,omitempty"`

	// apparmorProfile is what it may do; RuntimeDefault where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Enum=RuntimeDefault;Localhost;Unconfined
	ApparmorProfile string `json:"apparmorProfile,omitempty"`

	// apparmorLocalhostProfile is the profile on the node, with Localhost.
	//
	// +optional
	ApparmorLocalhostProfile string `json:"apparmorLocalhostProfile,omitempty"`

	// allowedBinaries are the only ones that may be run, beside its command; "*" allows all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	AllowedBinaries []string `json:"allowedBinaries,omitempty"`
}
