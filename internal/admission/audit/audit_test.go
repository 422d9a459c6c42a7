package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/report"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// admitted returns a Workload with that many pods of 1 cpu that the ClusterQueue cq admitted in flavor f.
func admitted(name string, pods int32) *kueue.Workload {
	w := admissiontest.NewWorkload(name, pods, admissiontest.Quantities("cpu", "1"))
	w.ResourceVersion = "7"
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: "u",
		Controller: ptr.To(true)}}
	admissiontest.Admit(w, admissiontest.Given("cq", pods), admissiontest.Now)
	// Objects read from the API server.
	w.Status.Admission.PodSetAssignments[0].ResourceUsage = admissiontest.Quantities("cpu", strconv.Itoa(int(pods)))
	return w
}

// engineWith returns an engine that has observed a queue and the Workloads.
func engineWith(workloads ...*kueue.Workload) *engine.Engine {
	e, tr := engine.New(engine.Options{}), newTranslator()
	objects := []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq")}
	for _, w := range workloads {
		objects = append(objects, w)
	}
	for _, o := range objects {
		for _, ev := range tr.Changed(o, admissiontest.Now) {
			e.Apply(ev)
		}
	}
	return e
}

func TestAuditFindsNoDifferenceInAnyState(t *testing.T) {
	runs, ending, leaving, shrinks, over := admitted("runs", 3), admitted("ending", 4), admitted("leaving", 2),
		admitted("shrinks", 4), admitted("over", 1)
	ending.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 3}}
	workload.Evict(leaving, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, admissiontest.Now)
	shrinks.Status.Admission.PodSetAssignments[0].Count = new(int32(2))
	shrinks.Status.Admission.PodSetAssignments[0].ResourceUsage = admissiontest.Quantities("cpu", "2")
	shrinks.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "main",
		Resources: admissiontest.Quantities("cpu", "4")}}
	workload.SetCondition(over, kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "", admissiontest.Now)
	all := []*kueue.Workload{runs, ending, leaving, shrinks, over,
		admissiontest.NewWorkload("waits", 9, admissiontest.Quantities("cpu", "1"))}
	e := engineWith(all...)
	var list []kueue.Workload
	for _, w := range all {
		list = append(list, *w)
	}
	if got := differencesOf(e, slices.Values([]string{"cq"}), list); len(got) != 0 {
		t.Errorf("differences = %v, want none", got)
	}
	usage, _ := e.QueueUsage("cq")
	if got := usage.Reserved[quota.FlavorResource{Flavor: "f", Resource: "cpu"}]; got != 3000+1000+2000+4000 {
		t.Errorf("reserved = %d, want the quota of all Workloads that hold any", got) // otherwise nothing was compared
	}
}

func TestAuditFindsDifferences(t *testing.T) {
	of := report.AmountOf{Queue: "cq", FlavorResource: quota.FlavorResource{Flavor: "f", Resource: "cpu"}}
	about := func(name, version string) difference {
		return difference{AmountOf: of, Workload: engine.Key{Namespace: "ns", Name: name}, Version: version}
	}
	a, b := admitted("a", 2), admitted("b", 3)
	larger := admitted("a", 2)
	larger.Status.Admission.PodSetAssignments[0].ResourceUsage = admissiontest.Quantities("cpu", "5")
	elsewhere := admitted("a", 2)
	elsewhere.Status.Admission.ClusterQueue = "other"
	for what, tc := range map[string]struct {
		observed, stored []*kueue.Workload
		want             map[difference]int64
	}{
		"no difference": {[]*kueue.Workload{a, b}, []*kueue.Workload{a, b}, nil},
		"a Workload that the engine does not know": {[]*kueue.Workload{a}, []*kueue.Workload{a, b},
			map[difference]int64{about("b", "7"): -3000}},
		"a Workload whose deletion the engine missed": {[]*kueue.Workload{a, b}, []*kueue.Workload{a},
			map[difference]int64{about("b", ""): 3000}},
		"another amount": {[]*kueue.Workload{a}, []*kueue.Workload{larger}, map[difference]int64{about("a", "7"): -3000}},
		"another queue": {[]*kueue.Workload{a}, []*kueue.Workload{elsewhere}, map[difference]int64{
			about("a", "7"): 2000,
			{AmountOf: report.AmountOf{Queue: "other", FlavorResource: of.FlavorResource},
				Workload: engine.Key{Namespace: "ns", Name: "a"}, Version: "7"}: -2000,
		}},
	} {
		var stored []kueue.Workload
		for _, w := range tc.stored {
			stored = append(stored, *w)
		}
		got := differencesOf(engineWith(tc.observed...), slices.Values([]string{"cq"}), stored)
		if len(tc.want) == 0 && len(got) == 0 {
			continue
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(difference{}, report.AmountOf{})); diff != "" {
			t.Errorf("%s: differences (-want +got):\n%s", what, diff)
		}
	}
}

// TestAuditIgnoresWritesInFlight: quota that the engine has given does not count as a difference while the API server
// does not have the write yet.
func TestAuditIgnoresWritesInFlight(t *testing.T) {
	w := admissiontest.NewWorkload("w", 2, admissiontest.Quantities("cpu", "1"))
	e := engineWith(w)
	if d := e.Decide(admissiontest.Now); len(d) != 1 || d[0].Admit == nil {
		t.Fatalf("got decisions %+v, want one admission", d)
	}
	if got := differencesOf(e, slices.Values([]string{"cq"}), []kueue.Workload{*w}); len(got) != 0 {
		t.Errorf("differences = %v, want none", got)
	}
}

// TestAuditIgnoresADecisionInFlight about a Workload that holds quota: the API server may have it or not.
func TestAuditIgnoresADecisionInFlight(t *testing.T) {
	w := admitted("w", 4)
	e := engineWith(w)
	smaller := w.DeepCopy()
	smaller.ResourceVersion = "8"
	smaller.Status.Admission.PodSetAssignments[0].ResourceUsage = admissiontest.Quantities("cpu", "2")
	urgent := admissiontest.NewWorkload("urgent", 8, admissiontest.Quantities("cpu", "1"))
	urgent.Spec.Priority = new(int32(9))
	cq := admissiontest.NewClusterQueue("cq", "8")
	cq.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
	tr := newTranslator()
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"), cq,
		admissiontest.NewLocalQueue("q", "cq"), urgent} {
		for _, ev := range tr.Changed(o, admissiontest.Now) {
			e.Apply(ev)
		}
	}
	evicted := false
	for _, d := range e.Decide(admissiontest.Now) {
		evicted = evicted || d.Evict != nil
	}
	if !evicted {
		t.Fatal("the Workload is not being evicted")
	}
	if got := differencesOf(e, slices.Values([]string{"cq"}), []kueue.Workload{*smaller, *urgent}); len(got) != 0 {
		t.Errorf("differences = %v, want none", got)
	}
}

func TestADifferenceCountsWhenFoundTwice(t *testing.T) {
	d := func(version string) difference {
		return difference{Workload: engine.Key{Name: "a"}, Version: version}
	}
	for what, tc := range map[string]struct {
		before, now map[difference]int64
		want        int
	}{
		"found the first time":      {nil, map[difference]int64{d("1"): 5}, 0},
		"found the second time":     {map[difference]int64{d("1"): 5}, map[difference]int64{d("1"): 5}, 1},
		"found in another version":  {map[difference]int64{d("1"): 5}, map[difference]int64{d("2"): 5}, 0},
		"found with another amount": {map[difference]int64{d("1"): 5}, map[difference]int64{d("1"): 4}, 0},
		"no longer found":           {map[difference]int64{d("1"): 5}, nil, 0},
	} {
		if got := inBoth(tc.before, tc.now); len(got) != tc.want {
			t.Errorf("%s: got differences %v, want %d", what, got, tc.want)
		}
	}
}

// TestTheMessageNamesAFewOfTheWorkloads, each once, and says where the queue's own sum is wrong.
func TestTheMessageNamesAFewOfTheWorkloads(t *testing.T) {
	found := map[difference]int64{}
	for _, resource := range []string{"cpu", "memory"} {
		of := report.AmountOf{Queue: "cq", FlavorResource: quota.FlavorResource{Flavor: "f", Resource: resource}}
		for _, name := range []string{"d", "c", "b", "a"} {
			found[difference{AmountOf: of, Workload: engine.Key{Namespace: "ns", Name: name}}] = 2000
		}
		of.Queue = "one"
		found[difference{AmountOf: of, Workload: engine.Key{Namespace: "ns", Name: "a"}}] = 1000
	}
	found[difference{AmountOf: report.AmountOf{Queue: "other",
		FlavorResource: quota.FlavorResource{Flavor: "f", Resource: "cpu"}}}] = -1000
	got := differenceMessages(found)
	if len(got) != 3 {
		t.Errorf("messages = %q, want one for each of three queues", got)
	}
	for queue, want := range map[string]string{
		"cq":    "cpu of flavor f by 8, memory of flavor f by 8000; for example ns/a, ns/b, ns/c. ",
		"one":   "cpu of flavor f by 1, memory of flavor f by 1k; for example ns/a. ",
		"other": "cpu of flavor f by -1; for example the queue's own sum. ",
	} {
		if !strings.Contains(got[queue], want) {
			t.Errorf("message of %s = %q, want it to contain %q", queue, got[queue], want)
		}
	}
}

func BenchmarkAuditOf15000Workloads(b *testing.B) {
	const many = 15_000
	for _, queues := range []int{1, 5000} {
		b.Run(fmt.Sprintf("%d queues", queues), func(b *testing.B) {
			e, tr, names, list := engineWith(), newTranslator(), []string{}, make([]kueue.Workload, many)
			apply := func(o client.Object) {
				for _, ev := range tr.Changed(o, admissiontest.Now) {
					e.Apply(ev)
				}
			}
			for i := range queues {
				names = append(names, fmt.Sprintf("cq%d", i))
				apply(admissiontest.NewClusterQueue(names[i], "100k"))
			}
			for i := range list {
				list[i] = *admitted(fmt.Sprintf("w%d", i), 2)
				list[i].Status.Admission.ClusterQueue = kueue.ClusterQueueReference(names[i%queues])
				apply(&list[i])
			}
			for b.Loop() {
				if got := differencesOf(e, slices.Values(names), list); len(got) != 0 {
					b.Fatalf("found %d differences, want none", len(got))
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/audit")
		})
	}
}

// newTranslator returns a translator that has observed nothing yet.
func newTranslator() *translate.Translator {
	return translate.New(podspec.Counting{}, translate.QueuePolicy{}, 5*time.Second)
}
