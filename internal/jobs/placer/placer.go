package placer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
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
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// workloadIndex indexes pods by the name of their Workload.
	workloadIndex = "muster.dev/workload"
	// movedReason is the reason of the condition DisruptionTarget on pods that are deleted because they have no place
	// where they are. A podFailurePolicy can ignore it.
	movedReason = "MusterMovedPod"
)

// placer is the reconciler that assigns pods to places.
type placer struct {
	// client is the manager's: it reads its own writes.
	client client.Client
	// live reads from the API server.
	live  client.Reader
	clock clock.PassiveClock
	// cacheIsCurrent is set once a write of this operator was answered. That write came after all assignments of an
	// earlier operator, and the client waits until the cache has it.
	cacheIsCurrent atomic.Bool
	unconfirmed    unconfirmed
	// ranked is for the webhook.
	ranked rankedSets
}

// Reconcile assigns the waiting pods of one Workload to its places and deletes misplaced pods.
func (p *placer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w kueue.Workload
	if err := p.client.Get(ctx, req.NamespacedName, &w); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if !givesPlaces(&w) { // also if the Workload does not exist
		p.unconfirmed.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	give, misplaced, err := p.plan(ctx, &w)
	errs := []error{err}
	if len(misplaced) > 0 {
		errs = append(errs, p.removeIfStillMisplaced(ctx, &w, misplaced))
	}
	errs = append(errs, write.ForEach(give,
		func(placed placement) error { return p.place(ctx, req.NamespacedName, placed) }))
	return ctrl.Result{}, errors.Join(errs...)
}

// plan decides about the pods of a Workload. If the cache may lack assignments, it lists the pods from the
// API server before it assigns any; if that fails it assigns none.
func (p *placer) plan(ctx context.Context, w *kueue.Workload) (give []placement, misplaced []*corev1.Pod, err error) {
	key := client.ObjectKeyFromObject(w)
	current := p.cacheIsCurrent.Load() // read before the list, which may not have the write yet
	var cached corev1.PodList
	if err := p.client.List(ctx, &cached, client.InNamespace(w.Namespace), client.MatchingFields{workloadIndex: w.Name},
		client.UnsafeDisableDeepCopy); err != nil {
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
	give, misplaced = p.assign(ctx, w,
		slices.DeleteFunc(now.Items, func(pod corev1.Pod) bool { return !slices.Contains(workloadOf(&pod), w.Name) }))
	return give, misplaced, nil
}

// podsOfJob selects the pods of the Workload's job by the label that holds its UID. If no label holds the UID, it
// selects all pods that a Workload admitted.
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

// givesPlaces reports whether the Workload is admitted with places and its pods may run.
func givesPlaces(w *kueue.Workload) bool {
	return workload.IsAdmitted(w) && workload.HoldsQuota(w) && !workload.IsEvicted(w) && !workload.IsFinished(w) &&
		w.DeletionTimestamp.IsZero() &&
		slices.ContainsFunc(w.Status.Admission.PodSetAssignments,
			func(a kueue.PodSetAssignment) bool { return a.TopologyAssignment != nil })
}

// assign assigns the pods of all pod sets, and returns the misplaced ones.
func (p *placer) assign(ctx context.Context, w *kueue.Workload,
	items []corev1.Pod) (give []placement, misplaced []*corev1.Pod) {
	bySet := map[string][]*corev1.Pod{}
	for pod := range pointers.To(items) {
		if _, byHand := pod.Spec.NodeSelector[jobset.NamespacedJobKey]; byHand {
			continue // users have chosen the nodes of these by labels
		}
		name := pod.Labels[kueue.PodSetLabel]
		bySet[name] = append(bySet[name], pod)
	}
	shrinks := workload.ShrinksTo(w)
	for _, a := range w.Status.Admission.PodSetAssignments {
		places, pods := jobs.PlacesOf(a.TopologyAssignment), bySet[string(a.Name)]
		if len(places) == 0 || len(pods) == 0 {
			continue
		}
		set := podSetOf(places.Ranking(), requestOf(w, a.Name), pods)
		placements, lost := set.assign(pods, cachedNodes{ctx, p.client})
		give = append(give, placements...)
		// While a pod set shrinks it has fewer places than pods, and its job chooses the pods to delete.
		if _, shrinking := shrinks[a.Name]; !shrinking {
			misplaced = append(misplaced, lost...)
		}
	}
	return give, misplaced
}

// requestOf returns the topology request of a pod set.
func requestOf(w *kueue.Workload, podSet kueue.PodSetReference) *kueue.PodSetTopologyRequest {
	if asked := pointers.First(w.Spec.PodSets, func(ps *kueue.PodSet) bool { return ps.Name == podSet }); asked != nil {
		return asked.TopologyRequest
	}
	return nil
}

// place patches a pod with its place. The API server accepts the patch only while the gate is present, and
// only for the pod with this UID, so a second writer changes nothing.
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
		return nil // it is gone or was replaced, and the watch reports the change
	default:
		p.unconfirmed.add(workload, placed.pod.UID)
		return fmt.Errorf("giving pod %s its place: %w", client.ObjectKeyFromObject(placed.pod), err)
	}
}

// removeIfStillMisplaced deletes misplaced pods if the API server still has the same admission: a stale cache must not
// cost anyone a pod. Pods whose Job is about to be suspended are left to that.
func (p *placer) removeIfStillMisplaced(ctx context.Context, seen *kueue.Workload, pods []*corev1.Pod) error {
	var now kueue.Workload
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(seen), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID != seen.UID || !givesPlaces(&now) ||
		!equality.Semantic.DeepEqual(now.Status.Admission, seen.Status.Admission) {
		return nil // the watch reports the change
	}
	return write.ForEach(pods, func(pod *corev1.Pod) error {
		if stops, err := p.jobStops(ctx, &now, pod); err != nil || stops {
			return err
		}
		return p.remove(ctx, pod)
	})
}

// jobStops reports whether the pod is one of a Job that is suspended, or is about to be, as its template does not lead
// to all its places. The pods of such a Job are deleted without counting as failures. If the placer deleted one before,
// that would count, and a Job with a backoffLimit of 0 would fail.
func (p *placer) jobStops(ctx context.Context, w *kueue.Workload, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOf(pod)
	if !jobs.RefersTo(owner, batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()) {
		return false, nil
	}
	var job batchv1.Job
	err := p.live.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &job)
	switch {
	case apierrors.IsNotFound(err), err == nil && job.UID != owner.UID:
		return true, nil // its pods go with it
	case err != nil:
		return false, fmt.Errorf("reading the Job of misplaced pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return ptr.Deref(job.Spec.Suspend, false) || slices.ContainsFunc(placesOfGroup(w, pod),
		func(place podspec.Place) bool { return !podspec.AllowsPlace(job.Spec.Template.Spec, place) }), nil
}

// placesOfGroup returns the places of the pod's group.
func placesOfGroup(w *kueue.Workload, pod *corev1.Pod) podspec.Places {
	name := kueue.PodSetReference(pod.Labels[kueue.PodSetLabel])
	for _, a := range w.Status.Admission.PodSetAssignments {
		if a.Name == name {
			set := podSetOf(jobs.PlacesOf(a.TopologyAssignment).Ranking(), requestOf(w, name), []*corev1.Pod{pod})
			if g := set.groupOf(pod); set.hasRanks(g) {
				return set.places.Ranks(g.from, g.to)
			}
		}
	}
	return nil
}

// remove marks a pod with the condition DisruptionTarget, which a podFailurePolicy can match, and deletes
// it with its grace period.
func (p *placer) remove(ctx context.Context, seen *corev1.Pod) error {
	condition := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: movedReason,
		Message: "The job no longer has a place for this pod on its node", LastTransitionTime: metav1.NewTime(p.clock.Now())}
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
	if err := p.client.Delete(ctx, pod, client.Preconditions{UID: ptr.To(seen.UID)}); err != nil &&
		!apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting misplaced pod %s: %w", client.ObjectKeyFromObject(seen), err)
	}
	movedPods.Inc()
	return nil
}
