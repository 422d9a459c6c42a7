package jobs

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gang is pods as kube-scheduler is to know them: it binds none of them unless so many
// find a node.
type Gang struct {
	// Name is that of its PodGroup.
	Name string
	// Pods is how many must find a node.
	Pods int32
	// Waits says that some have none yet. While all have nobody asks how many must, and
	// nothing is written of that.
	Waits         bool
	PriorityClass string
}

// Keep gives the write that has the PodGroup of the gang be there, and ask for no more
// pods than it should; false if nothing is to be written. It belongs to the job, and goes
// with it.
func (g Gang) Keep(job client.Object, kind schema.GroupVersionKind, children []client.Object) (Write, bool) {
	there := podGroupOf(g.Name, children)
	switch {
	case there == nil:
		return Create(g.podGroup(job, kind)).OrWarn(FailedCreate), true
	case there.Spec.SchedulingPolicy.Gang == nil:
		// Somebody changed it; kube-scheduler does as it says. It does so too with one that is being deleted, which its pods keep.
	case g.Pods > there.Spec.SchedulingPolicy.Gang.MinCount || g.Pods < there.Spec.SchedulingPolicy.Gang.MinCount && g.Waits:
		other := there.DeepCopy()
		other.Spec.SchedulingPolicy.Gang.MinCount = g.Pods
		return Change(there, other), true
	}
	return Write{}, false
}

// loosen has the PodGroups that a job has ask for no more than one pod each, where it makes none any more: nobody keeps them in step
// with the pods, and one that is short of those that have ended would keep out for ever what comes for another.
func loosen(children []client.Object) (writes []Write) {
	for _, there := range ChildrenOf[*schedulingv1beta1.PodGroup](children) {
		if gang := there.Spec.SchedulingPolicy.Gang; gang == nil || gang.MinCount <= 1 {
			continue
		}
		other := there.DeepCopy()
		other.Spec.SchedulingPolicy.Gang.MinCount = 1
		writes = append(writes, Change(there, other))
	}
	return writes
}

// podGroupOf finds the PodGroup of the name, nil if it is not there.
func podGroupOf(name string, children []client.Object) *schedulingv1beta1.PodGroup {
	for _, group := range ChildrenOf[*schedulingv1beta1.PodGroup](children) {
		if group.Name == name {
			return group
		}
	}
	return nil
}

func (g Gang) podGroup(job client.Object, kind schema.GroupVersionKind) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            g.Name,
			Namespace:       job.GetNamespace(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kind)},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: g.Pods},
			},
			PriorityClassName: g.PriorityClass,
		},
	}
}

// InPodGroup has pods belong to the gang of the name.
func InPodGroup(spec *corev1.PodSpec, name string) {
	spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(name)}
}

// IsInPodGroup reports whether they do.
func IsInPodGroup(spec *corev1.PodSpec, name string) bool {
	return spec.SchedulingGroup != nil && ptr.Deref(spec.SchedulingGroup.PodGroupName, "") == name
}

const (
	// proofInterval is between two tries to make the pod by which it is proven that gangs are kept. Who refuses it is asked
	// again for refusalsLast, for what it refuses it by may only be on its way.
	proofInterval = 500 * time.Millisecond
	refusalsLast  = 5 * time.Second
	// proofPatience is how long it is tried where nobody answers the question: the cluster has only just started, or has more
	// to do than it can. It ends before the kubelet ends an operator that does not say for a minute that it is alive.
	proofPatience = 45 * time.Second
)

// HasNativeGangs reports whether the cluster has gangs: it serves PodGroups, and pods
// keep the group that they are made with, which is proven by one that is not stored. An
// error says why that could not be found out.
func HasNativeGangs(ctx context.Context, c client.Client, namespace string) (bool, error) {
	var has bool
	var last error
	var refused time.Time // since when
	err := wait.PollUntilContextTimeout(ctx, proofInterval, proofPatience, true, func(ctx context.Context) (bool, error) {
		has, last = keepsGangs(ctx, c, namespace)
		switch {
		case last == nil:
			return true, nil
		case isUnanswered(last) || takesNoPodsYet(ctx, c, namespace):
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) >= refusalsLast:
			return false, last
		}
		return false, nil
	})
	if err != nil {
		return false, errors.Join(err, last)
	}
	return has, nil
}

// servesPodGroups reports whether the cluster has the kind.
func servesPodGroups(mapper meta.RESTMapper) (bool, error) {
	kind := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	switch _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking whether the cluster serves PodGroups: %w", err)
	}
	return true, nil
}

// keepsGangs asks once.
func keepsGangs(ctx context.Context, c client.Client, namespace string) (bool, error) {
	if serves, err := servesPodGroups(c.RESTMapper()); err != nil || !serves {
		return false, err
	}
	pod := probe(namespace)
	if err := c.Create(ctx, pod, client.DryRunAll); err != nil {
		return false, fmt.Errorf("trying, without storing it, a pod of a PodGroup in namespace %s: %w", namespace, err)
	}
	return IsInPodGroup(&pod.Spec, probeName), nil
}

// isUnanswered reports whether the error is none that the API server has found out about the question.
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// takesNoPodsYet reports whether the namespace lacks what every pod is given, its default ServiceAccount, which the cluster
// makes some time after its start.
func takesNoPodsYet(ctx context.Context, c client.Reader, namespace string) bool {
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, account))
}

const probeName = "muster-probe"

// probe is a pod that the strictest of namespaces takes.
func probe(namespace string) *corev1.Pod {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: namespace},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "probe", Image: "registry.invalid/probe", Resources: corev1.ResourceRequirements{Requests: little, Limits: little}, SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
	InPodGroup(&pod.Spec, probeName)
	return pod
}
