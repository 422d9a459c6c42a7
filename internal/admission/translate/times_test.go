package translate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/workload"
)

func TestTimesOfAWorkload(t *testing.T) {
	end := admissiontest.Now.Add(time.Hour)
	says := func(annotation string) func(string) map[string]string {
		return func(text string) map[string]string { return map[string]string{annotation: text} }
	}
	estimate, ownLimit, ends := says(muster.ExpectedDurationAnnotation), says(muster.JobLimitAnnotation),
		says(muster.ExpectedEndAnnotation)
	for name, tc := range map[string]struct {
		annotations map[string]string
		seconds     *int32
		ran         *int32
		// deadlines are the activeDeadlineSeconds of two pod sets, 0 for none.
		deadlines [2]int64
		want      durations.Known
	}{
		"nothing is said": {},
		"its maximum execution time, and what it ran of it": {seconds: ptr.To[int32](3600), ran: ptr.To[int32](600),
			want: durations.Known{Limit: time.Hour, Ran: 10 * time.Minute}},
		"the deadlines of pods begin anew": {ran: ptr.To[int32](600), deadlines: [2]int64{60, 120},
			want: durations.Known{PerStart: 2 * time.Minute}},
		"pods without a deadline": {deadlines: [2]int64{60, 0}},
		"the label is before the pods": {seconds: ptr.To[int32](3600), deadlines: [2]int64{60, 60},
			want: durations.Known{Limit: time.Hour}},
		"the limit of its own API": {annotations: ownLimit("1h30m0s"),
			want: durations.Known{PerStart: 90 * time.Minute}},
		"both": {annotations: ownLimit("30m"), seconds: ptr.To[int32](3600), ran: ptr.To[int32](600),
			want: durations.Known{Limit: time.Hour, PerStart: 30 * time.Minute, Ran: 10 * time.Minute}},
		"what it expects": {annotations: estimate("1h30m"),
			want: durations.Known{Expected: 90 * time.Minute}},
		"a negative estimate": {annotations: estimate("-1h")},
		"an absurd estimate":  {annotations: estimate("1000000h")},
		"no duration":         {annotations: estimate("soon")},
		"an absurd deadline":  {deadlines: [2]int64{1 << 62, 60}},
		"when it ends": {annotations: ends(end.Format(time.RFC3339)),
			want: durations.Known{Ends: end}},
		"no time": {annotations: ends("tomorrow")},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorkload("w", 1, nil)
			w.Spec.PodSets = append(w.Spec.PodSets, *w.Spec.PodSets[0].DeepCopy(), kueue.PodSet{Name: "empty"})
			for i, seconds := range tc.deadlines {
				if seconds != 0 {
					w.Spec.PodSets[i].Template.Spec.ActiveDeadlineSeconds = &seconds
				}
			}
			w.Annotations, w.Spec.MaximumExecutionTimeSeconds = tc.annotations, tc.seconds
			w.Status.AccumulatedPastExexcutionTimeSeconds = tc.ran
			got := newTestTranslator().Workload(w).Time
			got.Kind, got.Wider = "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("time (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesWithoutCounters(t *testing.T) {
	for name, want := range map[string]string{
		"train": "train", "train-7": "train", "train-x2k9f": "train", "train-20260301": "train", "seed42-lr3": "seed-lr",
		"train-5f3a9c21-eval": "train-eval", "nightly-29500123": "nightly", "a.b_c-1": "a-b-c", "bcdfg": "bcdfg",
		"llama-batch": "llama-batch", "42": "", "defaced": "defaced",
		"run-0b0e6c1a-6a0f-4d54-9d35-1c0a52d6d0f1": "run",
	} {
		if got := withoutCounters(name); got != want {
			t.Errorf("withoutCounters(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestKindsOfWorkloads: a Workload is like another one of the same namespace, kind of job and name without counters,
// whose pods request the same.
func TestKindsOfWorkloads(t *testing.T) {
	of := func(change func(*kueue.Workload)) durations.Known {
		w := admissiontest.NewWorkload("job-train-7-abcde", 2, admissiontest.Quantities("cpu", "1", "memory", "1Gi"))
		w.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "train-7", Controller: ptr.To(true)}}
		change(w)
		return newTestTranslator().Workload(w).Time
	}
	base := of(func(*kueue.Workload) {})
	if base.Wider != "ns" || !strings.HasPrefix(base.Kind, "ns/Job/train/") {
		t.Errorf("it is of the kind %q, and wider %q", base.Kind, base.Wider)
	}
	for name, tc := range map[string]struct {
		change func(*kueue.Workload)
		same   bool
	}{
		"another counter":   {func(w *kueue.Workload) { w.OwnerReferences[0].Name = "train-8" }, true},
		"another image":     {func(w *kueue.Workload) { w.Spec.PodSets[0].Template.Spec.Containers[0].Image = "b" }, true},
		"another name":      {func(w *kueue.Workload) { w.OwnerReferences[0].Name = "eval-7" }, false},
		"another kind":      {func(w *kueue.Workload) { w.OwnerReferences[0].Kind = "JobSet" }, false},
		"another namespace": {func(w *kueue.Workload) { w.Namespace = "other" }, false},
		"more pods":         {func(w *kueue.Workload) { w.Spec.PodSets[0].Count = 3 }, false},
		"other requests": {func(w *kueue.Workload) {
			w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "2")
		}, false},
	} {
		if got := of(tc.change); (got.Kind == base.Kind) != tc.same {
			t.Errorf("%s: it is of the kind %q, the other of %q", name, got.Kind, base.Kind)
		}
	}
	long := of(func(w *kueue.Workload) { w.OwnerReferences[0].Name = strings.Repeat("long", 60) })
	if len(long.Kind) > longestKind || len(long.Kind) < 16 {
		t.Errorf("the kind of a long name is %q, want it at most %d bytes", long.Kind, longestKind)
	}
}

func TestAdmittedAt(t *testing.T) {
	w := admissiontest.AdmittedWorkload("w")
	if got := newTestTranslator().Workload(w).AdmittedAt; !got.Equal(admissiontest.Now) {
		t.Errorf("it is admitted since %s, want %s", got, admissiontest.Now)
	}
	if got := newTestTranslator().Workload(admissiontest.ReservedWorkload("w")).AdmittedAt; !got.IsZero() {
		t.Errorf("a Workload with quota only is admitted since %s, want never", got)
	}
}

func TestTimesOfQueues(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        durations.Bounds
	}{
		"none": {},
		"both": {map[string]string{muster.MaxDurationAnnotation: "1d12h", muster.DefaultDurationAnnotation: "2h"},
			durations.Bounds{Max: 36 * time.Hour, Default: 2 * time.Hour}},
		"no durations": {map[string]string{muster.MaxDurationAnnotation: "-1d", muster.DefaultDurationAnnotation: "x"},
			durations.Bounds{}},
		"absurd": {map[string]string{muster.MaxDurationAnnotation: "200y", muster.DefaultDurationAnnotation: "11y"},
			durations.Bounds{}},
	} {
		cluster, local := admissiontest.NewClusterQueue("cq", "1"), admissiontest.NewLocalQueue("q", "cq")
		cluster.Annotations, local.Annotations = tc.annotations, tc.annotations
		if got := newTestTranslator().ClusterQueue(cluster).Durations; got != tc.want {
			t.Errorf("%s: the ClusterQueue says %+v, want %+v", name, got, tc.want)
		}
		set := newTestTranslator().Changed(local, admissiontest.Now)[0].(engine.LocalQueueSet)
		if set.Durations != tc.want {
			t.Errorf("%s: the LocalQueue says %+v, want %+v", name, set.Durations, tc.want)
		}
		plain := local.DeepCopy()
		plain.Annotations = nil
		if ChangeMatters(plain, local) != (len(tc.annotations) > 0) {
			t.Errorf("%s: the change of annotations of a LocalQueue matters: %v", name, ChangeMatters(plain, local))
		}
	}
}

// TestWhichQueuesBackfill: those of the strategy BestEffortFIFO whose annotation says so, or all of them by
// configuration but for those whose annotation says otherwise; and always the queue that follows the nodes.
func TestWhichQueuesBackfill(t *testing.T) {
	for _, tc := range []struct {
		configured v1alpha1.BackfillQueues
		annotation string
		strategy   kueue.QueueingStrategy
		follows    bool
		want       bool
	}{
		{configured: v1alpha1.BackfillNone},
		{configured: v1alpha1.BackfillNone, annotation: "true", want: true},
		{configured: v1alpha1.BackfillNone, annotation: "yes"},
		{configured: v1alpha1.BackfillBestEffortFIFO, want: true},
		{configured: v1alpha1.BackfillBestEffortFIFO, annotation: "false"},
		{configured: v1alpha1.BackfillBestEffortFIFO, annotation: "true", strategy: kueue.StrictFIFO},
		{configured: v1alpha1.BackfillNone, follows: true, want: true},
		{configured: v1alpha1.BackfillNone, follows: true, annotation: "false"},
		{configured: v1alpha1.BackfillNone, follows: true, strategy: kueue.StrictFIFO},
	} {
		cfg := config.Default()
		cfg.Backfill = &tc.configured
		q := admissiontest.NewClusterQueue("cq", "1")
		q.Spec.QueueingStrategy = tc.strategy
		if tc.annotation != "" {
			q.Annotations = map[string]string{muster.BackfillAnnotation: tc.annotation}
		}
		if tc.follows {
			q.Labels = map[string]string{muster.FollowsNodesLabel: "true"}
		}
		tr := newTestTranslator()
		tr.policy = QueuePolicyOf(cfg)
		if got := tr.ClusterQueue(q); got.Backfill != tc.want {
			t.Errorf("%+v: backfill = %v with strategy %d", tc, got.Backfill, got.Strategy)
		}
	}
	cfg := config.Default()
	cfg.Reservations = ptr.To[int32](3)
	if got := EngineOptions(cfg).Reservations; got != 3 {
		t.Errorf("the engine plans %d starts, want 3", got)
	}
}

func TestPodsDeadlineOfNoPods(t *testing.T) {
	if got := workload.PodsDeadline([]kueue.PodSet{{Name: "empty"}}); got != 0 {
		t.Errorf("the deadline of no pods is %s, want none", got)
	}
}
