package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

const (
	// probeInterval is the time between two dry-run creations of the probe pod. After a refusal, the probe is repeated
	// for probeRefusalPatience, since what the pod needs may be about to be created.
	probeInterval        = 500 * time.Millisecond
	probeRefusalPatience = 5 * time.Second
	// ProbeTimeout is how long probes are repeated if the API server does not answer them: the cluster may just have
	// started, or may be overloaded. It is for all probes of a start together, and shorter than the minute after which
	// the kubelet restarts an operator that is not live.
	ProbeTimeout = 45 * time.Second
)

// HasNativeGangs reports whether the cluster schedules gangs: it serves PodGroups, and pods keep the scheduling group
// that they are created with, which a dry-run create shows. An error says why this could not be found out.
func HasNativeGangs(ctx context.Context, c client.Client, namespace string) (bool, error) {
	var has bool
	var last error
	var refused time.Time // since when the probe has been refused
	err := wait.PollUntilContextTimeout(ctx, probeInterval, ProbeTimeout, true, func(ctx context.Context) (bool, error) {
		has, last = probeGangs(ctx, c, namespace)
		switch {
		case last == nil:
			return true, nil
		case isUnavailable(last) || takesNoPodsYet(ctx, c, namespace):
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) >= probeRefusalPatience:
			return false, last
		}
		return false, nil
	})
	if err != nil {
		return false, errors.Join(err, last)
	}
	return has, nil
}

// ServesPodGroups reports whether the cluster serves the kind.
func ServesPodGroups(mapper meta.RESTMapper) (bool, error) {
	kind := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	switch _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking whether the cluster serves PodGroups: %w", err)
	}
	return true, nil
}

// probeGangs probes once.
func probeGangs(ctx context.Context, c client.Client, namespace string) (bool, error) {
	if serves, err := ServesPodGroups(c.RESTMapper()); err != nil || !serves {
		return false, err
	}
	pod := probe(namespace)
	if err := c.Create(ctx, pod, client.DryRunAll); err != nil {
		return false, fmt.Errorf("creating a pod of a PodGroup as a dry run in namespace %s: %w", namespace, err)
	}
	return jobs.IsInPodGroup(&pod.Spec, probeName), nil
}

// isUnavailable reports whether the error says nothing about the probe, because the API server was not reached or was
// overloaded.
func isUnavailable(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// takesNoPodsYet reports whether the namespace lacks its default ServiceAccount, without which it takes no pods, and
// which a new cluster creates some time after its start.
func takesNoPodsYet(ctx context.Context, c client.Reader, namespace string) bool {
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, account))
}

const probeName = "muster-probe"

// probe returns a pod that satisfies the restricted Pod Security Standard, so that every namespace takes it.
func probe(namespace string) *corev1.Pod {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"),
		corev1.ResourceMemory: resource.MustParse("1Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: namespace},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "probe", Image: "registry.invalid/probe",
				Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	jobs.InPodGroup(&pod.Spec, probeName)
	return pod
}
