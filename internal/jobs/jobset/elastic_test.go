package jobset

import (
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

// elasticSet returns a JobSet with a leader, and workers of one Job of three pods, between least and most.
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

// sized admits the leader and this many of four workers.
func sized(workers int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
		"leader": {Count: 1, Asked: 1, Left: 1}, "workers": {Count: workers, Asked: 4, Left: workers}}}
}

// runs has so many ready pods, and some that are on their way out.
func (b jobBuilder) runs(pods, leaving int32) jobBuilder {
	b.job.Status.StartTime = ptr.To(metav1.NewTime(now))
	b.job.Status.Active, b.job.Status.Ready, b.job.Status.Terminating = pods, &pods, &leaving
	return b
}

func TestDescribeElasticReplicatedJob(t *testing.T) {
	inPlace := elasticSet(2, 4).restarts(1, jobset.InPlaceRestart)
	apart := elasticSet(2, 4)
	apart.js.Spec.ReplicatedJobs[1].Template.Annotations = map[string]string{jobset.ExclusiveKey: "rack"}
	several, uneven := elasticSet(2, 4), elasticSet(2, 4)
	several.js.Spec.ReplicatedJobs[1].Replicas = 2
	uneven.js.Spec.ReplicatedJobs[1].Template.Spec.Completions = ptr.To[int32](6)
	for what, tc := range map[string]struct {
		js         setBuilder
		count, min int32
		said       string
	}{
		"between two numbers":       {elasticSet(2, 4), 4, 2, "2"},
		"without an upper one":      {elasticSet(2, 0), 3, 2, "2"},
		"of one size":               {elasticSet(3, 3), 3, 3, "3"},
		"not of several Jobs":       {several, 6, 0, ""},
		"not with more completions": {uneven, 3, 0, ""},
		"not in place":              {inPlace, 3, 0, ""},
		"not in a domain alone":     {apart, 3, 0, ""},
	} {
		ps := describe(tc.js.js, jobs.Facts{}).PodSets[1]
		if least := ptr.Deref(ps.MinCount, 0); ps.Count != tc.count || least != tc.min || ps.Template.Annotations[muster.MinReplicasAnnotation] != tc.said {
			t.Errorf("%s: it asks for %d, at least %d, and says %v; want %d, %d and %q", what, ps.Count, least, ps.Template.Annotations, tc.count, tc.min, tc.said)
		}
	}
	if got := tell(elasticSet(2, 4).js); got != "2" {
		t.Errorf("asking changes the JobSet: it says %q", got)
	}
}

func tell(js *jobset.JobSet) string {
	describe(js, jobs.Facts{})
	return js.Spec.ReplicatedJobs[1].Template.Spec.Template.Annotations[muster.MinReplicasAnnotation]
}

func TestElasticJobHasAsManyPodsAsGranted(t *testing.T) {
	leader := job("leader", 0).runs(1, 0)
	for what, tc := range map[string]struct {
		grant   jobs.Admission
		workers jobBuilder
		size    int32 // that the Job is given, 0 for none
		inUse   map[string]int32
		ready   bool
	}{
		"as it is":                               {sized(3), job("workers", 0).of(3).runs(3, 0), 0, map[string]int32{"workers": 3}, true},
		"it grows":                               {sized(4), job("workers", 0).of(3).runs(3, 0), 4, map[string]int32{"workers": 3}, true},
		"it shrinks":                             {sized(2), job("workers", 0).of(3).runs(3, 0), 2, nil, true},
		"one still goes":                         {sized(2), job("workers", 0).of(2).runs(2, 1), 0, map[string]int32{"workers": 3}, true},
		"all that had to have gone":              {sized(2), job("workers", 0).of(2).runs(2, 0), 0, map[string]int32{"workers": 2}, true},
		"its pods are not told of yet":           {sized(2), job("workers", 0).of(2), 0, nil, false},
		"the fewest are ready":                   {sized(4), job("workers", 0).of(4).runs(2, 0), 0, map[string]int32{"workers": 2}, true},
		"fewer than that":                        {sized(4), job("workers", 0).of(4).runs(1, 0), 0, map[string]int32{"workers": 1}, false},
		"never above the most":                   {sized(9), job("workers", 0).of(3).runs(3, 0), 4, map[string]int32{"workers": 3}, true},
		"nor for fewest that were raised since":  {sized(1), job("workers", 0).of(2).runs(2, 0), 1, nil, true},
		"nobody joins one that comes to its end": {sized(4), func() jobBuilder { b := job("workers", 0).of(3).runs(2, 0); b.job.Status.Succeeded = 1; return b }(), 0, map[string]int32{"workers": 2}, true},
		"but who has to go goes":                 {sized(2), func() jobBuilder { b := job("workers", 0).of(3).runs(2, 0); b.job.Status.Succeeded = 1; return b }(), 2, nil, true},
		"nor does its queue grow it then":        {sized(3), func() jobBuilder { b := job("workers", 0).of(3).runs(2, 0); b.job.Status.Succeeded = 1; return b }(), 0, map[string]int32{"workers": 2}, true},
	} {
		told := map[string]int32{}
		if tc.workers.job.Status.Succeeded > 0 && tc.grant.PodSets["workers"].Count < 4 {
			told["workers"] = 1 // of those that it was not given
		}
		p := look(t, elasticSet(2, 4).js, tc.grant, of(leader, tc.workers))
		var size int32
		for _, w := range p.Writes {
			changed := w.Object().(*batchv1.Job)
			size = *changed.Spec.Parallelism
			if changed.Name != "js-workers-0" || *changed.Spec.Completions != size || w.Verb() != "change" {
				t.Errorf("%s: %v", what, writes(p))
			}
		}
		if size != tc.size {
			t.Errorf("%s: its Job is given %d pods, want %d", what, size, tc.size)
		}
		same(t, what+": pods that use quota", tc.inUse, p.Progress.Pods)
		same(t, what+": pods that it needs no more", told, p.Progress.Reclaimable)
		same(t, what+": events", nil, events(p))
		if p.Progress.Ready != tc.ready {
			t.Errorf("%s: ready: %v", what, p.Progress.Ready)
		}
	}
}

func TestCreatedOrResumedElasticJobHasItsAdmittedSize(t *testing.T) {
	for what, children := range map[string][]jobBuilder{"made": nil, "resumed": {job("workers", 0).of(2).suspended()}} {
		p := look(t, elasticSet(2, 4).js, sized(4), of(children...))
		for _, w := range p.Writes {
			if got := w.Object().(*batchv1.Job); got.Name == "js-workers-0" && (*got.Spec.Parallelism != 4 || *got.Spec.Completions != 4) {
				t.Errorf("%s: %d of %d", what, *got.Spec.Parallelism, *got.Spec.Completions)
			}
		}
	}
	if got := createdJob(t, look(t, elasticSet(2, 4).js, unqueued, nil), "js-workers-0"); *got.Spec.Parallelism != 3 {
		t.Errorf("without a queue it has %d", *got.Spec.Parallelism)
	}
}

func TestEndedElasticJobReclaimsAllPods(t *testing.T) {
	p := look(t, elasticSet(2, 4).js, sized(3), of(job("leader", 0).runs(1, 0), job("workers", 0).of(3).succeeded()))
	same(t, "given back", map[string]int32{"workers": 4}, p.Progress.Reclaimable)
	same(t, "in use", map[string]int32{"workers": 0}, p.Progress.Pods)
}

// TestPodsOfAnElasticJobAreGatedUntilPlaced: the template of a running Job never changes, and pods created later go to
// nodes that it does not name.
func TestPodsOfAnElasticJobAreGatedUntilPlaced(t *testing.T) {
	grant := sized(2)
	workers := grant.PodSets["workers"]
	workers.Places = grantPlaces(on("a", 2)).PodSets["workers"].Places
	grant.PodSets["workers"] = workers
	p := look(t, elasticSet(2, 4).js, grant, nil)
	template := createdJob(t, p, "js-workers-0").Spec.Template
	same(t, "gates", []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}, template.Spec.SchedulingGates)
	same(t, "nodes", nil, hostNames(template.Spec))

	running := createdJob(t, p, "js-workers-0")
	running.Status = job("", 0).runs(2, 0).job.Status
	workers.Count, workers.Left, workers.Places = 3, 3, append(workers.Places, on("b", 1))
	grant.PodSets["workers"] = workers
	p = look(t, elasticSet(2, 4).js, grant, append(of(job("leader", 0).runs(1, 0)), running))
	same(t, "writes when it grows", []string{"change Job js-workers-0"}, writes(p))
}

func TestRoundsOfAnElasticJobSetHaveItsSizes(t *testing.T) {
	list, _ := made(withAgents(elasticSet(2, 4).js), someAgent)
	if got := list[0].Spec.Template.Annotations[muster.RendezvousSizeAnnotation]; got != "3:5" {
		t.Errorf("rounds of %q, of a leader and 2 to 4 workers", got)
	}
}
