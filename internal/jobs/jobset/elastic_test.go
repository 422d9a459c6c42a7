package jobset

import (
	"math"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// elasticSet returns a JobSet with a leader and one Job of three workers, which may have from least to most pods.
func elasticSet(least, most int32) setBuilder {
	b := newSet().workersOf(3)
	rj := &b.js.Spec.ReplicatedJobs[1]
	rj.Replicas = 1
	rj.Template.Spec.Template.Annotations = map[string]string{muster.MinReplicasAnnotation: strconv.Itoa(int(least))}
	if most > 0 {
		rj.Template.Spec.Template.Annotations[muster.MaxReplicasAnnotation] = strconv.Itoa(int(most))
	}
	return b
}

// admittedSize returns an admission of the leader and this many of four workers.
func admittedSize(workers int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
		"leader": {Count: 1, Asked: 1, Left: 1}, "workers": {Count: workers, Asked: 4, Left: workers}}}
}

// withPods gives the Job this many ready pods, and some that are terminating.
func (j jobBuilder) withPods(pods, terminating int32) jobBuilder {
	j.job.Status.StartTime = ptr.To(metav1.NewTime(now))
	j.job.Status.Active, j.job.Status.Ready, j.job.Status.Terminating = pods, &pods, &terminating
	return j
}

// done gives the Job these indexes whose pods have succeeded, such as "0-2".
func (j jobBuilder) done(indexes string) jobBuilder {
	j.job.Status.CompletedIndexes = indexes
	j.job.Status.Succeeded = jobs.CountIndexes(indexes, math.MaxInt32)
	return j
}

func TestDescribeElasticReplicatedJob(t *testing.T) {
	inPlace := elasticSet(2, 4).restarts(1, jobset.InPlaceRestart)
	exclusive := elasticSet(2, 4)
	exclusive.js.Spec.ReplicatedJobs[1].Template.Annotations = map[string]string{jobset.ExclusiveKey: "rack"}
	several, uneven := elasticSet(2, 4), elasticSet(2, 4)
	several.js.Spec.ReplicatedJobs[1].Replicas = 2
	uneven.js.Spec.ReplicatedJobs[1].Template.Spec.Completions = ptr.To[int32](6)
	for name, tc := range map[string]struct {
		js         setBuilder
		count, min int32
		annotation string // the minimum, on the pod set
	}{
		"minimum and maximum":        {elasticSet(2, 4), 4, 2, "2"},
		"minimum only":               {elasticSet(2, 0), 3, 2, "2"},
		"minimum equal to maximum":   {elasticSet(3, 3), 3, 3, "3"},
		"several Jobs":               {several, 6, 0, ""},
		"more completions than pods": {uneven, 3, 0, ""},
		"restarted in place":         {inPlace, 3, 0, ""},
		"exclusive placement":        {exclusive, 3, 0, ""},
	} {
		ps := describe(tc.js.js, jobs.Facts{}).PodSets[1]
		if least := ptr.Deref(ps.MinCount, 0); ps.Count != tc.count || least != tc.min ||
			ps.Template.Annotations[muster.MinReplicasAnnotation] != tc.annotation {
			t.Errorf("%s: count %d, minimum %d, annotations %v; want %d, %d and %q", name, ps.Count, least,
				ps.Template.Annotations, tc.count, tc.min, tc.annotation)
		}
	}
	js := elasticSet(2, 4).js
	describe(js, jobs.Facts{})
	if got := js.Spec.ReplicatedJobs[1].Template.Spec.Template.Annotations[muster.MinReplicasAnnotation]; got != "2" {
		t.Errorf("describe changed the JobSet's minimum to %q", got)
	}
}

func TestElasticJobHasAsManyPodsAsGranted(t *testing.T) {
	leader := job("leader", 0).withPods(1, 0)
	for name, tc := range map[string]struct {
		grant   jobs.Admission
		workers jobBuilder
		size    int32            // to which the Job is changed; 0 for no change
		inUse   map[string]int32 // the pods that use quota
		ready   bool
	}{
		"unchanged": {admittedSize(3), job("workers", 0).of(3).withPods(3, 0), 0,
			map[string]int32{"workers": 3}, true},
		"grows": {admittedSize(4), job("workers", 0).of(3).withPods(3, 0), 4,
			map[string]int32{"workers": 3}, true},
		"shrinks": {admittedSize(2), job("workers", 0).of(3).withPods(3, 0), 2, nil, true},
		"shrunk, a pod terminating": {admittedSize(2), job("workers", 0).of(2).withPods(2, 1), 0,
			map[string]int32{"workers": 3}, true},
		"shrunk, no pod terminating": {admittedSize(2), job("workers", 0).of(2).withPods(2, 0), 0,
			map[string]int32{"workers": 2}, true},
		"no pods reported yet": {admittedSize(2), job("workers", 0).of(2), 0, nil, false},
		"as many ready as the minimum": {admittedSize(4), job("workers", 0).of(4).withPods(2, 0), 0,
			map[string]int32{"workers": 2}, true},
		"fewer ready than the minimum": {admittedSize(4), job("workers", 0).of(4).withPods(1, 0), 0,
			map[string]int32{"workers": 1}, false},
		"granted more than the maximum": {admittedSize(9), job("workers", 0).of(3).withPods(3, 0), 4,
			map[string]int32{"workers": 3}, true},
		"granted less than the minimum": {admittedSize(1), job("workers", 0).of(2).withPods(2, 0), 1, nil, true},
		"grows while pods succeed": {admittedSize(4), job("workers", 0).of(3).withPods(2, 0).done("0"), 0,
			map[string]int32{"workers": 2}, true},
		"shrinks while pods succeed": {admittedSize(2),
			job("workers", 0).of(3).withPods(2, 0).done("0"), 2, nil, true},
		"granted its size while pods succeed": {admittedSize(3), job("workers", 0).of(3).withPods(2, 0).done("0"), 0,
			map[string]int32{"workers": 2}, true},
	} {
		reclaimable := map[string]int32{}
		if tc.workers.job.Status.Succeeded > 0 && tc.grant.PodSets["workers"].Count < 4 {
			reclaimable["workers"] = 1 // the pod that was not granted is not needed any more
		}
		p := checkedPlan(t, elasticSet(2, 4).js, tc.grant, of(leader, tc.workers))
		var size int32
		for _, w := range p.Writes {
			changed := w.Object().(*batchv1.Job)
			size = *changed.Spec.Parallelism
			if settled := changed.Status.Succeeded > 0; changed.Name != "js-workers-0" ||
				*changed.Spec.Completions != size && !settled || w.Verb() != "change" {
				t.Errorf("%s: writes %v, want only a change of js-workers-0 to one size", name, writes(p))
			}
		}
		if size != tc.size {
			t.Errorf("%s: the Job is changed to %d pods, want %d", name, size, tc.size)
		}
		same(t, name+": pods that use quota", tc.inUse, p.Progress.Pods)
		same(t, name+": reclaimable pods", reclaimable, p.Progress.Reclaimable)
		same(t, name+": events", nil, events(p))
		if p.Progress.Ready != tc.ready {
			t.Errorf("%s: ready = %v, want %v", name, p.Progress.Ready, tc.ready)
		}
	}
}

// TestPodsThatMayHaveBeenCreatedCountBeforeAShrink: the status still counts two pods, though the Job was made larger
// since.
func TestPodsThatMayHaveBeenCreatedCountBeforeAShrink(t *testing.T) {
	workers := job("workers", 0).of(4).withPods(2, 0)
	p := checkedPlan(t, elasticSet(2, 4).js, admittedSize(3), of(job("leader", 0).withPods(1, 0), workers))
	same(t, "writes", []string{"change status of Job js-workers-0"}, writes(p))
	counted := p.Writes[0].Object().(*batchv1.Job)
	if counted.Status.Active != 4 {
		t.Errorf("%d pods counted, want 4", counted.Status.Active)
	}
	p = checkedPlan(t, elasticSet(2, 4).js, admittedSize(3), append(of(job("leader", 0).withPods(1, 0)), counted))
	same(t, "then writes", []string{"change Job js-workers-0"}, writes(p))
	p = checkedPlan(t, elasticSet(2, 4).js, admittedSize(3),
		append(of(job("leader", 0).withPods(1, 0)), p.Writes[0].Object().(*batchv1.Job)))
	same(t, "pods that use quota before the next report", map[string]int32{"workers": 4}, p.Progress.Pods)
}

// TestCompletionsOfAnElasticJobStayOnceAPodHasSucceeded: with fewer, a Job of which index 3 alone still runs would be
// complete, when it shrinks or is resumed smaller.
func TestCompletionsOfAnElasticJobStayOnceAPodHasSucceeded(t *testing.T) {
	for name, workers := range map[string]jobBuilder{
		"shrinks":    job("workers", 0).of(4).withPods(1, 0).done("0-2"),
		"is resumed": job("workers", 0).of(4).suspended().done("0-2"),
	} {
		p := checkedPlan(t, elasticSet(2, 4).js, admittedSize(3), of(job("leader", 0).withPods(1, 0), workers))
		if len(p.Writes) != 1 {
			t.Fatalf("%s: writes = %v, want one", name, writes(p))
		}
		got := p.Writes[0].Object().(*batchv1.Job)
		if *got.Spec.Parallelism != 3 || *got.Spec.Completions != 4 || suspended(got) {
			t.Errorf("%s: parallelism %d, completions %d, suspended %v; want 3 and 4, and running", name, *got.Spec.Parallelism,
				*got.Spec.Completions, suspended(got))
		}
	}
}

func TestCreatedOrResumedElasticJobHasItsAdmittedSize(t *testing.T) {
	for name, children := range map[string][]jobBuilder{"created": nil, "resumed": {job("workers", 0).of(2).suspended()}} {
		p := checkedPlan(t, elasticSet(2, 4).js, admittedSize(4), of(children...))
		for _, w := range p.Writes {
			if got := w.Object().(*batchv1.Job); got.Name == "js-workers-0" &&
				(*got.Spec.Parallelism != 4 || *got.Spec.Completions != 4) {
				t.Errorf("%s: parallelism %d, completions %d, want 4 and 4", name, *got.Spec.Parallelism, *got.Spec.Completions)
			}
		}
	}
	if got := createdJob(t, checkedPlan(t, elasticSet(2, 4).js, unqueued, nil),
		"js-workers-0"); *got.Spec.Parallelism != 3 {
		t.Errorf("without a queue: parallelism %d, want 3", *got.Spec.Parallelism)
	}
}

func TestEndedElasticJobReclaimsAllPods(t *testing.T) {
	p := checkedPlan(t, elasticSet(2, 4).js, admittedSize(3),
		of(job("leader", 0).withPods(1, 0), job("workers", 0).of(3).succeeded()))
	same(t, "reclaimable pods", map[string]int32{"workers": 4}, p.Progress.Reclaimable)
	same(t, "pods that use quota", map[string]int32{"workers": 0}, p.Progress.Pods)
}

// TestPodsOfAnElasticJobAreGatedUntilPlaced: the template of a running Job cannot change, so it does not select nodes,
// since pods that are created later may get others.
func TestPodsOfAnElasticJobAreGatedUntilPlaced(t *testing.T) {
	grant := admittedSize(2)
	workers := grant.PodSets["workers"]
	workers.Places = grantPlaces(on("a", 2)).PodSets["workers"].Places
	grant.PodSets["workers"] = workers
	p := checkedPlan(t, elasticSet(2, 4).js, grant, nil)
	template := createdJob(t, p, "js-workers-0").Spec.Template
	same(t, "gates", []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}, template.Spec.SchedulingGates)
	same(t, "nodes", nil, hostNames(template.Spec))

	running := createdJob(t, p, "js-workers-0")
	running.Status = job("", 0).withPods(2, 0).job.Status
	workers.Count, workers.Left, workers.Places = 3, 3, append(workers.Places, on("b", 1))
	grant.PodSets["workers"] = workers
	p = checkedPlan(t, elasticSet(2, 4).js, grant, append(of(job("leader", 0).withPods(1, 0)), running))
	same(t, "writes for a growth", []string{"change Job js-workers-0"}, writes(p))
}

func TestRoundsOfAnElasticJobSetHaveItsSizes(t *testing.T) {
	list, _ := createdJobs(withAgents(elasticSet(2, 4).js), someAgent)
	if got := list[0].Spec.Template.Annotations[muster.RendezvousSizeAnnotation]; got != "3:5" {
		t.Errorf("the rounds have the size %q, want 3:5 for a leader and 2 to 4 workers", got)
	}
}
