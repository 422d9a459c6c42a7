package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// byResource returns a queue by resource with quota of cpu and gpu.
func byResource(cpu, gpu int64) ClusterQueueSet {
	q := queueOf("q", "", cpu)
	q.Strategy = ByResource
	q.Groups = []flavor.Group{{Resources: []string{"cpu", "gpu"}, Flavors: []string{"default"}}}
	q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "gpu"}] = quota.Limits{Nominal: gpu,
		Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	return q
}

// requesting returns a job of one pod that requests both.
func requesting(name string, cpu, gpu int64, priority int32, second int) WorkloadSet {
	w := job(name, "q", 1, cpu, priority, second)
	w.PodSets[0].PerPod["gpu"] = gpu
	return w
}

// TestWaitBehindAHeadByResourceIsExplained: an engine that has made no decisions explains the wait as well.
func TestWaitBehindAHeadByResourceIsExplained(t *testing.T) {
	e := New(Options{})
	running := requesting("running", 1, 3, 0, 0)
	running.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "main", Count: 1,
		Flavors: map[string]string{"cpu": "default", "gpu": "default"}, Usage: map[string]int64{"cpu": 1, "gpu": 3}}}}
	for _, ev := range []Event{defaultFlavor, byResource(8, 4), localOf("q"), running, requesting("head", 1, 2, 0, 1),
		requesting("small", 1, 1, 0, 2), requesting("other", 1, 0, 0, 3)} {
		e.Apply(ev)
	}
	e.Arrange(epoch)
	if x, _ := e.Explain(Key{Namespace: "ns", Name: "small"}); x.Behind == nil || x.Behind.Name != "head" ||
		!slices.Equal(x.BehindLacks, []string{"gpu"}) {
		t.Errorf("small waits behind %v for %v, want behind the head for gpu", x.Behind, x.BehindLacks)
	}
	if x, _ := e.Explain(Key{Namespace: "ns", Name: "other"}); x.Behind != nil {
		t.Errorf("other waits behind %v for %v, want behind none", x.Behind, x.BehindLacks)
	}
}

// TestByResourceNoWorkloadPassesForWhatTheHeadLacks: no workload is admitted that requests a resource of which a head
// before it is short.
func TestByResourceNoWorkloadPassesForWhatTheHeadLacks(t *testing.T) {
	checkSmall(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			lacked := map[*state.Class][]quota.FlavorResource{}
			for _, q := range w.engine.queues {
				for _, c := range q.Classes {
					if c.IsHead() {
						lacked[c] = c.Lacks()
					}
				}
			}
			nominated := map[Key]bool{}
			for key, job := range w.engine.workloads {
				nominated[key] = job.Nomination != nil
			}
			for _, d := range w.decide() {
				job := w.engine.workloads[d.Key]
				if d.Admit == nil || nominated[d.Key] || job.ClusterQueue.RanksByUsage {
					continue // ordered by usage, the admitted one may come after others since
				}
				if head := job.ClusterQueue.Waits.HeadBefore(&state.Alone(job).Class); head != nil &&
					slices.Equal(lacked[state.ClassOf(head)], head.Lacks()) {
					w.describe(t)
					t.Fatalf("%s was admitted before %s, which lacks %v", d.Key, head.Head().Key, head.Lacks())
				}
			}
		}
	})
}
