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
	// problemText bounds the characters of a problem: users write messages of any length.
	problemText = 1000
)

// podsProblem returns what keeps the pods of the Workload's job from being ready: the problem that most of them have. It
// is "" if none has any, or if the pods cannot be read or found: an eviction does not wait for that.
func (r *workloads) podsProblem(ctx context.Context, w *kueue.Workload) string {
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
	if err := r.live.List(ctx, &pods, client.InNamespace(w.Namespace), client.MatchingLabels{label: owner.Name}, client.Limit(problemPods)); err != nil {
		ctrl.LoggerFrom(ctx).Info("the pods of a job that were not ready in time cannot be read", "cause", err.Error())
		return ""
	}
	problems := podproblem.Group(pods.Items, func(pod *corev1.Pod) (reason, message string) { return podproblem.Of(pod, r.clock.Now()) })
	if len(problems) == 0 {
		return ""
	}
	first := problems[0]
	return plain.Cut(fmt.Sprintf("%d of %d pods like %s: %s", first.Pods, len(pods.Items), first.Example, first), problemText)
}
