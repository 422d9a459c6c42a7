package tracing

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

const jobUID = types.UID("0f5e8a3c-1111-4222-8333-444455556666")

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a watch over objects that the test provides, and the spans that it exported.
type world struct {
	*watch
	t        *testing.T
	clock    *testclock.FakePassiveClock
	w        *kueue.Workload
	exported []span
}

func (w *world) export(s span) { w.exported = append(w.exported, s) }

// newWorld returns a world with a job of that many pods, created at the epoch, whose Workload waits.
func newWorld(t *testing.T, pods int32, sampled bool, objects ...client.Object) *world {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: jobUID,
		CreationTimestamp: metav1.NewTime(epoch)}}
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-train", UID: "w", CreationTimestamp: metav1.NewTime(epoch),
			Labels:          map[string]string{kueue.JobUIDLabel: string(jobUID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{{Name: "main", Count: pods}}},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, job, w)...).
		WithIndex(&kueue.Workload{}, jobIndex,
			func(o client.Object) []string { return []string{string(jobOf(o.(*kueue.Workload)))} }).Build()
	out := &world{t: t, clock: testclock.NewFakePassiveClock(epoch), w: w}
	out.watch = &watch{client: reader, scheme: scheme,
		kinds: map[schema.GroupKind]bool{{Group: "batch", Kind: "Job"}: true}, exporter: out,
		clock: out.clock, journeys: map[types.UID]*journey{}, sampled: func(types.UID) bool { return sampled }}
	return out
}

// at sets the clock to that long after the epoch.
func (w *world) at(after time.Duration) *world {
	w.clock.SetTime(epoch.Add(after))
	return w
}

// second returns the current time as the API stores it.
func (w *world) second() metav1.Time { return metav1.NewTime(w.clock.Now().Truncate(time.Second)) }

// now changes the Workload and delivers the update.
func (w *world) now(change func(*kueue.Workload)) {
	change(w.w)
	w.workload(context.Background(), w.w.DeepCopy())
}

func (w *world) condition(kind string, status metav1.ConditionStatus, reason string) {
	w.w.Status.Conditions = slices.DeleteFunc(w.w.Status.Conditions,
		func(c metav1.Condition) bool { return c.Type == kind })
	w.w.Status.Conditions = append(w.w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: "for " + reason, LastTransitionTime: w.second()})
}

func (w *world) reserve() {
	w.now(func(o *kueue.Workload) {
		o.Status.Admission = &kueue.Admission{ClusterQueue: "cq",
			PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To(o.Spec.PodSets[0].Count)}}}
		w.condition(kueue.WorkloadQuotaReserved, "True", "QuotaReserved")
	})
}

func (w *world) admit() {
	w.now(func(*kueue.Workload) { w.condition(kueue.WorkloadAdmitted, "True", "Admitted") })
}

func (w *world) makePod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		CreationTimestamp: w.second(),
		Labels:            map[string]string{muster.JobUIDLabel: string(jobUID)}}}
	w.pod(context.Background(), pod, true)
	return pod
}

func (w *world) podIs(pod *corev1.Pod, kind corev1.PodConditionType) {
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: w.second()})
	w.pod(context.Background(), pod, false)
}

// wantExported checks what was exported since the last call: name, from and to, in milliseconds after the epoch.
func (w *world) wantExported(want ...line) {
	w.t.Helper()
	var got []line
	for _, s := range w.exported {
		got = append(got, line{s.name, s.from.Sub(epoch).Milliseconds(), s.to.Sub(epoch).Milliseconds()})
	}
	w.exported = nil
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("exported (-want +got):\n%s", diff)
	}
}

type line struct {
	Name     string
	From, To int64
}

func TestStepsAreExportedAsTheyComplete(t *testing.T) {
	w := newWorld(t, 2, true)
	w.startLeading()
	w.at(300 * time.Millisecond).now(func(*kueue.Workload) {})
	w.wantExported()
	w.at(3400 * time.Millisecond).reserve()
	w.wantExported(line{stepQueued, 300, 3400})
	w.at(5500 * time.Millisecond).admit()
	w.wantExported(line{stepAdmission, 3400, 5500})
	first := w.at(6100 * time.Millisecond).makePod("a")
	w.wantExported(line{stepStart, 5500, 6100})
	second := w.at(6200 * time.Millisecond).makePod("b")
	w.wantExported(line{stepPods, 6100, 6200})
	w.at(7500*time.Millisecond).podIs(second, corev1.PodScheduled)
	w.at(8000*time.Millisecond).podIs(first, corev1.PodScheduled)
	w.wantExported()
	w.at(8400*time.Millisecond).podIs(second, corev1.PodReady)
	w.wantExported(line{stepSchedule, 6100, 7000}, line{stepReady, 7000, 8400}, line{"Job", 300, 8400})
	w.at(9900*time.Millisecond).podIs(first, corev1.PodReady)
	w.now(func(*kueue.Workload) { w.condition(kueue.WorkloadPodsReady, "True", "Started") })
	w.wantExported()
	w.now(func(*kueue.Workload) { w.condition(kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonFailed) })
	w.wantExported()
	if len(w.journeys) != 0 {
		t.Errorf("%d journeys of ended jobs are kept, want none", len(w.journeys))
	}
}

func TestANewLeaderContinuesTraces(t *testing.T) {
	w := newWorld(t, 1, true)
	w.now(func(*kueue.Workload) {})
	w.at(time.Second).reserve()
	w.at(time.Second).admit()
	w.wantExported() // another replica leads
	w.at(60 * time.Second).makePod("a")
	w.at(70 * time.Second).startLeading()
	// the previous leader may not have exported it
	w.wantExported(line{stepStart, 1000, 60000}, line{stepPods, 60000, 60000})
	again := w.makePod("a")
	w.podIs(again, corev1.PodReady)
	w.wantExported(line{stepReady, 60000, 70000}, line{"Job", 0, 70000})
}

func TestOldStepsAreNotExportedAgain(t *testing.T) {
	w := newWorld(t, 1, true)
	w.at(time.Second).reserve()
	w.admit()
	pod := w.makePod("a")
	w.podIs(pod, corev1.PodReady)
	w.at(time.Hour).startLeading()
	w.workload(t.Context(), w.w.DeepCopy())
	w.pod(t.Context(), pod, false)
	w.wantExported()
}

func TestAnEvictionStartsAnotherAttemptInTheSameTrace(t *testing.T) {
	w := newWorld(t, 1, true)
	w.startLeading()
	w.now(func(*kueue.Workload) {})
	w.at(time.Second).reserve()
	w.admit()
	old := w.makePod("a")
	was := w.exported
	w.exported = nil
	w.at(10 * time.Second).now(func(o *kueue.Workload) {
		o.Status.Admission = nil
		w.condition(kueue.WorkloadQuotaReserved, "False", "Pending")
		w.condition(kueue.WorkloadAdmitted, "False", "Pending")
		w.condition(kueue.WorkloadRequeued, "True", "BackoffFinished")
	})
	w.at(20 * time.Second).reserve()
	w.admit()
	w.wantExported(line{stepQueued, 10000, 20000}, line{stepAdmission, 20000, 20000})
	w.podIs(old, corev1.PodReady) // a terminating pod of the first attempt
	w.podDeleted(t.Context(), old)
	w.wantExported()
	w.at(21 * time.Second).makePod("a")
	for _, s := range w.exported {
		if slices.ContainsFunc(was,
			func(b span) bool { return spanOf(b.job.uid, b.name, b.attempt) == spanOf(s.job.uid, s.name, s.attempt) }) {
			t.Errorf("%s of the second attempt has the ID of the first", s.name)
		}
	}
	w.wantExported(line{stepStart, 20000, 21000}, line{stepPods, 21000, 21000})
}

// TestAWorkloadOutOfItsQueueIsNotQueuedSinceItsCreation: another controller reserves quota for an evicted Workload
// whose condition Requeued is still False. The earlier attempt does not count as time in the queue.
func TestAWorkloadOutOfItsQueueIsNotQueuedSinceItsCreation(t *testing.T) {
	w := newWorld(t, 1, true)
	w.startLeading()
	w.at(10 * time.Second).now(func(*kueue.Workload) {
		w.condition(kueue.WorkloadRequeued, "False", kueue.WorkloadEvictedByPodsReadyTimeout)
	})
	w.at(20 * time.Second).reserve()
	w.wantExported(line{stepQueued, 10000, 20000})
}

func TestAJobThatEndsWithoutAReadyPodEndsItsTrace(t *testing.T) {
	for what, end := range map[string]func(w *world){
		"for FailedToStart": func(w *world) {
			w.now(func(*kueue.Workload) {
				w.condition(kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonFailedToStart)
			})
		},
		"the job was deleted before a pod was ready": func(w *world) { w.workloadDeleted(w.w) },
	} {
		w := newWorld(t, 1, true)
		w.startLeading()
		w.now(func(*kueue.Workload) {})
		end(w.at(5 * time.Second))
		if len(w.exported) != 1 || w.exported[0].failed != what || len(w.journeys) != 0 {
			t.Errorf("%s: exported %+v, and %d journeys are kept", what, w.exported, len(w.journeys))
		}
	}
}

func TestAPodObservedBeforeItsWorkloadCounts(t *testing.T) {
	w := newWorld(t, 1, true)
	w.startLeading()
	if err := w.client.(client.Client).Get(t.Context(), client.ObjectKeyFromObject(w.w), w.w); err != nil {
		t.Fatal(err)
	}
	w.w.Status.Admission = &kueue.Admission{ClusterQueue: "cq",
		PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}}
	w.condition(kueue.WorkloadQuotaReserved, "True", "QuotaReserved")
	w.condition(kueue.WorkloadAdmitted, "True", "Admitted")
	if err := w.client.(client.Client).Update(t.Context(), w.w); err != nil {
		t.Fatal(err)
	}
	w.makePod("a")
	w.wantExported(line{stepQueued, 0, 0}, line{stepAdmission, 0, 0}, line{stepStart, 0, 0}, line{stepPods, 0, 0})
}

func TestUnsampledJobsTakeNoMemory(t *testing.T) {
	w := newWorld(t, 1, false)
	w.startLeading()
	w.reserve()
	w.admit()
	w.podIs(w.makePod("a"), corev1.PodReady)
	w.wantExported()
	if len(w.journeys) != 0 {
		t.Error("a journey of the unsampled job is kept")
	}
}
