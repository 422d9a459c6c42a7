package podproblem

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claims is what is known of the PersistentVolumeClaims that pods mount: whether each exists, by name. A claim that
// could not be read is in Unread instead. The zero value says nothing.
type Claims struct {
	Exists map[string]bool
	Unread map[string]bool
}

// LookForClaims finds out which of the claims that the pods need to be scheduled exist. It looks for a bounded number
// of claims. The function read reads the metadata of a claim by its name, in the namespace of the pods. A claim that
// may not be read is in Unread. After another error the claim is in neither map, and the first of these errors is
// returned.
func LookForClaims(pods []corev1.Pod, most int,
	read func(name string, into *metav1.PartialObjectMetadata) error) (Claims, error) {
	found := Claims{Exists: map[string]bool{}, Unread: map[string]bool{}}
	var failed error
	for _, name := range neededClaims(pods, most) {
		claim := &metav1.PartialObjectMetadata{}
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		switch err := read(name, claim); {
		case err == nil, apierrors.IsNotFound(err):
			found.Exists[name] = err == nil
		case apierrors.IsForbidden(err):
			found.Unread[name] = true
		case failed == nil:
			failed = fmt.Errorf("read claim %s: %w", name, err)
		}
	}
	return found, failed
}

// neededClaims returns the names of the claims that the pods need to be scheduled, sorted, and at most so many: the
// claims that pods without a node name. The claims of its ephemeral volumes are created for it.
func neededClaims(pods []corev1.Pod, most int) []string {
	var out []string
	for i := range pods {
		if pod := &pods[i]; awaitsNode(pod) {
			out = append(out, claimsOf(pod)...)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), most)]
}

func claimsOf(pod *corev1.Pod) (out []string) {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			out = append(out, claim.ClaimName)
		}
	}
	return out
}

func awaitsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// Of returns the problem of a pod as the function Of does. Of a pod without a node it names a missing claim first:
// kube-scheduler does not if the pod is in a PodGroup, where it reports an error of its own.
func (c Claims) Of(pod *corev1.Pod, of func(*corev1.Pod) (reason, message string)) (reason, message string) {
	reason, message = of(pod)
	if !awaitsNode(pod) {
		return reason, message
	}
	var missing, unread []string
	for _, name := range claimsOf(pod) {
		switch exists, known := c.Exists[name]; {
		case known && !exists && !slices.Contains(missing, name):
			missing = append(missing, name)
		case c.Unread[name] && !slices.Contains(unread, name):
			unread = append(unread, name)
		}
	}
	switch {
	case len(missing) == 1:
		return corev1.PodReasonUnschedulable, fmt.Sprintf("claim %s does not exist", missing[0])
	case len(missing) > 1:
		return corev1.PodReasonUnschedulable, fmt.Sprintf("claims %s do not exist", strings.Join(missing, ", "))
	case len(unread) > 0 && reason == corev1.PodReasonSchedulerError:
		return reason, message + fmt.Sprintf(" (kube-scheduler also says this if a claim does not exist. Your rights do not show whether these claims of the pod exist: %s)",
			strings.Join(unread, ", "))
	}
	return reason, message
}
