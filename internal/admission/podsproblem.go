package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/plain"
	"github.com/musterhq/muster/internal/podproblem"
)

const (
	// problemPods bounds how many pods of a job are asked for their problem: one suffices where all have the same.
	problemPods = 200
	// problemClaims bounds how many claims are looked for that these pods mount.
	problemClaims = 10
	// problemMounts bounds of how many pods the events are read that say why their volumes are not mounted, problemEvents
	// how many of each.
	problemMounts = 3
	problemEvents = 100
	// problemText bounds the characters of a problem: users write messages of any length.
	problemText = 1000
)

// podsProblem returns what keeps the pods of the Workload's job from being ready: the problem that most of them have.
// It is "" if none has any, or if the pods cannot be read or found: an eviction does not wait for that.
func (wo *workloads) podsProblem(ctx context.Context, w *kueue.Workload) string {
	owner := metav1.GetControllerOf(w)
	if owner == nil {
		return ""
	}
	of, err := schema.ParseGroupVersion(owner.APIVersion)
	label := podproblem.Label(of.Group, owner.Kind)
	if err != nil || label == "" {
		return ""
	}
	var pods corev1.PodList
	if err := wo.live.List(ctx, &pods, client.InNamespace(w.Namespace), client.MatchingLabels{label: owner.Name},
		client.Limit(problemPods)); err != nil {
		ctrl.LoggerFrom(ctx).Info("the pods of a job that were not ready in time cannot be read", "cause", err.Error())
		return ""
	}
	claims, mounts := wo.claimsOf(ctx, w.Namespace, pods.Items), wo.mountsOf(ctx, w.Namespace, pods.Items)
	ofItself := func(pod *corev1.Pod) (reason, message string) { return podproblem.Of(pod, wo.clock.Now()) }
	problems := podproblem.OfUnready(pods.Items, claims, mounts, ofItself, wo.clock.Now())
	if len(problems) == 0 {
		return ""
	}
	first := problems[0]
	return plain.Cut(fmt.Sprintf("%d of %d pods like %s: %s", first.Pods, len(pods.Items), first.Example,
		first), problemText)
}

// claimsOf looks for the claims that pods without a node mount, as far as they can be read.
func (wo *workloads) claimsOf(ctx context.Context, namespace string, pods []corev1.Pod) podproblem.Claims {
	found, err := podproblem.LookForClaims(pods,
		problemClaims, func(name string, into *metav1.PartialObjectMetadata) error {
			return wo.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
		})
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("not all claims of pods that were not ready in time can be read", "cause", err.Error())
	}
	return found
}

// mountsOf reads, for each set of volumes, the events of one pod whose volumes are not mounted. The events name a
// ConfigMap or a Secret that does not exist, which the operator itself may not read.
func (wo *workloads) mountsOf(ctx context.Context, namespace string, pods []corev1.Pod) (found podproblem.Mounts) {
	for _, pod := range podproblem.AwaitingMounts(pods, problemMounts) {
		var events corev1.EventList
		if err := wo.live.List(ctx, &events, client.InNamespace(namespace),
			client.MatchingFields{"involvedObject.uid": string(pod.UID)}, client.Limit(problemEvents)); err != nil {
			ctrl.LoggerFrom(ctx).Info("the events of a pod that was not ready in time cannot be read", "cause", err.Error())
			return found
		}
		found.Note(pod, events.Items, wo.clock.Now())
	}
	return found
}
