package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/progress"
	"github.com/musterhq/muster/internal/workload"
)

// operatorWriting is a leader that writes expected ends, in a bubble of package synctest. The informer of its cache is
// played by hand.
type operatorWriting struct {
	t       *testing.T
	cluster client.Client
	reports *reports
	writes  []time.Time
	fails   func(name string) error // nil for never
}

// newOperatorWriting begins to write for Workloads that run, or that are as given.
func newOperatorWriting(t *testing.T, workloads ...*kueue.Workload) *operatorWriting {
	t.Helper()
	var objects []client.Object
	for _, w := range workloads {
		objects = append(objects, w)
	}
	o := &operatorWriting{t: t}
	o.cluster = interceptor.NewClient(clientOf(t, objects...).(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			o.writes = append(o.writes, time.Now())
			if o.fails != nil {
				if err := o.fails(object.GetName()); err != nil {
					return err
				}
			}
			return patchAsServer(ctx, c, object, patch, options...)
		}})
	o.reports = newReports(o.cluster, clock.RealClock{}, logr.Discard())
	for _, w := range workloads {
		o.reports.handler().OnAdd(o.of(w.Name), true)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = o.reports.Start(ctx) }()
	t.Cleanup(func() { stop(); <-stopped })
	return o
}

// patchAsServer makes a patch, and refuses one of another object's UID as the API server does.
func patchAsServer(ctx context.Context, c client.Client, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	var w kueue.Workload
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), &w); err != nil {
		return err
	}
	if !strings.Contains(string(data), fmt.Sprintf(`"uid":%q`, w.UID)) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, w.Name, errors.New("another UID"))
	}
	return c.Patch(ctx, object, patch, options...)
}

// of returns the Workload as it is in the cluster.
func (o *operatorWriting) of(name string) *kueue.Workload {
	o.t.Helper()
	var w kueue.Workload
	if err := o.cluster.Get(o.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &w); err != nil {
		o.t.Fatal(err)
	}
	return &w
}

// report takes a report of the job of a Workload.
func (o *operatorWriting) report(name string, remaining time.Duration) {
	o.reports.take(reporter{run: keyOf(o.of(name))}, &progress.Status{
		EstimatedRemainingSeconds: new(int64(remaining / time.Second))})
}

// change changes the status of a Workload, and has the change observed.
func (o *operatorWriting) change(name string, change func(*kueue.Workload)) {
	o.t.Helper()
	before := o.of(name)
	after := before.DeepCopy()
	change(after)
	if err := o.cluster.Update(o.t.Context(), after); err != nil {
		o.t.Fatal(err)
	}
	o.reports.handler().OnUpdate(before, after)
}

// want checks in how many seconds from now the job is expected to end by its Workload; negative for no annotation.
func (o *operatorWriting) want(what, name string, seconds int) {
	o.t.Helper()
	want := ""
	if seconds >= 0 {
		want = time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
	}
	if got := o.of(name).Annotations["muster.dev/expected-end"]; got != want {
		o.t.Errorf("%s: %s is expected to end at %q, want %q", what, name, got, want)
	}
}

// running returns an admitted Workload.
func running(name string) *kueue.Workload { return admittedWorkload(name, nil) }

// evict and admitAgain are changes of a Workload.
func evict(w *kueue.Workload) {
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
		Reason: "Preempted"}}
}

func admitAgain(w *kueue.Workload) {
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue,
		Reason: "Admitted", LastTransitionTime: metav1.NewTime(time.Now())}}
}

func TestManyReportsAreWrittenOnceASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, minutes = 20, 5
		var all []*kueue.Workload
		for i := range jobs {
			all = append(all, running(fmt.Sprint("w", i)))
		}
		o := newOperatorWriting(t, all...)
		for second := range minutes * 60 {
			for i := range jobs { // each of them lies: its end moves all the time
				o.report(fmt.Sprint("w", i), time.Duration(1+second%7)*time.Hour)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if len(o.writes) < minutes*60-1 {
			t.Errorf("%d writes in %d minutes, want one a second", len(o.writes), minutes)
		}
		for i := range o.writes[1:] {
			if pause := o.writes[i+1].Sub(o.writes[i]); pause < time.Second {
				t.Fatalf("writes %d and %d are %s apart, want a second", i, i+1, pause)
			}
		}
		for _, w := range all {
			if o.of(w.Name).Annotations[muster.ExpectedEndAnnotation] == "" {
				t.Errorf("%s has no annotation: others have delayed it for ever", w.Name)
			}
		}
	})
}

// TestThePercentageIsWrittenWithTheEnd: from percentages alone the end is known once there are two.
func TestThePercentageIsWrittenWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"))
		says := func(percentage int64) {
			o.reports.take(reporter{run: keyOf(o.of("w"))}, &progress.Status{ProgressPercentage: &percentage})
			synctest.Wait()
		}
		wantProgress := func(what, want string) {
			t.Helper()
			if got := o.of("w").Annotations[muster.ReportedProgressAnnotation]; got != want {
				t.Errorf("%s: the progress is %q, want %q", what, got, want)
			}
		}
		says(20)
		wantProgress("the first percentage", "")
		time.Sleep(10 * time.Minute)
		says(30)
		o.want("the second percentage", "w", 70*60)
		wantProgress("the second percentage", workload.FormatProgress(30, time.Now()))
		time.Sleep(progress.Interval)
		o.change("w", evict)
		synctest.Wait()
		o.want("evicted", "w", -1)
		wantProgress("evicted", "")
	})
}

func TestAnEndIsWrittenOnlyWhenItMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"))
		o.report("w", time.Hour)
		synctest.Wait()
		o.want("reported first", "w", 3600)
		time.Sleep(10 * time.Minute)
		o.report("w", 48*time.Minute)
		synctest.Wait()
		o.want("moved by 2 of 48 minutes", "w", 3000)
		o.report("w", 30*time.Minute)
		synctest.Wait()
		o.want("moved by 20 of 30 minutes", "w", 1800)
		if len(o.writes) != 2 {
			t.Errorf("%d writes, want 2", len(o.writes))
		}
	})
}

func TestAnEndThatMovesBackBeforeItIsWrittenIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"), running("other"))
		o.report("w", time.Hour)
		synctest.Wait()
		o.report("w", 2*time.Hour)
		o.report("w", time.Hour)
		time.Sleep(5 * time.Second)
		if len(o.writes) != 1 {
			t.Errorf("%d writes, want 1", len(o.writes))
		}
	})
}

func TestFailedWritesOfEndsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, failures := newOperatorWriting(t, running("w"), running("other")), 0
		o.fails = func(name string) error {
			if failures++; name == "w" && failures < 4 {
				return errors.New("the API server is away")
			}
			return nil
		}
		o.report("w", time.Hour)
		o.report("other", time.Hour)
		synctest.Wait()
		o.report("w", 2*time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
		o.want("after failures", "w", 2*3600-60)
		o.want("beside failures", "other", 3600-60)
	})
}

func TestTheEndOfAStoppedJobIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"))
		o.report("w", time.Hour)
		synctest.Wait()
		o.change("w", evict)
		time.Sleep(time.Minute)
		o.want("stopped", "w", -1)
		o.report("w", time.Hour) // of a pod that is being stopped
		time.Sleep(time.Minute)
		o.want("a report of a stopped job", "w", -1)
		o.change("w", admitAgain)
		o.report("w", time.Hour)
		synctest.Wait()
		o.want("running again", "w", 3600)
	})
}

// TestTheEndOfAnEarlierRunDoesNotCount: even if a job was stopped and admitted within a second, or in one event.
func TestTheEndOfAnEarlierRunDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"), running("silent"))
		for _, name := range []string{"w", "silent"} {
			o.report(name, time.Hour)
			time.Sleep(2 * time.Second)
			o.change(name, admitAgain)
		}
		o.report("w", time.Hour)
		time.Sleep(time.Minute)
		o.want("its new run has reported", "w", 3600-60)
		o.want("its new run reports nothing", "silent", -1)
	})
}

func TestAnEndIsNotWrittenToAnotherWorkloadOfTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"))
		former := keyOf(o.of("w"))
		former.UID = "former"
		o.reports.runs[former] = &run{}
		o.reports.take(reporter{run: former}, &progress.Status{EstimatedRemainingSeconds: new(int64(60))})
		time.Sleep(time.Minute)
		o.want("of the former one", "w", -1)
	})
}

// TestANewLeaderGoesOnFromTheAnnotation: what it reads there it does not write again.
func TestANewLeaderGoesOnFromTheAnnotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going, stopped, finished := running("going"), running("stopped"), running("finished")
		for _, w := range []*kueue.Workload{going, stopped, finished} {
			w.Annotations = map[string]string{"muster.dev/expected-end": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
		}
		evict(stopped)
		finished.Status.Conditions = append(finished.Status.Conditions,
			metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		o := newOperatorWriting(t, going, stopped, finished)
		o.report("going", time.Hour+time.Minute)
		time.Sleep(time.Minute)
		o.want("a minute later than written", "going", 3600-60)
		o.want("stopped", "stopped", -1)
		o.want("finished", "finished", 3600-60)
		if len(o.writes) != 1 {
			t.Errorf("%d writes, want 1", len(o.writes))
		}
	})
}

// TestAStandbyFollowsWhatTheLeaderWrites: it may lead next.
func TestAStandbyFollowsWhatTheLeaderWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperatorWriting(t, running("w"))
		o.change("w", func(w *kueue.Workload) {
			ends := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
			w.Annotations = map[string]string{"muster.dev/expected-end": ends}
		})
		o.report("w", 2*time.Hour)
		time.Sleep(time.Minute)
		if len(o.writes) != 0 {
			t.Errorf("%d writes of what was written already", len(o.writes))
		}
		o.change("w", func(w *kueue.Workload) { w.Annotations = nil })
		o.report("w", 2*time.Hour)
		synctest.Wait()
		o.want("somebody has removed it", "w", 2*3600)
	})
}

// TestOrderOfPodsByJobAPI: the lowest index comes first, by whatever label an API has for it.
func TestOrderOfPodsByJobAPI(t *testing.T) {
	for what, test := range map[string]struct {
		labels, annotations map[string]string
		want                []int
	}{
		"an Indexed Job": {map[string]string{"batch.kubernetes.io/job-completion-index": "3"}, nil, []int{3}},
		"a JobSet": {map[string]string{"jobset.sigs.k8s.io/job-global-index": "2"},
			map[string]string{"batch.kubernetes.io/job-completion-index": "1"}, []int{2, 1}},
		"a TrainingJob with the agent": {nil, map[string]string{"muster.dev/rendezvous-index": "5"}, []int{5}},
		"a TrainingJob":                {map[string]string{"training.kubeflow.org/replica-index": "4"}, nil, []int{4}},
		"a VCJob":                      {map[string]string{"volcano.sh/task-index": "7"}, nil, []int{7}},
		"a pod without an index":       {map[string]string{"a": "b"}, nil, nil},
	} {
		pod := podOfJob("p", 0, nil)
		pod.Labels, pod.Annotations, pod.UID = test.labels, test.annotations, types.UID("p")
		if got := orderOf(pod); !slices.Equal(got, test.want) {
			t.Errorf("%s: order %v, want %v", what, got, test.want)
		}
	}
}
