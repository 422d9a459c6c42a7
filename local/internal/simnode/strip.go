package simnode

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stripPod is an informer transform that keeps only what decide needs of a pod, and almost nothing of a terminated one,
// so that tens of thousands of pods need little memory.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone of a deleted object
	}
	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if ended(pod) {
		return small, nil
	}
	small.Generation = pod.Generation
	for _, key := range []string{AnnotationDuration, AnnotationExitCode} {
		if value, given := pod.Annotations[key]; given {
			if small.Annotations == nil {
				small.Annotations = map[string]string{}
			}
			small.Annotations[key] = value
		}
	}
	small.Spec.RestartPolicy = pod.Spec.RestartPolicy
	small.Spec.HostNetwork = pod.Spec.HostNetwork
	small.Spec.ActiveDeadlineSeconds = pod.Spec.ActiveDeadlineSeconds
	small.Spec.ReadinessGates = pod.Spec.ReadinessGates
	small.Spec.InitContainers = stripContainers(pod.Spec.InitContainers)
	small.Spec.Containers = stripContainers(pod.Spec.Containers)
	small.Status = pod.Status
	return small, nil
}

func stripContainers(containers []corev1.Container) []corev1.Container {
	small := make([]corev1.Container, len(containers))
	for i, c := range containers {
		small[i] = corev1.Container{
			Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules,
		}
	}
	return small
}

// stripNode is an informer transform that keeps only a Node's address and whether it is lost.
func stripNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	small := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeExternalIP || address.Type == corev1.NodeInternalIP {
			small.Status.Addresses = []corev1.NodeAddress{address}
			break
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			small.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return small, nil
}

// lost reports whether the Node's Ready condition is Unknown: it has missed its heartbeats for too long.
func lost(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionUnknown
		}
	}
	return false
}
