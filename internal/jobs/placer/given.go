package placer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// given are the places that pods were given and of which the watch has not told yet. Without it the next look, which a pod that was just made
// brings about, would give such a place again, to somebody else where pods have no ranks; one of the two would have to go. Whoever
// begins anew has nothing to remember: it starts from a list. The zero value is empty.
type given struct {
	mu         sync.Mutex
	byWorkload map[client.ObjectKey]map[types.UID]gift
}

// gift is a place that was given.
type gift struct {
	place podspec.Place
	// unsure says that the API server gave no answer, or one that means that somebody else was first.
	unsure bool
}

// note remembers what a pod was given.
func (g *given) note(workload client.ObjectKey, pod types.UID, what gift) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byWorkload == nil {
		g.byWorkload = map[client.ObjectKey]map[types.UID]gift{}
	}
	if g.byWorkload[workload] == nil {
		g.byWorkload[workload] = map[types.UID]gift{}
	}
	g.byWorkload[workload][pod] = what
}

// forget forgets a Workload.
func (g *given) forget(workload client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byWorkload, workload)
}

// gifts are those to pods of the Workload that wait still as far as is known; all others are forgotten.
func (g *given) gifts(workload client.ObjectKey, pods []corev1.Pod) map[types.UID]gift {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.byWorkload[workload]
	if len(known) == 0 {
		return nil
	}
	left := map[types.UID]gift{}
	for i := range pods {
		if what, ok := known[pods[i].UID]; ok && gated(&pods[i]) {
			left[pods[i].UID] = what
		}
	}
	g.byWorkload[workload] = left
	if len(left) == 0 {
		delete(g.byWorkload, workload)
	}
	return maps.Clone(left)
}

// asGiven are the pods of a Workload as they are with the places that they were given.
func (p *placer) asGiven(ctx context.Context, workload client.ObjectKey, pods []corev1.Pod) ([]corev1.Pod, error) {
	gifts := p.given.gifts(workload, pods)
	if len(gifts) == 0 {
		return pods, nil
	}
	out := make([]corev1.Pod, 0, len(pods))
	for i := range pods {
		what, has := gifts[pods[i].UID]
		switch {
		case !has:
			out = append(out, pods[i])
		case what.unsure:
			now, err := p.now(ctx, &pods[i])
			if err != nil {
				return nil, err
			}
			out = append(out, now...)
		default:
			out = append(out, *let(&pods[i], what.place))
		}
	}
	return out, nil
}

// now is the pod as the API server has it, as a list of one; none if it is gone.
func (p *placer) now(ctx context.Context, seen *corev1.Pod) ([]corev1.Pod, error) {
	var pod corev1.Pod
	switch err := p.live.Get(ctx, client.ObjectKeyFromObject(seen), &pod); {
	case apierrors.IsNotFound(err), err == nil && pod.UID != seen.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading whether pod %s has its place: %w", client.ObjectKeyFromObject(seen), err)
	}
	return []corev1.Pod{pod}, nil
}

// let is the pod with its place. What it was is not changed.
func let(pod *corev1.Pod, place podspec.Place) *corev1.Pod {
	out := *pod
	out.Spec.NodeSelector = maps.Clone(pod.Spec.NodeSelector)
	if out.Spec.NodeSelector == nil {
		out.Spec.NodeSelector = map[string]string{}
	}
	maps.Copy(out.Spec.NodeSelector, place.Domain)
	out.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(gate corev1.PodSchedulingGate) bool {
		return gate.Name == kueue.TopologyGate
	})
	return &out
}
