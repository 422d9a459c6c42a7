package batchjob

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// elastic returns an Indexed Job of four pods that may have from least to most of them; 0 says nothing about most.
func elastic(least, most int) builder {
	b := newJob(4).indexed()
	b.job.Spec.Template.Annotations = map[string]string{muster.MinReplicasAnnotation: strconv.Itoa(least)}
	if most > 0 {
		b.job.Spec.Template.Annotations[muster.MaxReplicasAnnotation] = strconv.Itoa(most)
	}
	return b
}

// sized returns a grant of this many pods of an elastic Job that asked for the given number.
func sized(pods, asked int32) jobs.PodSetAdmission {
	granted := grant(pods)
	granted.Asked, granted.Left = asked, pods
	granted.Template = &corev1.PodTemplateSpec{}
	granted.Template.Annotations = map[string]string{muster.MinReplicasAnnotation: "2",
		muster.MaxReplicasAnnotation: strconv.Itoa(int(asked))}
	granted.Template.Spec = newJob(4).job.Spec.Template.Spec
	return granted
}

// running returns the Job with this many ready pods.
func (b builder) running(pods int32) builder { return b.pods(pods, pods, 0).startedAt(now) }

// set changes parallelism, as a user does, and completions unless they are 0.
func (b builder) set(parallelism, completions int32) builder {
	b.job.Spec.Parallelism = ptr.To(parallelism)
	if completions > 0 {
		b.job.Spec.Completions = ptr.To(completions)
	}
	return b.changed()
}

func TestDescribeElasticJob(t *testing.T) {
	nonIndexed := elastic(2, 6)
	nonIndexed.job.Spec.CompletionMode = nil
	for name, tc := range map[string]struct {
		job        builder
		count, min int32
		annotation string
	}{
		"minimum and maximum":              {elastic(2, 6), 6, 2, "2"},
		"minimum only":                     {elastic(2, 0), 4, 2, "2"},
		"with a minimum for its start too": {elastic(2, 0).annotated(kueue.JobMinParallelismAnnotation, "3"), 4, 2, "2"},
		"without indexes":                  {nonIndexed, 4, 0, ""},
		"more completions than pods":       {elastic(2, 6).completions(9), 4, 0, ""},
		"no minimum that is a number":      {elastic(-1, 6), 4, 0, ""},
		"running with fewer":               {elastic(2, 0).started(sized(3, 4)), 4, 2, "2"},
		"lowered by its user":              {elastic(2, 0).started(sized(4, 4)).set(3, 0), 3, 2, "2"},
		"raised by its user":               {elastic(2, 0).started(sized(4, 4)).set(9, 9), 9, 2, "2"},
		"lowered below its minimum":        {elastic(2, 0).started(sized(4, 4)).set(1, 1), 1, 1, "2"},
		"changed below its maximum":        {elastic(2, 6).started(sized(4, 6)).set(3, 3), 6, 2, "2"},
		"with an index done":               {elastic(2, 6).started(sized(4, 6)).completed("0"), 4, 2, "2"},
		"without pods for now":             {elastic(2, 0).started(sized(3, 4)).set(0, 0), 0, 0, ""},
	} {
		ps := describe(tc.job.job, jobs.Facts{}).PodSets[0]
		if least := ptr.Deref(ps.MinCount, 0); ps.Count != tc.count || least != tc.min ||
			ps.Template.Annotations[muster.MinReplicasAnnotation] != tc.annotation {
			t.Errorf("%s: count %d, minimum %d, annotations %v; want %d, %d and %q", name, ps.Count, least,
				ps.Template.Annotations, tc.count, tc.min, tc.annotation)
		}
	}
}

func TestElasticJobHasAsManyPodsAsGranted(t *testing.T) {
	const again = "Warning QueueDecides: spec.parallelism is 4 again: the queue chooses how many pods this Job has, from 2 to 6 until it is admitted anew"
	tied := func(granted jobs.PodSetAdmission) jobs.PodSetAdmission {
		granted.Tied = true
		return granted
	}
	inUse := func(pods int32) map[string]int32 { return map[string]int32{"main": pods} }
	succeeding := func(granted jobs.PodSetAdmission) builder {
		return elastic(2, 6).started(granted).running(3).completed("0")
	}
	settled := func() builder { return elastic(2, 6).completed("0") }
	left := func(granted jobs.PodSetAdmission, pods int32) jobs.PodSetAdmission {
		granted.Left = pods
		return granted
	}
	for name, tc := range map[string]struct {
		job     builder
		granted jobs.PodSetAdmission
		writes  []string
		events  []string
		inUse   map[string]int32 // nil if unknown
		ready   bool
	}{
		"starts": {elastic(2, 6), sized(3, 6), []string{"change: suspend=false parallelism=3 completions=3"},
			nil, nil, false},
		"starts with more than its own parallelism": {elastic(2, 6), sized(6, 6),
			[]string{"change: suspend=false parallelism=6 completions=6"}, nil, nil, false},
		"unchanged": {elastic(2, 6).started(sized(4, 6)).running(4), sized(4, 6), nil,
			nil, inUse(4), true},
		"grows": {elastic(2, 6).started(sized(4, 6)).running(4), sized(6, 6),
			[]string{"change: suspend=false parallelism=6 completions=6"}, nil, inUse(4), true},
		"shrinks": {elastic(2, 6).started(sized(4, 6)).running(4), sized(2, 6),
			[]string{"change: suspend=false parallelism=2 completions=2"}, nil, nil, true},
		"shrunk, a pod terminating": {elastic(2, 6).started(sized(2, 6)).running(2).terminating(1), sized(2, 6), nil,
			nil, inUse(3), true},
		"shrunk, no pod terminating": {elastic(2, 6).started(sized(2, 6)).running(2), sized(2, 6), nil,
			nil, inUse(2), true},
		"no pods reported yet": {elastic(2, 6).started(sized(2, 6)), sized(2, 6), nil, nil, nil, false},
		"as many ready as the minimum": {elastic(2, 6).started(sized(4, 6)).running(2), sized(4, 6), nil,
			nil, inUse(2), true},
		"fewer ready than the minimum": {elastic(2, 6).started(sized(4, 6)).running(1), sized(4, 6), nil, nil,
			inUse(1), false},

		"grows while indexes are done": {succeeding(sized(4, 6)), sized(6, 6), nil, nil, inUse(3), true},
		"shrinks while indexes are done": {succeeding(sized(4, 6)), sized(2, 6),
			[]string{"change: suspend=false parallelism=2 completions=4"}, nil, nil, true},
		"shrunk while indexes were done": {settled().set(2, 4).started(sized(2, 4)).running(2), sized(2, 4), nil,
			nil, inUse(2), true},
		"shrinks when only an index beyond the new size is done": {elastic(2, 6).started(sized(4, 6)).running(3).completed(
			"3"), sized(2, 6),
			[]string{"change: suspend=false parallelism=2 completions=4"}, nil, nil, true},
		"shrinks to no fewer pods than there are left": {elastic(2, 6).started(sized(4, 6)).running(1).completed(
			"0-2"), sized(2, 6),
			[]string{"change: suspend=false parallelism=4 completions=4"}, nil, nil, true},
		"shrunk to no fewer pods than there were left": {elastic(2, 6).started(sized(4, 6)).running(1).completed("0-2").
			annotated(muster.GrantedPodsAnnotation, "2"), sized(2, 6),
			nil, nil, inUse(1), true},
		"starts again after indexes were done": {settled(), sized(4, 4),
			[]string{"change: suspend=false parallelism=4 completions=4"}, nil, nil, false},
		"starts again, smaller, after indexes were done": {settled(), sized(2, 4),
			[]string{"change: suspend=false parallelism=2 completions=4"}, nil, nil, false},
		"raised by its user when indexes are done": {settled().started(sized(4, 4)).running(3).set(9, 9),
			left(sized(4, 4), 3), []string{"change: suspend=false parallelism=3 completions=9"},
			[]string{"Warning QueueDecides: spec.parallelism is 3 again: the Job has quota for as many pods; submit another Job for more"}, nil, true},

		"suspended by its user": {elastic(2, 6).started(sized(4, 6)).stopped().running(4), sized(4, 6),
			[]string{"change: suspend=false parallelism=4 completions=4"},
			[]string{"Warning QueueDecides: spec.suspend is false again: the queue decides when this Job runs; to hold it, set spec.active of its Workload to false"}, nil, false},
		"changed by its user, who gave a maximum": {elastic(2, 6).started(sized(4, 6)).running(4).set(3, 3), sized(4, 6),
			[]string{"change: suspend=false parallelism=4 completions=4"}, []string{again}, inUse(4), true},
		"changed by its user, and it shrinks": {elastic(2, 6).started(sized(4, 6)).running(4).set(3, 3), sized(2, 6),
			[]string{"change: suspend=false parallelism=2 completions=2"},
			[]string{strings.Replace(again, "4 again", "2 again", 1)}, nil, true},
		"raised by its user": {elastic(2, 0).started(sized(4, 6)).running(4).set(9, 9), sized(4, 6),
			[]string{"change: suspend=false parallelism=4 completions=4"}, []string{again}, nil, true},
		"raised by its user, in slices": {elastic(2, 0).started(sized(2, 4)).running(2).set(4, 4), tied(sized(2, 4)),
			[]string{"change: suspend=false parallelism=2 completions=2"},
			[]string{"Warning QueueDecides: spec.parallelism is 2 again: pods that are placed in slices or a group do not become more until the Job is admitted anew"}, nil, true},
		"lowered by its user, who has no maximum": {elastic(2, 0).started(sized(4, 4)).running(4).set(3, 0), sized(4, 4),
			[]string{"change: suspend=false parallelism=3 completions=3"}, nil, inUse(4), true},
		"lowered by its user with completions": {elastic(2, 0).started(sized(4, 4)).running(4).
			set(3, 3), sized(4, 4), nil, nil, inUse(4), true},
		"lowered by its user below its minimum, which its rules may need": {elastic(2, 0).started(sized(4, 4)).running(4).
			set(1, 0), sized(4, 4), nil, nil, inUse(4), true},
		"without pods, as its user wants": {elastic(2, 0).started(sized(4, 4)).running(0).set(0, 0), sized(4, 4), nil,
			nil, inUse(0), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.job.job, admitted(tc.granted))
			var got []string
			for i, w := range p.Writes {
				if job := w.Object().(*batchv1.Job); recordedIn(job).setByUser(job) {
					t.Errorf("the size that the queue chose is recorded as %d, so that %d is taken for its user's",
						*recordedIn(job).Size, *job.Spec.Parallelism)
				}
				got = append(got, writes(p)[i][:len(writes(p)[i])-len(" pool=f")]+" completions="+
					strconv.Itoa(int(*w.Object().(*batchv1.Job).Spec.Completions)))
			}
			for what, diff := range map[string]string{
				"writes": cmp.Diff(tc.writes, got), "events": cmp.Diff(tc.events, events(p)),
				"pods that use quota": cmp.Diff(tc.inUse, p.Progress.Pods),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			if p.Progress.Ready != tc.ready {
				t.Errorf("ready = %v, want %v", p.Progress.Ready, tc.ready)
			}
		})
	}
}

// TestUsersCanGiveAJobNoMorePodsThanItWasGranted: a running Job says how many pods it was granted, by which the API
// server goes, and the quota of pods is not released before the Job says so.
func TestUsersCanGiveAJobNoMorePodsThanItWasGranted(t *testing.T) {
	said := func(job builder) string { return job.job.Annotations[muster.GrantedPodsAnnotation] }
	partly := grant(1)
	partly.Asked = 1000
	for name, tc := range map[string]struct {
		job  builder
		want string
	}{
		"partly admitted": {newJob(1000).started(partly), "1"},
		"elastic":         {elastic(2, 9999).started(sized(3, 9999)), "3"},
		"stopped":         {builder{restored(elastic(2, 9999).started(sized(3, 9999)).job)}, ""},
	} {
		if got := said(tc.job); got != tc.want {
			t.Errorf("%s: the Job says that it was granted %q pods, want %q", name, got, tc.want)
		}
	}
	unsaid := newJob(3).started(grant(3)).running(3)
	delete(unsaid.job.Annotations, muster.GrantedPodsAnnotation)
	for name, tc := range map[string]struct {
		job      builder
		granted  jobs.PodSetAdmission
		want     string
		released bool // so that the pods that the status counts are reported at once
	}{
		"started by an earlier version": {unsaid, grant(3), "3", true},
		"grows":                         {elastic(2, 8).started(sized(2, 8)).running(2), sized(6, 8), "6", true},
		"shrinks":                       {elastic(2, 8).started(sized(6, 8)).running(6), sized(3, 8), "3", false},
		"shrinks to what its user has lowered": {elastic(2, 0).started(sized(4, 4)).running(4).set(2, 2),
			sized(2, 4), "2", false},
		"shrinks while it has no pods": {elastic(2, 0).started(sized(4, 4)).running(4).set(0, 0),
			sized(2, 4), "2", false},
		"is larger than what its queue has left": {newJob(4).indexed().started(grant(4)).running(4), sized(2, 4), "2", false},
	} {
		p := checkedPlan(t, tc.job.job, admitted(tc.granted))
		if len(p.Writes) != 1 {
			t.Errorf("%s: writes %v, want one", name, writes(p))
			continue
		}
		if got := said(builder{p.Writes[0].Object().(*batchv1.Job)}); got != tc.want && p.Writes[0].Verb() == "change" {
			t.Errorf("%s: the Job says that it was granted %q pods, want %q", name, got, tc.want)
		}
		if released := p.Progress.Pods != nil; released != tc.released {
			t.Errorf("%s: pods that use quota: %v, known before the write: want %v", name, p.Progress.Pods, tc.released)
		}
	}
}

// TestALargerSizeThatTheAPIServerPutBackIsWhatTheUserWants: the queue chooses up to it, and the Job has it once it
// stops.
func TestALargerSizeThatTheAPIServerPutBackIsWhatTheUserWants(t *testing.T) {
	lowered := elastic(2, 0).started(sized(4, 8)).running(4).set(3, 3)
	job := builder{checkedPlan(t, lowered.job, admitted(sized(3, 8))).Writes[0].Object().(*batchv1.Job)}
	if got := job.job.Annotations[muster.WantedPodsAnnotation]; got != "3" {
		t.Errorf("lowered to 3: its user wants %q pods", got)
	}
	if got := describe(job.annotated(muster.WantedPodsAnnotation, "9").job, jobs.Facts{}).PodSets[0].Count; got != 3 {
		t.Errorf("more than it asked for: the Job asks for %d pods, want 3", got)
	}
	job = job.annotated(muster.WantedPodsAnnotation, "6")
	if got := describe(job.job, jobs.Facts{}).PodSets[0].Count; got != 6 {
		t.Errorf("the Job asks for %d pods, want 6", got)
	}
	p := checkedPlan(t, job.job, admitted(sized(3, 8)))
	if said := events(p); len(said) != 1 ||
		!strings.HasPrefix(said[0], "Warning QueueDecides: spec.parallelism is 3 again") {
		t.Errorf("events %v, want one that says who chooses", said)
	}
	kept := p.Writes[0].Object().(*batchv1.Job)
	if p = checkedPlan(t, kept, admitted(sized(3, 8))); len(p.Writes) > 0 {
		t.Errorf("then writes %v, want none", writes(p))
	}
	if stopped := restored(kept); *stopped.Spec.Parallelism != 6 || *stopped.Spec.Completions != 6 ||
		len(stopped.Annotations) != 1 {
		t.Errorf("stopped: parallelism %d, completions %d, annotations %v; want 6, 6 and the mark alone",
			*stopped.Spec.Parallelism, *stopped.Spec.Completions, stopped.Annotations)
	}
	grown := checkedPlan(t, kept, admitted(sized(6, 8))).Writes[0].Object().(*batchv1.Job)
	if *grown.Spec.Parallelism != 6 || recordedIn(grown).setByUser(grown) {
		t.Errorf("granted 6: parallelism %d, taken for its user's: %v", *grown.Spec.Parallelism,
			recordedIn(grown).setByUser(grown))
	}
}

// TestAnElasticJobThatShrankWithoutPodsGetsWhatItsUserWanted, once its user gives it pods again.
func TestAnElasticJobThatShrankWithoutPodsGetsWhatItsUserWanted(t *testing.T) {
	idle := elastic(2, 0).started(sized(4, 4)).running(0).set(0, 0)
	shrunk := checkedPlan(t, idle.job, admitted(sized(2, 4))).Writes[0].Object().(*batchv1.Job)
	if *shrunk.Spec.Parallelism != 0 || *shrunk.Spec.Completions != 4 {
		t.Errorf("parallelism %d, completions %d; want 0 and 4", *shrunk.Spec.Parallelism, *shrunk.Spec.Completions)
	}
	if p := checkedPlan(t, shrunk, admitted(sized(2, 4))); len(p.Writes) > 0 {
		t.Errorf("then writes %v, want none", writes(p))
	}
	// It is set to 4 pods, of which the API server leaves the two that it was granted.
	if got := describe(builder{shrunk}.set(2, 0).job, jobs.Facts{}).PodSets[0].Count; got != 4 {
		t.Errorf("the Job asks for %d pods, want 4", got)
	}
}

// TestPodsThatMayHaveBeenCreatedCountBeforeAShrink: the status still counts four pods, though the Job was made larger
// since. Once it is smaller again, it would seem to have none too many.
func TestPodsThatMayHaveBeenCreatedCountBeforeAShrink(t *testing.T) {
	for name, job := range map[string]builder{
		"grown":                         elastic(2, 8).started(sized(6, 8)).running(4),
		"grown, and an index is done":   elastic(2, 8).started(sized(6, 8)).running(4).completed("0"),
		"grown, and raised by its user": elastic(2, 8).started(sized(6, 8)).running(4).set(9, 9),
	} {
		p := checkedPlan(t, job.job, admitted(sized(4, 8)))
		if len(p.Writes) != 1 || p.Writes[0].Verb() != "change status of" || len(events(p)) > 0 || p.Progress.Pods != nil {
			t.Fatalf("%s: writes %v, events %v, pods that use quota %v; want only a status that counts all pods", name,
				writes(p), events(p), p.Progress.Pods)
		}
		counted := p.Writes[0].Object().(*batchv1.Job)
		if want := jobs.PodsLeft(counted); counted.Status.Active != want {
			t.Errorf("%s: %d pods counted, want %d", name, counted.Status.Active, want)
		}
		p = checkedPlan(t, counted, admitted(sized(4, 8)))
		if len(p.Writes) != 1 || p.Writes[0].Verb() != "change" {
			t.Fatalf("%s: then writes %v, want the Job made smaller", name, writes(p))
		}
		if p = checkedPlan(t, p.Writes[0].Object().(*batchv1.Job), admitted(sized(4, 8))); p.Progress.Pods["main"] <= 4 {
			t.Errorf("%s: smaller, before the Job controller has reported: %v use quota, want more than 4", name, p.Progress.Pods)
		}
	}
}

// TestEndedPodsOfAnElasticJobAreReported, and those that were not granted with them, so that quota is held for the
// others.
func TestEndedPodsOfAnElasticJobAreReported(t *testing.T) {
	for done, want := range map[string]int32{"": 0, "0": 3, "0-2": 5} {
		p := checkedPlan(t, elastic(2, 6).started(sized(4, 6)).running(1).completed(done).job, admitted(sized(4, 6)))
		if got := p.Progress.Reclaimable["main"]; got != want {
			t.Errorf("indexes %q done: %d pods reclaimable, want %d", done, got, want)
		}
	}
}

// TestJobAdmittedWithAFixedSizeKeepsItsCompletions: an earlier version of Muster did not read the annotations, and let
// such a Job run with fewer pods at once.
func TestJobAdmittedWithAFixedSizeKeepsItsCompletions(t *testing.T) {
	fixed := grant(2)
	fixed.Asked, fixed.Template = 4, newJob(4).job.Spec.Template.DeepCopy()
	before := elastic(2, 0).annotated(kueue.JobMinParallelismAnnotation, "2")
	for name, granted := range map[string]jobs.PodSetAdmission{"not admitted anew": fixed,
		"of a Workload that is elastic": sized(2, 4)} {
		p := checkedPlan(t, before.started(fixed).running(2).job, admitted(granted))
		if len(p.Writes) > 0 {
			t.Errorf("%s: writes %v, completions %d; want none", name, writes(p),
				*p.Writes[0].Object().(*batchv1.Job).Spec.Completions)
		}
	}
	if job := started(before.job, fixed, podspec.Agent{}); *job.Spec.Parallelism != 2 || *job.Spec.Completions != 4 {
		t.Errorf("started with parallelism %d, completions %d; want 2 and 4", *job.Spec.Parallelism, *job.Spec.Completions)
	}
}

// TestFixedJobWithAnElasticWorkloadReportsThatItHasShrunk: another controller made the Workload; the jobs for which it
// shrank would wait for ever.
func TestFixedJobWithAnElasticWorkloadReportsThatItHasShrunk(t *testing.T) {
	granted := grant(2)
	granted.Asked = 4
	fixed := newJob(4).indexed().started(grant(4))
	if p := checkedPlan(t, fixed.running(4).job, admitted(granted)); p.Progress.Pods != nil || len(p.Writes) != 1 {
		t.Errorf("larger than granted: pods %v, writes %v; want none known, and one write", p.Progress.Pods, writes(p))
	}
	fixed.job.Spec.Parallelism = ptr.To[int32](2)
	if p := checkedPlan(t, fixed.running(2).job, admitted(granted)); p.Progress.Pods != nil || len(p.Writes) != 1 {
		t.Errorf("its user can still have 4: pods %v, writes %v; want none known, and one write", p.Progress.Pods, writes(p))
	}
	fixed.annotated(muster.GrantedPodsAnnotation, "2")
	for terminating, want := range map[int32]int32{1: 3, 0: 2} {
		if got := checkedPlan(t, fixed.running(2).terminating(terminating).job,
			admitted(granted)).Progress.Pods["main"]; got != want {
			t.Errorf("shrunk, %d pods terminating: %d use quota, want %d", terminating, got, want)
		}
	}
}

// TestStoppedElasticJobIsAsItsUserMadeIt, or as its user has changed it since.
func TestStoppedElasticJobIsAsItsUserMadeIt(t *testing.T) {
	for name, tc := range map[string]struct {
		job  builder
		pods int32
	}{
		"smaller":                     {elastic(2, 6).started(sized(2, 6)), 4},
		"larger":                      {elastic(2, 6).started(sized(6, 6)), 4},
		"of its own size":             {elastic(2, 6).started(sized(4, 6)), 4},
		"changed by its user":         {elastic(2, 0).started(sized(4, 4)).set(3, 0), 3},
		"changed by its user, larger": {elastic(2, 0).started(sized(2, 4)).set(9, 9), 9},
		"smaller, with an index done": {elastic(2, 6).started(sized(2, 6)).completed("0"), 2},
		"larger, with indexes done":   {elastic(2, 6).started(sized(6, 6)).completed("0-3"), 6},
		"limited, with an index done": {elastic(2, 6).completed("3").started(sized(2, 4)), 4},
	} {
		p := checkedPlan(t, tc.job.stopped().acknowledged().job, stopping)
		if len(p.Writes) != 1 {
			t.Fatalf("%s: writes = %v, want one", name, writes(p))
		}
		got := p.Writes[0].Object().(*batchv1.Job)
		if *got.Spec.Parallelism != tc.pods || *got.Spec.Completions != tc.pods || len(got.Annotations) != 1 {
			t.Errorf("%s: parallelism %d, completions %d, annotations %v; want %d pods and the mark alone", name,
				*got.Spec.Parallelism, *got.Spec.Completions, got.Annotations, tc.pods)
		}
	}
}

// TestAStopIsNotRefusedForCompletions: the API server changes completions only to what parallelism is. A stop that it
// refuses would hold the quota of the Job without end.
func TestAStopIsNotRefusedForCompletions(t *testing.T) {
	for name, job := range map[string]builder{
		"without pods":                      elastic(2, 6).started(sized(2, 6)).set(0, 0),
		"without pods, larger":              elastic(2, 6).started(sized(6, 6)).set(0, 0),
		"below its minimum":                 elastic(2, 6).started(sized(3, 6)).set(1, 0),
		"changed by its user, then evicted": elastic(2, 0).started(sized(4, 4)).set(3, 0),
	} {
		was := job.stopped().acknowledged().pods(0, 0, 0).job
		p := checkedPlan(t, was, stopping)
		if len(p.Writes) != 1 {
			t.Fatalf("%s: writes = %v, want one", name, writes(p))
		}
		got := p.Writes[0].Object().(*batchv1.Job)
		if *got.Spec.Completions != *was.Spec.Completions && *got.Spec.Completions != *got.Spec.Parallelism ||
			*got.Spec.Completions == 0 || len(got.Annotations) != 1 {
			t.Errorf("%s: parallelism %d, completions %d instead of %d, annotations %v; want completions as before or as parallelism, and the mark alone",
				name, *got.Spec.Parallelism, *got.Spec.Completions, *was.Spec.Completions, got.Annotations)
		}
	}
}

// TestPodsOfAnElasticJobAreGatedUntilPlaced: the template of a running Job cannot change, so it does not select nodes,
// since pods that are created later may get others.
func TestPodsOfAnElasticJobAreGatedUntilPlaced(t *testing.T) {
	granted := sized(2, 6)
	granted.Places = podspec.Places{{Domain: map[string]string{corev1.LabelHostname: "a"}, Count: 2}}
	template := started(elastic(2, 6).job, granted, podspec.Agent{}).Spec.Template
	if gates := template.Spec.SchedulingGates; len(gates) != 1 || gates[0].Name != kueue.TopologyGate ||
		template.Spec.NodeSelector[corev1.LabelHostname] != "" {
		t.Errorf("gates %v, node selector %v; want the gate and no host", gates, template.Spec.NodeSelector)
	}
}
