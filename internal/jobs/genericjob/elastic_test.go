package genericjob

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/replicas"
)

// elastic makes the last type one of between least and most replicas.
func (j jobBuilder) elastic(least, most int32) jobBuilder {
	spec := &j.Spec.ReplicaSpecs[len(j.Spec.ReplicaSpecs)-1]
	spec.Template.Annotations = map[string]string{muster.MinReplicasAnnotation: strconv.Itoa(int(least))}
	if most > 0 {
		spec.Template.Annotations[muster.MaxReplicasAnnotation] = strconv.Itoa(int(most))
	}
	return j
}

// granted is an admission with so many workers.
func granted(workers int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{"master": {Count: 1}, "worker": {Count: workers}}}
}

// grantedOf grants so many workers of those that were asked for.
func grantedOf(workers, asked int32) jobs.Admission {
	out := granted(workers)
	out.PodSets["worker"] = jobs.PodSetAdmission{Count: workers, Asked: asked}
	return out
}

// TestNoJobIsPlannedBeyondItsLargestSize: a job that the API never refused, because it was stored before
// there was a rule, takes no more memory than the largest job does, and says what is wrong with its size.
func TestNoJobIsPlannedBeyondItsLargestSize(t *testing.T) {
	const huge = math.MaxInt32
	for what, test := range map[string]struct {
		job       jobBuilder
		admission jobs.Admission
		size      int
		wrong     bool
	}{
		"the largest": {newJob().with("master", 1).with("worker", 3).elastic(2, 4999),
			granted(4999), 5000, false},
		// counts as absent
		"a maximum without end": {newJob().with("master", 1).with("worker", 3).elastic(2, huge),
			granted(huge), 4, false},
		"a maximum beyond the largest": {newJob().with("master", 1).with("worker", 3).elastic(2, 6000),
			granted(6000), 5000, true},
		"replicas without end": {newJob().with("worker", huge), unqueued, 5000, true},
		"a sum of replicas that overflows": {newJob().with("master", huge).with("worker", huge),
			unqueued, 5000, true},
		"a negative number": {newJob().with("master", 1).with("worker", -2), unqueued, 1, true},
		"a negative number that makes the sum small": {newJob().with("master", huge).with("worker", -huge),
			unqueued, 5000, true},
	} {
		if d := describe(test.job.GenericJob, jobs.Facts{}); (d.Mistake != nil) != test.wrong {
			t.Errorf("%s: told %v, want a mistake: %v", what, d.Mistake, test.wrong)
		}
		l := newPlanner(jobs.Seen[*tensorstack.GenericJob]{Job: test.job.GenericJob, Admission: test.admission, Now: now})
		if n := len(l.roster.Replicas); n != test.size {
			t.Errorf("%s: planned with %d replicas, want %d", what, n, test.size)
		}
	}
}

func TestWhatAnElasticTypeAsksOfItsQueue(t *testing.T) {
	for what, test := range map[string]struct {
		job         jobBuilder
		count, min  int32
		annotations map[string]string
	}{
		"rigid": {newJob().with("worker", 3), 3, 0, nil},
		"without an upper bound": {newJob().with("worker", 3).elastic(2, 0), 3, 2,
			map[string]string{muster.MinReplicasAnnotation: "2", muster.MaxReplicasAnnotation: "3"}},
		"with one": {newJob().with("worker", 3).elastic(2, 8), 8, 2,
			map[string]string{muster.MinReplicasAnnotation: "2", muster.MaxReplicasAnnotation: "8"}},
		"of one size": {newJob().with("worker", 3).elastic(3, 3), 3, 3,
			map[string]string{muster.MinReplicasAnnotation: "3", muster.MaxReplicasAnnotation: "3"}},
	} {
		ps := describe(test.job.GenericJob, jobs.Facts{}).PodSets[0]
		least := int32(0)
		if ps.MinCount != nil {
			least = *ps.MinCount
		}
		if ps.Count != test.count || least != test.min {
			t.Errorf("%s: it asks for %d, at least %d; want %d and %d", what, ps.Count, least, test.count, test.min)
		}
		same(t, what, test.annotations, ps.Template.Annotations)
	}
}

func TestAnElasticTypeHasAsManyReplicasAsItIsGranted(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 3).elastic(1, 4)
	same(t, "without a queue", []string{"create Pod job-master-0", "create Pod job-worker-0", "create Pod job-worker-1",
		"create Pod job-worker-2"}, writes(see(t, job.GenericJob, unqueued, nil)))
	p := see(t, job.GenericJob, granted(2), nil)
	same(t, "with two", []string{"create Pod job-master-0", "create Pod job-worker-0",
		"create Pod job-worker-1"}, writes(p))
	job = then(p, job)
	p = see(t, job.GenericJob, granted(4),
		of(pod("job-master-0").Running(), pod("job-worker-0").Running(), pod("job-worker-1").Running()))
	same(t, "grown to four", []string{"create Pod job-worker-2", "create Pod job-worker-3"}, writes(p))
	if !p.Progress.Ready {
		t.Error("while it grows it is not ready")
	}
	same(t, "its queue is told", map[string]int32{"worker": 2}, p.Progress.Pods)
	job = then(p, job)

	all := of(pod("job-master-0").Running(), pod("job-worker-0"), pod("job-worker-1").Running(),
		pod("job-worker-2").Running().Terminating(), pod("job-worker-3").Ended(0))
	p = see(t, job.GenericJob, granted(1), all)
	same(t, "shrunk to one", []string{"delete Pod job-worker-1", "delete Pod job-worker-3"}, writes(p))
	same(t, "its queue is told", map[string]int32{"worker": 3}, p.Progress.Pods)
	same(t, "and of what has ended", map[string]int32{}, p.Progress.Reclaimable)
	job = then(p, job)
	if got := len(job.Status.Tasks[1].Replicas); got != 1 {
		t.Errorf("%d workers are listed", got)
	}
	if p := see(t, job.GenericJob, granted(9), nil); len(p.Writes) != 5 {
		t.Errorf("granted more than it can use, it would %v", writes(p))
	}
	if job = then(see(t, job.GenericJob, waiting, nil), job); len(job.Status.Tasks[1].Replicas) != 1 {
		t.Errorf("stopped, it lists %+v", job.Status.Tasks[1])
	}
}

func TestARemovedReplicaDoesNotCount(t *testing.T) {
	job := newJob().with("worker", 3).elastic(1, 3)
	job = then(see(t, job.GenericJob, granted(3),
		of(pod("job-worker-0").Running(), pod("job-worker-1").Running(), pod("job-worker-2").Running())), job)
	p := see(t, job.GenericJob, granted(1),
		of(pod("job-worker-0").Ended(0), pod("job-worker-1").Running(), pod("job-worker-2").Ended(1)))
	if job = then(p, job); job.Status.Phase != tensorstack.JobPhaseRunning {
		t.Errorf("while one runs that it has quota for, it is %s", job.Status.Phase)
	}
	p = see(t, job.GenericJob, granted(1), of(pod("job-worker-0").Ended(0), pod("job-worker-1").Ended(0)))
	if job = then(p, job); job.Status.Phase != tensorstack.JobPhaseSucceeded {
		t.Errorf("with all that there are succeeded, it is %s", job.Status.Phase)
	}
}

// TestSucceededReplicasOfAnElasticTypeGiveQuotaBack: the type wants the pods that are left, and those stay when it is
// resized to that. With fewer left than its minimum, below which the queue resizes nothing, it gives the rest back.
func TestSucceededReplicasOfAnElasticTypeGiveQuotaBack(t *testing.T) {
	const always = "Always"
	type progress struct{ Needed, Reclaimable int32 }
	for name, tc := range map[string]struct {
		ended   []int // replicas that have succeeded, of four
		granted int32
		policy  string
		want    progress
		writes  []string
	}{
		"none has ended":                           {nil, 4, "", progress{}, nil},
		"one of four":                              {[]int{0}, 4, "", progress{Needed: 3}, nil},
		"one of four, resized to that":             {[]int{0}, 3, "", progress{Needed: 3}, nil},
		"one in the middle, resized to that":       {[]int{2}, 3, "", progress{Needed: 3}, nil},
		"two of four, and the queue takes no more": {[]int{0, 3}, 2, "", progress{Needed: 2}, nil},
		"one of four, and the queue takes one": {[]int{0}, 2, "", progress{Needed: 2},
			[]string{"delete Pod job-worker-3"}},
		"fewer than the minimum are left": {[]int{0, 1, 3}, 2, "", progress{Needed: 1, Reclaimable: 3}, nil},
		"all have succeeded but are run again": {[]int{0, 1}, 4, always, progress{},
			[]string{"delete Pod job-worker-0", "delete Pod job-worker-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob().with("master", 1).with("worker", 4,
				tensorstack.RestartPolicy{Policy: tensorstack.RestartPolicyType(tc.policy), Limit: 9}).elastic(2, 4)
			pods := func(ended ...int) (out []jobstest.Pod) {
				out = append(out, pod("job-master-0").Running())
				for i := range 4 {
					p := pod(fmt.Sprintf("job-worker-%d", i))
					if slices.Contains(ended, i) {
						out = append(out, p.Ended(0))
					} else {
						out = append(out, p.Running())
					}
				}
				return out
			}
			admission := func(count int32) jobs.Admission {
				out := granted(count)
				out.PodSets["worker"] = jobs.PodSetAdmission{Count: count, Asked: 4, Left: count,
					Template: job.Spec.ReplicaSpecs[1].Template.DeepCopy()}
				return out
			}
			job = then(see(t, job.GenericJob, admission(4), of(pods()...)), job)
			p := see(t, job.GenericJob, admission(tc.granted), of(pods(tc.ended...)...))
			same(t, "writes", tc.writes, writes(p))
			same(t, "what the queue is told", tc.want, progress{p.Progress.Needed["worker"], p.Progress.Reclaimable["worker"]})
			if job = then(p, job); len(job.Status.Tasks[1].Replicas) < len(tc.ended) {
				t.Errorf("replicas that have succeeded are forgotten: %+v", job.Status.Tasks[1].Replicas)
			}
		})
	}
}

// TestAnElasticTypeDoesNotGrowAfterASuccess: once a replica has succeeded nobody joins the others any more, also if its
// success is seen together with the grant, or its pod is gone.
func TestAnElasticTypeDoesNotGrowAfterASuccess(t *testing.T) {
	began := newJob().with("worker", 2).elastic(1, 4)
	began = then(see(t, began.GenericJob, granted(2),
		of(pod("job-worker-0").Running(), pod("job-worker-1").Running())), began)
	done := of(pod("job-worker-0").Ended(0), pod("job-worker-1").Running())
	same(t, "granted more with its success", nil, writes(see(t, began.GenericJob, granted(4), done)))
	seen := see(t, began.GenericJob, grantedOf(2, 4), done)
	if got := seen.Progress.Needed["worker"]; got != 1 {
		t.Errorf("its queue, which would give it more, is told that it wants %d, want 1", got)
	}
	if got := see(t, began.GenericJob, grantedOf(4, 4), done).Progress.Reclaimable["worker"]; got != 0 {
		t.Errorf("of what it has it lends %d", got)
	}
	job := then(see(t, began.GenericJob, granted(2), done), began)
	same(t, "after it", nil, writes(see(t, job.GenericJob, granted(4), of(pod("job-worker-1").Running()))))
	running := of(pod("job-worker-0").Running(), pod("job-worker-1").Running())
	same(t, "while all run", []string{"create Pod job-worker-2", "create Pod job-worker-3"},
		writes(see(t, began.GenericJob, granted(4), running)))
	again := newJob().with("worker", 2,
		tensorstack.RestartPolicy{Policy: tensorstack.RestartAlways, Limit: 9}).elastic(1, 4)
	again = then(see(t, again.GenericJob, granted(2),
		of(pod("job-worker-0").Running(), pod("job-worker-1").Running())), again)
	p := see(t, again.GenericJob, granted(4), done)
	if got := len(then(p, again).Status.Tasks[0].Replicas); got != 4 {
		t.Errorf("where who has succeeded runs again there are %d", got)
	}
}

// TestATypeNoLongerElasticKeepsItsAdmittedSize: his quota is for as many as were admitted, whatever he says of himself
// since.
func TestATypeNoLongerElasticKeepsItsAdmittedSize(t *testing.T) {
	for name, changed := range map[string]jobBuilder{
		"he says nothing any more": newJob().with("worker", 8),
		"eight are the least":      newJob().with("worker", 8).elastic(8, 8),
	} {
		t.Run(name, func(t *testing.T) {
			was := newJob().with("worker", 8).elastic(1, 8)
			admission := granted(2)
			worker := admission.PodSets["worker"]
			worker.Template = was.GenericJob.Spec.ReplicaSpecs[0].Template.DeepCopy()
			admission.PodSets["worker"] = worker
			p := see(t, changed.GenericJob, admission, of(pod("job-worker-0").Running(), pod("job-worker-1").Running()))
			same(t, "more than were admitted are made", nil, writes(p))
			same(t, "its queue is told how many use quota", map[string]int32{"worker": 2}, p.Progress.Pods)
		})
	}
}

// TestAnElasticJobReachesItsGrantedSize: whatever sizes it is granted one after the other, and
// whoever is killed in between.
func TestAnElasticJobReachesItsGrantedSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, newJob().with("master", 1).with("worker", 2).elastic(1, 5).GenericJob, admitted)
		c.elastic = true
		for range rapid.IntRange(1, 6).Draw(t, "resizes") {
			size := rapid.Int32Range(1, 5).Draw(t, "size")
			c.grant = granted(size)
			c.reconcile(rapid.IntRange(0, 6).Draw(t, "writes before it is killed"))
			for turns := 0; c.reconcile(1000) || c.runs(func(pod *corev1.Pod) bool {
				return replicas.IsTerminating(pod) || pod.Status.Phase == corev1.PodPending
			}, never); turns++ {
				if turns > 50 {
					t.Fatal("it does not come to rest")
				}
			}
			pods := c.Pods()
			if int32(len(pods)) != size+1 {
				t.Fatalf("there are %d pods, for %d workers and a master", len(pods), size)
			}
			for index := range size {
				if pods["job-worker-"+strconv.Itoa(int(index))] == nil {
					t.Fatalf("of %d there is no worker %d", size, index)
				}
			}
		}
	})
}

// TestPodsThatOutliveAnElasticJobFollowItsQuota: pods that run on after the end stop as far as the queue gives their
// quota to other jobs, which would wait for them otherwise, and the job wants no more pods than these.
func TestPodsThatOutliveAnElasticJobFollowItsQuota(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 4).elastic(1, 0).succeedsBy(rule("worker", 0))
	pods := of(pod("job-master-0").Running(), pod("job-worker-0").Ended(0), pod("job-worker-1").Running(),
		pod("job-worker-2").Running(), pod("job-worker-3").Running())
	job = then(see(t, job.GenericJob, grantedOf(4, 4), pods), job)
	if job.Status.Phase != tensorstack.JobPhaseSucceeded {
		t.Fatalf("the job is %s, want Succeeded", job.Status.Phase)
	}
	for _, tc := range []struct {
		granted int32
		want    []string
	}{
		{4, nil},
		{3, nil},
		{2, []string{"delete Pod job-worker-3"}},
		{1, []string{"delete Pod job-worker-2", "delete Pod job-worker-3"}},
	} {
		p := see(t, job.GenericJob, grantedOf(tc.granted, 4), pods)
		same(t, fmt.Sprintf("writes with quota for %d", tc.granted), tc.want, writes(p))
		if got := p.Progress; !got.OutcomePending || got.Outcome != nil || got.Pods["worker"] != 3 ||
			got.Reclaimable["worker"] != 0 {
			t.Errorf("with quota for %d the queue is told %+v, want the end, 3 pods, and nothing else of workers", tc.granted, got)
		}
	}
}
