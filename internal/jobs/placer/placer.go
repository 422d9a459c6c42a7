package placer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// writesAtOnce bounds how many pods of one Workload are written together.
	writesAtOnce = 50
	// workloadIndex finds the pods of a Workload.
	workloadIndex = "muster.dev/workload"
	// movedReason is that of the condition DisruptionTarget of pods that are deleted
	// since they have no place where they are: a podFailurePolicy can ignore them.
	movedReason = "MusterMovedPod"
)

// placer gives the pods of Workloads their places.
type placer struct {
	// client reads what it wrote, as the manager has it.
	client client.Client
	// live reads from the API server itself.
	live  client.Reader
	clock clock.PassiveClock
	// current says that the cache tells of every place that another operator gave: a write of this one was answered, which came
	// after those, and for which the client waits.
	cacheIsCurrent atomic.Bool
	unconfirmed    unconfirmed
}

// Reconcile brings the pods of one Workload to their places.
func (p *placer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := p.client.Get(ctx, req.NamespacedName, &w); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if !givesPlaces(&w) { // nor does one that is gone
		p.unconfirmed.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	give, misplaced, err := p.plan(ctx, &w)
	errs := []error{err}
	if len(misplaced) > 0 {
		errs = append(errs, p.removeIfStillMisplaced(ctx, &w, misplaced))
	}
	errs = append(errs, forEach(give, func(placed placement) error { return p.place(ctx, req.NamespacedName, placed) }))
	return ctrl.Result{}, errors.Join(errs...)
}

// plan says what becomes of the pods of a Workload. Where the cache may lack places that were given, the pods are read from the API
// server before any is: all at once, and if that fails none is given.
func (p *placer) plan(ctx context.Context, w *kueue.Workload) (give []placement, misplaced []*corev1.Pod, err error) {
	key := client.ObjectKeyFromObject(w)
	current := p.cacheIsCurrent.Load() // before the list, which may be older than the write
	var cached corev1.PodList
	if err := p.client.List(ctx, &cached, client.InNamespace(w.Namespace), client.MatchingFields{workloadIndex: w.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the pods of Workload %s: %w", key, err)
	}
	sure := !p.unconfirmed.keep(key, cached.Items) && current
	give, misplaced = p.assign(ctx, w, cached.Items)
	if sure || len(give) == 0 {
		return give, misplaced, nil
	}
	var now corev1.PodList
	if err := p.live.List(ctx, &now, client.InNamespace(w.Namespace), podsOfJob(w, cached.Items)); err != nil {
		return nil, misplaced, fmt.Errorf("reading which pods of Workload %s have their places: %w", key, err)
	}
	give, misplaced = p.assign(ctx, w, slices.DeleteFunc(now.Items, func(pod corev1.Pod) bool { return !slices.Contains(workloadOf(&pod), w.Name) }))
	return give, misplaced, nil
}

// labelsInJob select the pods of the Workload's job, by the label that holds its UID; where they have none, all that a Workload let
// start.
func podsOfJob(w *kueue.Workload, pods []corev1.Pod) client.ListOption {
	if job := metav1.GetControllerOf(w); job != nil {
		for label, value := range pods[0].Labels {
			if value == string(job.UID) {
				return client.MatchingLabels{label: value}
			}
		}
	}
	return client.HasLabels{kueue.PodSetLabel}
}

// givesPlaces reports whether pods of the Workload may run, at places of its own.
func givesPlaces(w *kueue.Workload) bool {
	return workload.IsAdmitted(w) && workload.HoldsQuota(w) && !workload.IsEvicted(w) && !workload.IsFinished(w) && w.DeletionTimestamp.IsZero() &&
		slices.ContainsFunc(w.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool { return a.TopologyAssignment != nil })
}

// seats says what becomes of the pods of all pod sets.
func (p *placer) assign(ctx context.Context, w *kueue.Workload, items []corev1.Pod) (give []placement, misplaced []*corev1.Pod) {
	bySet := map[string][]*corev1.Pod{}
	for i := range items {
		if _, byHand := items[i].Spec.NodeSelector[jobset.NamespacedJobKey]; byHand {
			continue // where these go, people have said by labels
		}
		name := items[i].Labels[kueue.PodSetLabel]
		bySet[name] = append(bySet[name], &items[i])
	}
	shrinks := workload.ShrinksTo(w)
	for _, a := range w.Status.Admission.PodSetAssignments {
		places, pods := jobs.PlacesOf(a.TopologyAssignment), bySet[string(a.Name)]
		if len(places) == 0 || len(pods) == 0 {
			continue
		}
		set := podSetOf(places, requestOf(w, a.Name), pods)
		placements, lost := set.assign(pods, cachedNodes{ctx, p.client})
		give = append(give, placements...)
		// While a pod set shrinks its job chooses who goes, and there are fewer places than pods.
		if _, itsJobs := shrinks[a.Name]; !itsJobs {
			misplaced = append(misplaced, lost...)
		}
	}
	return give, misplaced
}

func requestOf(w *kueue.Workload, podSet kueue.PodSetReference) *kueue.PodSetTopologyRequest {
	for i := range w.Spec.PodSets {
		if w.Spec.PodSets[i].Name == podSet {
			return w.Spec.PodSets[i].TopologyRequest
		}
	}
	return nil
}

// place lets a pod go to its place. The API server takes that only while the gate is
// there, and only from the pod that was seen, so whoever comes second changes nothing.
func (p *placer) place(ctx context.Context, workload client.ObjectKey, placed placement) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": placed.pod.UID},
		"spec": map[string]any{
			"nodeSelector":    placed.place.Domain,
			"schedulingGates": []any{map[string]any{"$patch": "delete", "name": kueue.TopologyGate}},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the place of a pod: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: placed.pod.Namespace, Name: placed.pod.Name}}
	switch err := p.client.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch)); {
	case err == nil:
		p.cacheIsCurrent.Store(true)
		p.unconfirmed.confirm(workload, placed.pod.UID)
		waitSeconds.Observe(p.clock.Since(placed.pod.CreationTimestamp.Time).Seconds())
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		p.unconfirmed.confirm(workload, placed.pod.UID)
		return nil // it is gone, and the watch brings what came instead
	default:
		p.unconfirmed.add(workload, placed.pod.UID)
		return fmt.Errorf("giving pod %s its place: %w", client.ObjectKeyFromObject(placed.pod), err)
	}
}

// removeIfStillSo deletes pods that have no place where they are, as the API server
// itself says what the places are: a cache that lags behind must cost nobody a pod.
func (p *placer) removeIfStillMisplaced(ctx context.Context, seen *kueue.Workload, pods []*corev1.Pod) error {
	var now kueue.Workload
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(seen), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != seen.UID || !givesPlaces(&now) || !equality.Semantic.DeepEqual(now.Status.Admission, seen.Status.Admission) {
		return nil // the watch brings it
	}
	return forEach(pods, func(pod *corev1.Pod) error { return p.remove(ctx, pod) })
}

// remove deletes a pod, with its grace, and says why in the way that a podFailurePolicy
// understands.
func (p *placer) remove(ctx context.Context, seen *corev1.Pod) error {
	condition := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: movedReason,
		Message: "The pod has no place on its node any more: its job was given another", LastTransitionTime: metav1.NewTime(p.clock.Now())}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": seen.UID},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return fmt.Errorf("encoding the condition of a pod: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
	if err := p.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return fmt.Errorf("marking pod %s: %w", client.ObjectKeyFromObject(seen), err)
	}
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
	if err := p.client.Delete(ctx, pod, client.Preconditions{UID: ptr.To(seen.UID)}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting pod %s, which has no place on its node any more: %w", client.ObjectKeyFromObject(seen), err)
	}
	movedPods.Inc()
	return nil
}

// each does all, several at once, as much as can be done.
func forEach[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for i, item := range items {
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	_ = group.Wait() // the goroutines keep their errors in errs
	return errors.Join(errs...)
}
