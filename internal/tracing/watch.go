package tracing

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// jobIndex finds the Workload of a job by the job's UID.
const jobIndex = "tracing.jobUID"

// catchUp is how far back a new leader exports what it has observed: the previous leader may have ended before it
// exported all its spans. Spans that both leaders export have the same IDs.
const catchUp = 20 * time.Second

// watch follows the jobs on their way to a ready pod. It keeps state only for Workloads that have not finished.
type watch struct {
	client   client.Reader // tracing writes nothing
	scheme   *runtime.Scheme
	kinds    map[schema.GroupKind]bool
	sampled  func(types.UID) bool
	exporter spanExporter
	clock    clock.PassiveClock

	mu       sync.Mutex
	journeys map[types.UID]*journey // by the UID of the Workload's job
	// exportSince is the time from which on steps are exported, zero while this replica does not lead.
	exportSince time.Time
}

// spanExporter exports spans.
type spanExporter interface {
	export(span)
}

// span is a span to be exported.
type span struct {
	job      identity
	name     string
	from, to time.Time
	// attempt tells the span apart from others of its name in the trace; zero for the span of the whole job.
	attempt time.Time
	// failed says why the job ended without a ready pod, "" if it did not.
	failed     string
	attributes map[string]string
}

// start subscribes to the manager's informers.
func (wa *watch) start(ctx context.Context, mgr ctrl.Manager) error {
	for kind, handler := range map[client.Object]cache.ResourceEventHandlerFuncs{
		&kueue.Workload{}: {
			AddFunc:    func(o any) { wa.workload(ctx, o.(*kueue.Workload)) },
			UpdateFunc: func(_, o any) { wa.workload(ctx, o.(*kueue.Workload)) },
			DeleteFunc: func(o any) { wa.workloadDeleted(last(o).(*kueue.Workload)) },
		},
		&corev1.Pod{}: {
			AddFunc:    func(o any) { wa.pod(ctx, o.(*corev1.Pod), true) },
			UpdateFunc: func(_, o any) { wa.pod(ctx, o.(*corev1.Pod), false) },
			DeleteFunc: func(o any) { wa.podDeleted(ctx, last(o).(*corev1.Pod)) },
		},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	return nil
}

// last returns the last known state of a deleted object.
func last(o any) client.Object {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	return o.(client.Object)
}

// startLeading starts exporting steps, including the steps of the last catchUp.
func (wa *watch) startLeading() {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	wa.exportSince = wa.clock.Now().Add(-catchUp)
	for _, j := range wa.journeys {
		wa.exportSteps(j)
	}
}

// workload updates the journey of a Workload's job.
func (wa *watch) workload(ctx context.Context, w *kueue.Workload) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	j := wa.journeyOf(ctx, w)
	if j == nil || j.done {
		wa.forgetEnded(w)
		return
	}
	j.observeWorkload(w, wa.clock.Now())
	wa.exportSteps(j)
	if message, at, failed, ended := outcome(w); ended {
		if !failed {
			message = ""
		}
		wa.exportJob(j, at, message)
		wa.forgetEnded(w)
	}
}

// forgetEnded drops a finished job.
func (wa *watch) forgetEnded(w *kueue.Workload) {
	if workload.IsFinished(w) {
		delete(wa.journeys, jobOf(w))
	}
}

// workloadDeleted ends the journey of a job whose Workload was deleted.
func (wa *watch) workloadDeleted(w *kueue.Workload) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if j := wa.journeys[jobOf(w)]; j != nil && j.workload == types.NamespacedName(client.ObjectKeyFromObject(w)) {
		wa.exportJob(j, wa.clock.Now(), "the job was deleted before a pod was ready")
		delete(wa.journeys, jobOf(w))
	}
}

// pod updates the journey of a pod's job.
func (wa *watch) pod(ctx context.Context, pod *corev1.Pod, fresh bool) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if j := wa.journeyOfPod(ctx, pod); j != nil && !j.done {
		j.observePod(pod, fresh, wa.clock.Now())
		wa.exportSteps(j)
	}
}

func (wa *watch) podDeleted(ctx context.Context, pod *corev1.Pod) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if j := wa.journeyOfPod(ctx, pod); j != nil && !j.done {
		j.forgetPod(pod)
	}
}

// journeyOf returns the journey of the Workload's job, and creates it if necessary; nil if the job has ended or is
// not sampled.
func (wa *watch) journeyOf(ctx context.Context, w *kueue.Workload) *journey {
	uid := jobOf(w)
	if j := wa.journeys[uid]; j != nil {
		return j
	}
	if workload.IsFinished(w) || !w.DeletionTimestamp.IsZero() {
		return nil
	}
	job := wa.identify(ctx, w)
	if !wa.sampled(job.uid) {
		return nil
	}
	j := &journey{job: job, workload: client.ObjectKeyFromObject(w)}
	wa.journeys[uid] = j
	return j
}

// journeyOfPod returns the journey of the pod's job, updated from the cached Workload: the pod's event may arrive
// before the Workload's.
func (wa *watch) journeyOfPod(ctx context.Context, pod *corev1.Pod) *journey {
	uid := wa.jobOfPod(ctx, pod)
	if uid == "" {
		return nil
	}
	j := wa.journeys[uid]
	if j != nil && (j.done || j.attempt.admitted.known()) {
		return j
	}
	var list kueue.WorkloadList
	if err := wa.client.List(ctx, &list, client.InNamespace(pod.Namespace), client.MatchingFields{jobIndex: string(uid)},
		client.UnsafeDisableDeepCopy); err != nil || len(list.Items) == 0 {
		return j
	}
	if j = wa.journeyOf(ctx, &list.Items[0]); j != nil {
		j.observeWorkload(&list.Items[0], wa.clock.Now())
	}
	return j
}

// exportSteps exports the completed steps that were not exported yet.
func (wa *watch) exportSteps(j *journey) {
	if wa.exportSince.IsZero() || j.done {
		return
	}
	a := &j.attempt
	for _, s := range a.steps() {
		if !a.exported[s.name] {
			a.exported[s.name] = true
			wa.send(j, s.name, s.from, s.to, a.reserved.kept, "")
		}
		if s.name == stepReady {
			wa.exportJob(j, s.to, "")
		}
	}
}

// exportJob exports the span of the whole job.
func (wa *watch) exportJob(j *journey, at time.Time, failed string) {
	if wa.exportSince.IsZero() || j.done {
		return
	}
	j.done = true
	wa.send(j, j.job.kind, j.began(), at, time.Time{}, failed)
}

// send exports a span, unless it ended while another replica led.
func (wa *watch) send(j *journey, name string, from, to, attempt time.Time, failed string) {
	if to.Before(wa.exportSince) {
		return
	}
	attributes := map[string]string{"muster.queue": j.queue, "muster.cluster_queue": j.attempt.clusterQueue}
	if j.attempt.pods.name != "" && (name == stepSchedule || name == stepReady) {
		attributes["k8s.pod.name"] = j.attempt.pods.name
	}
	wa.exporter.export(span{job: j.job, name: name, from: from, to: to, attempt: attempt, failed: failed,
		attributes: attributes})
}

// jobOf returns the UID of the Workload's job, that of the Workload itself if it has none.
func jobOf(w *kueue.Workload) types.UID {
	if uid := w.Labels[kueue.JobUIDLabel]; uid != "" {
		return types.UID(uid)
	}
	if owner := metav1.GetControllerOf(w); owner != nil {
		return owner.UID
	}
	return w.UID
}

// jobOfPod returns the UID of the pod's job, "" if it cannot belong to one.
func (wa *watch) jobOfPod(ctx context.Context, pod *corev1.Pod) types.UID {
	if uid := pod.Labels[muster.JobUIDLabel]; uid != "" {
		return types.UID(uid)
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil || strings.HasPrefix(owner.APIVersion, "apps/") || owner.APIVersion == "v1":
		return ""
	case owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/"):
		return owner.UID
	}
	var job batchv1.Job
	if err := wa.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &job); err == nil &&
		job.UID == owner.UID {
		if above := metav1.GetControllerOf(&job); above != nil && wa.kinds[groupKind(above)] {
			return above.UID
		}
	}
	return owner.UID
}

// identify returns the job that users know: the Workload's owner, or the topmost owner of a known kind above that.
func (wa *watch) identify(ctx context.Context, w *kueue.Workload) identity {
	out := identity{kind: "Workload", namespace: w.Namespace, name: w.Name, uid: w.UID, created: w.CreationTimestamp.Time}
	for owner := metav1.GetControllerOf(w); owner != nil; {
		out.kind, out.name, out.uid = owner.Kind, owner.Name, owner.UID
		job := wa.read(ctx, w.Namespace, owner)
		if job == nil {
			return out
		}
		out.created, owner = job.GetCreationTimestamp().Time, nil
		if above := metav1.GetControllerOf(job); above != nil && wa.kinds[groupKind(above)] {
			owner = above
		}
	}
	return out
}

// read returns the owner if it is of a kind in the operator's cache, else nil.
func (wa *watch) read(ctx context.Context, namespace string, owner *metav1.OwnerReference) client.Object {
	if !wa.kinds[groupKind(owner)] {
		return nil
	}
	made, err := wa.scheme.New(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	if err != nil {
		return nil
	}
	job := made.(client.Object)
	if err := wa.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, job); err != nil ||
		job.GetUID() != owner.UID {
		return nil
	}
	return job
}

func groupKind(owner *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
}
