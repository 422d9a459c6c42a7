package controller_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	"github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
)

// refuse returns a function for world.refuses: a quota of the namespace allows no objects of the type.
func refuse[O client.Object]() func(client.Object) error {
	return func(o client.Object) error {
		if _, is := o.(O); !is {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, o.GetName(), errQuota)
	}
}

type quotaError struct{}

func (quotaError) Error() string { return "exceeded quota: none" }

var errQuota = quotaError{}

// refusedConditions returns the conditions of the only Workload that say that something is refused, as "Type: message".
func (p *podWorld) refusedConditions() (out []string) {
	for _, c := range p.workload().Status.Conditions {
		if c.Status == metav1.ConditionTrue && (c.Type == muster.RefusedCondition || c.Type == kueue.WorkloadEvicted) {
			out = append(out, c.Type+": "+c.Message)
		}
	}
	return out
}

// TestAJobWhoseObjectsAreRefusedGivesItsQuotaBack, as does a job whose pods are refused: the reason is in its status at
// once, and after 15 s without a further object it is evicted.
func TestAJobWhoseObjectsAreRefusedGivesItsQuotaBack(t *testing.T) {
	withSvc := newVCJob()
	withSvc.Spec.Plugins = map[string]volcano.PluginArguments{"svc": {}}
	foreignJob := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-leader-0", Namespace: "ns", UID: "other"},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}
	set := newJobSet("cq")
	set.Name = "job"
	for name, tc := range map[string]struct {
		world   *podWorld
		refuses func(client.Object) error
		why     string
	}{
		"Jobs of a JobSet": {newPodWorld(t, fault{}, of(jobset.API), set.DeepCopy(), clusterQueue("cq"), flavor()),
			refuse[*batchv1.Job](), "Its Jobs cannot be created: objects \"job-leader-0\" is forbidden: exceeded quota: none"},
		"a foreign Job has the name": {newPodWorld(t, fault{}, of(jobset.API), set.DeepCopy(), clusterQueue("cq"),
			flavor(), foreignJob),
			nil, "Its Jobs cannot be created: the name job-leader-0 is taken by an object that belongs to another owner: delete that Job, or give the job another name"},
		"Services of a GenericJob": {newPodWorld(t, fault{}, of(genericjob.API), newGenericJob("cq"),
			clusterQueue("cq"), flavor()),
			refuse[*corev1.Service](), "Its Services cannot be created: objects \"job-master-0\" is forbidden: exceeded quota: none"},
		"pods of a TrainingJob": {newPodWorld(t, fault{}, of(trainingjob.API(trainingSettings)), newTrainingJob(),
			clusterQueue("cq"), flavor()),
			refuse[*corev1.Pod](), "Its pods cannot be created: objects \"job-worker-0\" is forbidden: exceeded quota: none"},
		"ConfigMap of a VCJob": {newPodWorld(t, fault{}, of(vcjob.API), withSvc, clusterQueue("cq"), flavor()),
			refuse[*corev1.ConfigMap](), "Its ConfigMaps cannot be created: objects \"job-svc\" is forbidden: exceeded quota: none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world
			w.refuses = tc.refuses
			w.reconcile()
			w.admit()
			// The Workload is admitted, an object is refused, and the next reconcile says so.
			for range 4 {
				w.reconcile()
			}
			expectRefused(t, w, "at once", muster.RefusedCondition+": "+tc.why)
			w.clock.SetTime(w.clock.Now().Add(14 * time.Second))
			if result := w.reconcile(); result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
				t.Errorf("after 14 s it is reconciled again after %s, want within a second", result.RequeueAfter)
			}
			expectRefused(t, w, "after 14 s", muster.RefusedCondition+": "+tc.why)
			w.clock.SetTime(w.clock.Now().Add(time.Second))
			w.reconcile()
			if got := w.refusedConditions(); len(got) == 0 ||
				got[len(got)-1] != kueue.WorkloadEvicted+": "+tc.why && got[0] != kueue.WorkloadEvicted+": "+tc.why {
				t.Fatalf("after 15 s the conditions are %q, want it evicted because %s", got, tc.why)
			}
			if at := w.workload().Status.RequeueState; at == nil || !at.RequeueAt.Time.Equal(w.clock.Now().Add(time.Minute)) {
				t.Errorf("requeueState = %+v, want it to be queued again in a minute", at)
			}
			w.refuses = nil
			for range 10 {
				w.reconcile()
				w.kubelet()
				w.runJobs()
			}
			if got := w.workload(); got.Status.Admission != nil ||
				meta.FindStatusCondition(got.Status.Conditions, muster.RefusedCondition) != nil {
				t.Errorf("once it is stopped it holds quota, or still says that objects are refused: %+v", got.Status)
			}
		})
	}
}

func expectRefused(t *testing.T, w *podWorld, when string, want ...string) {
	t.Helper()
	if got := w.refusedConditions(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%s the conditions are %q, want %q", when, got, want)
	}
}

// TestAJobThatGetsItsObjectsOneByOneKeepsItsQuota: each one that is accepted begins the 15 s anew.
func TestAJobThatGetsItsObjectsOneByOneKeepsItsQuota(t *testing.T) {
	js := newJobSet("cq")
	js.Spec.ReplicatedJobs[1].Replicas = 6
	w := newWorld(t, fault{}, js, clusterQueue("cq"), flavor())
	left := 0
	w.refuses = func(o client.Object) error {
		if _, is := o.(*batchv1.Job); !is || left > 0 {
			left--
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, o.GetName(), errQuota)
	}
	w.reconcile()
	w.admit()
	w.reconcile()
	w.reconcile()
	for range 7 {
		w.clock.SetTime(w.clock.Now().Add(10 * time.Second))
		left = 1
		w.reconcile()
	}
	wl := list[kueue.WorkloadList](w).Items[0]
	if meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted) ||
		len(list[batchv1.JobList](w).Items) != 7 {
		t.Errorf("%d Jobs; the Workload: %+v", len(list[batchv1.JobList](w).Items), wl.Status.Conditions)
	}
	w.reconcile()
	if c := meta.FindStatusCondition(list[kueue.WorkloadList](w).Items[0].Status.Conditions,
		muster.RefusedCondition); c != nil {
		t.Errorf("with all its Jobs it still says: %s", c.Message)
	}
}

// TestAJobSetSaysThatItsJobsAreRefused in its own status, with a queue or without, and no more once it has them.
func TestAJobSetSaysThatItsJobsAreRefused(t *testing.T) {
	for name, queue := range map[string]string{"queued": "cq", "without a queue": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fault{}, newJobSet(queue), clusterQueue("cq"), flavor())
			w.refuses = refuse[*batchv1.Job]()
			w.reconcile()
			w.admit()
			for range 4 {
				w.reconcile()
			}
			c := meta.FindStatusCondition(w.jobSet().Status.Conditions, muster.CannotStartCondition)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != muster.RefusedReason ||
				!strings.HasPrefix(c.Message, "Its Jobs cannot be created: ") {
				t.Fatalf("condition = %+v", c)
			}
			w.refuses = nil
			for range 4 {
				w.reconcile()
			}
			if meta.IsStatusConditionTrue(w.jobSet().Status.Conditions, muster.CannotStartCondition) {
				t.Error("it says so still, though it has its Jobs")
			}
		})
	}
}
