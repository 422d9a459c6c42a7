package compile

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// securityOf returns the security context of a container: Kubernetes' restricted profile, except for
// what its spec sets.
func securityOf(s *lattice.SecurityContext) *corev1.SecurityContext {
	if s == nil {
		s = &lattice.SecurityContext{}
	}
	out := &corev1.SecurityContext{
		Capabilities:             &corev1.Capabilities{Drop: capabilities(s.DropCapabilities)},
		Privileged:               ptr.To(ptr.Deref(s.Privileged, false)),
		ReadOnlyRootFilesystem:   ptr.To(ptr.Deref(s.ReadOnlyRootFilesystem, true)),
		RunAsNonRoot:             ptr.To(ptr.Deref(s.RunAsNonRoot, s.RunAsUser == nil || *s.RunAsUser != 0)),
		RunAsUser:                s.RunAsUser,
		RunAsGroup:               s.RunAsGroup,
		AllowPrivilegeEscalation: ptr.To(ptr.Deref(s.AllowPrivilegeEscalation, false)),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AppArmorProfile:          &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
	}
	if s.DropCapabilities == nil {
		out.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
	out.Capabilities.Add = capabilities(s.Capabilities)
	if *out.Privileged {
		out.AllowPrivilegeEscalation = nil // privileged containers cannot be denied it
	}
	if s.SeccompProfile != "" {
		out.SeccompProfile.Type = corev1.SeccompProfileType(s.SeccompProfile)
	}
	if s.SeccompLocalhostProfile != "" {
		out.SeccompProfile.LocalhostProfile = &s.SeccompLocalhostProfile
	}
	if s.ApparmorProfile != "" {
		out.AppArmorProfile.Type = corev1.AppArmorProfileType(s.ApparmorProfile)
	}
	if s.ApparmorLocalhostProfile != "" {
		out.AppArmorProfile.LocalhostProfile = &s.ApparmorLocalhostProfile
	}
	return out
}

// identityOf returns only the identity and the profiles of a container's security context. Another
// container of the same image, which may need root, can only run with them.
func identityOf(s *lattice.SecurityContext) *lattice.SecurityContext {
	if s == nil {
		return nil
	}
	return &lattice.SecurityContext{
		RunAsNonRoot: s.RunAsNonRoot, RunAsUser: s.RunAsUser, RunAsGroup: s.RunAsGroup,
		SeccompProfile: s.SeccompProfile, SeccompLocalhostProfile: s.SeccompLocalhostProfile,
		ApparmorProfile: s.ApparmorProfile, ApparmorLocalhostProfile: s.ApparmorLocalhostProfile,
	}
}

func capabilities(names []string) []corev1.Capability {
	var out []corev1.Capability
	for _, name := range names {
		out = append(out, corev1.Capability(name))
	}
	return out
}
