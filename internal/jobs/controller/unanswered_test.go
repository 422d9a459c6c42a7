package controller_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobsetv1alpha2 "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/jobset"
)

// silentWorld is a podWorld whose Job controller answers nothing.
type silentWorld struct{ *podWorld }

// newSilentBatchJob returns a world with the admitted batch Job ns/job, resumed. recreated says that another Job of its
// name was deleted a moment ago.
func newSilentBatchJob(t *testing.T, recreated bool) silentWorld {
	job := newBatchJob("cq", true)
	return silently(newPodWorld(t, fault{}, of(batchjob.API), job, clusterQueue("cq"), flavor()), recreated, job)
}

// newSilentJobSet returns a world with a JobSet of one Job, which the Job controller does not answer.
func newSilentJobSet(t *testing.T, recreated bool) silentWorld {
	js := newJobSet("cq")
	js.Name, js.Spec.ReplicatedJobs = "job", js.Spec.ReplicatedJobs[:1]
	child := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-leader-0", Namespace: "ns"}}
	return silently(newPodWorld(t, fault{}, of(jobset.API), js, clusterQueue("cq"), flavor()), recreated, child)
}

func silently(w *podWorld, recreated bool, job *batchv1.Job) silentWorld {
	if recreated {
		controller.NoteGone(w.reconciler, job, w.clock.Now())
	}
	w.onCreate = func(o client.Object) {
		if _, is := o.(*batchv1.Job); is {
			o.SetGeneration(1) // as the API server does
		}
	}
	s := silentWorld{w}
	s.reconcileAll()
	s.admit()
	s.reconcileAll()
	return s
}

// reconcileAll reconciles until nothing is written any more.
func (s silentWorld) reconcileAll() {
	for range 8 {
		s.reconcile()
	}
}

func (s silentWorld) pass(d time.Duration) {
	s.clock.SetTime(s.clock.Now().Add(d))
	s.reconcileAll()
}

// evicted returns why the Workload is evicted, "" if it is not.
func (s silentWorld) evicted() string {
	if c := meta.FindStatusCondition(s.workload().Status.Conditions, kueue.WorkloadEvicted); c != nil &&
		c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

func (s silentWorld) holdsQuota() bool { return s.workload().Status.Admission != nil }

// onlyJob returns the only batch Job.
func (s silentWorld) onlyJob() *batchv1.Job {
	s.t.Helper()
	all := list[batchv1.JobList](s.world).Items
	if len(all) != 1 {
		s.t.Fatalf("there are %d Jobs, want 1", len(all))
	}
	return &all[0]
}

// podOf creates a running pod of the Job.
func (s silentWorld) podOf(job *batchv1.Job) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-x", Namespace: "ns", Labels: map[string]string{
		batchv1.ControllerUidLabel: string(job.UID), jobsetv1alpha2.JobSetUIDKey: "js-uid"}}}
	s.put(pod)
	return pod
}

var silentWorlds = map[string]func(*testing.T, bool) silentWorld{"batch Job": newSilentBatchJob,
	"JobSet": newSilentJobSet}

// TestAJobThatTheJobControllerDoesNotLookAtGivesItsQuotaBack: it has no pods, and is touched, so that the Job
// controller looks at it again.
func TestAJobThatTheJobControllerDoesNotLookAtGivesItsQuotaBack(t *testing.T) {
	for name, start := range silentWorlds {
		for _, tc := range []struct {
			recreated bool
			patience  time.Duration
		}{{true, 15 * time.Second}, {false, 5*time.Minute + 30*time.Second}} {
			t.Run(name+" after "+tc.patience.String(), func(t *testing.T) {
				w := start(t, tc.recreated)
				if job := w.onlyJob(); *job.Spec.Suspend {
					t.Fatal("the Job was not resumed")
				}
				w.pass(tc.patience - time.Second)
				if why := w.evicted(); why != "" || w.onlyJob().Annotations[muster.TouchedAnnotation] != "" {
					t.Fatalf("too early it is touched, or evicted: %s", why)
				}
				w.pass(time.Second)
				if why := w.evicted(); !strings.Contains(why, "the Job controller of Kubernetes has not looked at it") {
					t.Fatalf("it is evicted because of %q", why)
				}
				if w.onlyJob().Annotations[muster.TouchedAnnotation] == "" || !*w.onlyJob().Spec.Suspend {
					t.Errorf("the Job was not touched, or not suspended: %+v", w.onlyJob())
				}
				if !w.holdsQuota() {
					t.Error("its quota is given back although the Job controller may not have seen yet that it is suspended")
				}
				w.pass(tc.patience)
				if w.holdsQuota() {
					t.Error("it holds its quota for ever")
				}
			})
		}
	}
}

// TestAnEvictionEndsWithoutTheJobController: a Job that was preempted before the Job controller looked at it has no
// pods.
func TestAnEvictionEndsWithoutTheJobController(t *testing.T) {
	for name, start := range silentWorlds {
		t.Run(name, func(t *testing.T) {
			w := start(t, true)
			w.evict()
			w.reconcileAll()
			w.pass(14 * time.Second)
			if !w.holdsQuota() {
				t.Error("its quota is given back too early: the Job controller may be about to create its pods")
			}
			w.pass(time.Second)
			if w.holdsQuota() {
				t.Error("its quota is not given back")
			}
		})
	}
}

// TestPodsKeepTheQuotaWhateverTheStatusSays: the Job controller has created a pod and not said so.
func TestPodsKeepTheQuotaWhateverTheStatusSays(t *testing.T) {
	for name, start := range silentWorlds {
		t.Run(name, func(t *testing.T) {
			w := start(t, true)
			pod := w.podOf(w.onlyJob())
			w.pass(time.Minute)
			if why := w.evicted(); why != "" {
				t.Fatalf("with a pod it is evicted: %s", why)
			}
			w.evict()
			w.reconcileAll()
			w.pass(time.Hour)
			if !w.holdsQuota() {
				t.Fatal("its quota is given back while a pod runs")
			}
			pod.Finalizers = nil
			if err := w.api.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			w.pass(time.Minute)
			if w.holdsQuota() {
				t.Error("its quota is not given back once the pod is gone")
			}
		})
	}
}

// TestAJobThatIsAnsweredIsLeftAlone: the Job controller looks at it in time.
func TestAJobThatIsAnsweredIsLeftAlone(t *testing.T) {
	w := newSilentBatchJob(t, true)
	w.pass(10 * time.Second)
	job := w.onlyJob()
	job.Status.StartTime = ptr.To(metav1.NewTime(w.clock.Now()))
	w.updateStatus(job)
	w.pass(time.Hour)
	if why := w.evicted(); why != "" || w.onlyJob().Annotations[muster.TouchedAnnotation] != "" {
		t.Errorf("it is touched, or evicted: %s", why)
	}
}
