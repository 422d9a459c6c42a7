package batchjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// whole makes the Job one that restarts as a whole.
func (b builder) whole() builder { return b.annotated(muster.RestartWholeAnnotation, "true") }

// podOf returns a pod of the Job in the phase, with the finalizers.
func podOf(job *batchv1.Job, name string, phase corev1.PodPhase, finalizers ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: job.Namespace, UID: types.UID(name),
		Finalizers:      finalizers,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Status: corev1.PodStatus{Phase: phase}}
}

func deleted(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	return pod
}

// TestAPartlyDoneJobRestartsAsAWhole: what a Job that asks for it needs before its next start, at each step of an
// eviction. In all cases index 0 of 4 is done unless the name says otherwise.
func TestAPartlyDoneJobRestartsAsAWhole(t *testing.T) {
	done := func(b builder) builder { return b.pods(0, 0, 1).completed("0") }
	evicted := func() builder { return done(newJob(4).indexed().whole().started(grant(4))).stopped().acknowledged() }
	restored := func() builder { return done(newJob(4).indexed().whole()).changed().acknowledged() }
	less := grant(4)
	less.Left = 3
	const (
		again   = "change status of Job j: 0 of 4 done"
		said    = "Warning RestartsWhole: The Job was stopped when 1 of its 4 indexes were done: all of them are run again"
		ignored = "Warning RestartWholeIgnored: " + restartIgnoredMessage
	)
	pod := func(phase corev1.PodPhase, finalizers ...string) *corev1.Pod {
		return podOf(newJob(4).job, "p", phase, finalizers...)
	}
	foreign := pod(corev1.PodSucceeded)
	foreign.OwnerReferences[0].UID = "another"
	for name, tc := range map[string]struct {
		job       builder
		admission jobs.Admission
		pods      []*corev1.Pod
		mustGoOn  bool
		writes    []string
		events    []string
		active    bool // whether the quota is kept
		due       time.Duration
		needed    int32 // pods that it needs at its next admission
	}{
		"it runs": {done(newJob(4).indexed().whole().started(grant(4))).pods(3, 3, 1), admitted(grant(4)), nil, false, nil,
			nil, true, 0, 3},
		"evicted": {done(newJob(4).indexed().whole().started(grant(4))).pods(3, 3, 1), stopping, nil, false,
			[]string{"change Job j: 1 of 4 done"}, nil, true, 0, 3},
		"its pods terminate": {evicted().terminating(3), stopping, nil, false, nil, nil, true, 0, 3},
		"it has stopped": {evicted(), stopping, nil, false, []string{"change Job j: 1 of 4 done"},
			nil, true, 0, 3},
		"restored, with a done pod": {restored(), stopping, []*corev1.Pod{pod(corev1.PodSucceeded)}, false,
			[]string{"delete Pod p"}, nil, true, podsGonePoll, 4},
		"a pod that the Job controller holds": {restored(), stopping,
			[]*corev1.Pod{deleted(pod(corev1.PodSucceeded, batchv1.JobTrackingFinalizer))}, false, nil, nil, true,
			podsGonePoll, 4},
		"a pod that somebody else holds": {restored(), stopping,
			[]*corev1.Pod{deleted(pod(corev1.PodSucceeded, "a.user/holds"))}, false, []string{again},
			[]string{said}, true, 0, 4},
		"a pod of which the cache is behind": {restored(), stopping, []*corev1.Pod{pod(corev1.PodRunning)}, false, nil, nil,
			true, podsGonePoll, 4},
		"a failed pod": {restored(), stopping, []*corev1.Pod{pod(corev1.PodFailed)}, false, []string{again},
			[]string{said}, true, 0, 4},
		"a pod of somebody else": {restored(), stopping, []*corev1.Pod{foreign}, false, []string{again},
			[]string{said}, true, 0, 4},
		"restored":                  {restored(), stopping, nil, false, []string{again}, []string{said}, true, 0, 4},
		"pods are not counted yet":  {restored().uncounted("u"), stopping, nil, false, nil, nil, true, 0, 4},
		"restarted":                 {restored().pods(0, 0, 0).completed(""), stopping, nil, false, nil, nil, false, 0, 4},
		"the API server refuses it": {restored(), stopping, nil, true, []string{again}, []string{said}, false, 0, 3},
		"a deletion is refused": {restored(), stopping, []*corev1.Pod{pod(corev1.PodSucceeded)}, true,
			[]string{"delete Pod p"}, nil, false, 0, 3},

		"the annotation is set while it waits": {restored(), waiting, nil, false, []string{again},
			[]string{said}, false, 0, 4},
		"admitted in time for all": {restored(), admitted(grant(4)), nil, false, []string{again},
			[]string{said}, false, 0, 4},
		"admitted, and the API server refuses": {restored(), admitted(grant(4)), nil, true,
			[]string{"change Job j: 1 of 4 done"}, nil, false, 0, 3},
		"admitted for the rest alone": {restored(), admitted(less), nil, false,
			[]string{"change Job j: 1 of 4 done"}, nil, false, 0, 3},
		"moved by a repair": {evicted(), admitted(grant(4)), nil, false,
			[]string{"change Job j: 1 of 4 done"}, []string{"Warning QueueDecides: " + suspendRevertedMessage}, false, 0, 3},
		"the annotation has another value": {restored().annotated(muster.RestartWholeAnnotation, "yes"), stopping, nil,
			false, nil, nil, false, 0, 3},
		"no index is done": {restored().pods(0, 0, 0).completed(""), waiting, nil, false, nil,
			nil, false, 0, 4},
		"all indexes are done": {restored().pods(0, 0, 4).completed("0-3"), stopping, nil, false, nil,
			nil, false, 0, 0},
		"its success is decided": {restored().is(batchv1.JobSuccessCriteriaMet, ""), stopping, nil, false,
			nil, nil, false, 0, 3},
		"an index has failed for good": {restored().failed("3"), stopping, nil, false, []string{again},
			[]string{said}, true, 0, 4},
		"it has no indexes": {newJob(4).whole().changed().acknowledged().pods(0, 0, 1), stopping, nil,
			false, nil, []string{ignored}, false, 0, 3},
		"it has more completions": {done(newJob(4).indexed().completions(6).whole()).changed().acknowledged(),
			stopping, nil, false, nil, []string{ignored}, false, 0, 4},
		"it is to run no pods for now": {done(newJob(0).indexed().completions(4).whole()).changed().acknowledged(),
			waiting, nil, false, nil, nil, false, 0, 0},
		"it runs with fewer pods than it wanted": {done(newJob(4).indexed().whole().started(grant(2))).stopped().
			acknowledged(), stopping, nil, false, []string{"change Job j: 1 of 4 done"}, nil, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(jobs.Seen[*batchv1.Job]{Job: tc.job.job, Admission: tc.admission, Pods: tc.pods,
				MustGoOn: tc.mustGoOn, Now: now})
			var got []string
			for _, w := range p.Writes {
				line := fmt.Sprintf("%s %s", w.Verb(), "Pod "+w.Object().GetName())
				if job, is := w.Object().(*batchv1.Job); is {
					line = fmt.Sprintf("%s Job j: %d of %d done", w.Verb(), doneIndexes(job), *job.Spec.Completions)
				}
				got = append(got, line)
			}
			needed := jobs.PodsAtATime(&tc.job.job.Spec) - p.Progress.Reclaimable["main"]
			for what, diff := range map[string]string{
				"writes": cmp.Diff(tc.writes, got), "events": cmp.Diff(tc.events, events(p)),
				"quota kept": cmp.Diff(tc.active, p.Progress.Active), "pods needed": cmp.Diff(tc.needed, needed),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			if due := p.Due; (tc.due == 0) != due.IsZero() || tc.due > 0 && due.Sub(now) != tc.due {
				t.Errorf("due at %v, want %s from now", due, tc.due)
			}
		})
	}
}

// TestARestartedElasticJobIsAsItsUserMadeIt: its size was settled, and the queue has taken pods since.
func TestARestartedElasticJobIsAsItsUserMadeIt(t *testing.T) {
	b := elastic(2, 6).whole().started(sized(3, 6)).running(3).completed("0")
	p := checkedPlan(t, b.job, admitted(sized(1, 6)))
	if len(p.Writes) != 1 {
		t.Fatalf("writes %v, want the Job made smaller", writes(p))
	}
	b = builder{p.Writes[0].Object().(*batchv1.Job).DeepCopy()}
	if *b.job.Spec.Parallelism != 1 || *b.job.Spec.Completions != 3 {
		t.Fatalf("parallelism %d, completions %d; want 1 and 3", *b.job.Spec.Parallelism, *b.job.Spec.Completions)
	}
	b = b.stopped().pods(0, 0, 1).acknowledged()
	b.job.Status.StartTime = nil
	p = checkedPlan(t, b.job, stopping)
	if len(p.Writes) != 1 || !p.Progress.Active {
		t.Fatalf("writes %v, active %t; want the Job restored", writes(p), p.Progress.Active)
	}
	restored := p.Writes[0].Object().(*batchv1.Job)
	if *restored.Spec.Parallelism != 4 || *restored.Spec.Completions != 4 || hasStarted(restored) {
		t.Fatalf("restored with parallelism %d, completions %d, annotations %v; want 4 and 4", *restored.Spec.Parallelism,
			*restored.Spec.Completions, restored.Annotations)
	}
	p = checkedPlan(t, restored, stopping)
	if len(p.Writes) != 1 || p.Writes[0].Verb() != "change status of" || !p.Progress.Active {
		t.Fatalf("writes %v, active %t; want the status changed", writes(p), p.Progress.Active)
	}
	if p := checkedPlan(t, p.Writes[0].Object().(*batchv1.Job), stopping); len(p.Writes) > 0 || p.Progress.Active {
		t.Errorf("writes %v, active %t; want the quota returned", writes(p), p.Progress.Active)
	}
	without := b.annotated(muster.RestartWholeAnnotation, "false")
	if kept := checkedPlan(t, without.job, stopping).Writes[0].Object().(*batchv1.Job); *kept.Spec.Completions != 3 {
		t.Errorf("without the annotation it is restored with %d completions, want 3", *kept.Spec.Completions)
	}
}

// TestOnlyAJobThatIsToBeRestartedReadsItsPods.
func TestOnlyAJobThatIsToBeRestartedReadsItsPods(t *testing.T) {
	partly := func() builder { return newJob(4).indexed().pods(0, 0, 1).completed("0").changed().acknowledged() }
	for name, tc := range map[string]struct {
		job  builder
		want bool
	}{
		"partly done":                    {partly().whole(), true},
		"without the annotation":         {partly(), false},
		"not restored yet":               {partly().whole().started(grant(4)), false},
		"nothing done":                   {newJob(4).indexed().whole(), false},
		"complete":                       {partly().whole().is(batchv1.JobComplete, ""), false},
		"with more completions than pod": {partly().completions(9).whole(), false},
	} {
		if got := API.Reads.Pods.Labels(tc.job.job) != nil; got != tc.want {
			t.Errorf("%s: pods are read: %t, want %t", name, got, tc.want)
		}
	}
	if keys := API.Reads.Pods.Labels(partly().whole().job); !slices.Equal([]string{keys[batchv1.ControllerUidLabel]},
		[]string{"uid"}) {
		t.Errorf("labels = %v, want those of the Job with the UID", keys)
	}
}
