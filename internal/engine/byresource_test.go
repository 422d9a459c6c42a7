package engine

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
)

// byResource returns a queue by resource with quota of cpu and gpu.
func byResource(cpu, gpu int64) ClusterQueueSet {
	q := queueOf("q", "", cpu)
	q.Strategy = ByResource
	q.Groups = []flavor.Group{{Resources: []string{"cpu", "gpu"}, Flavors: []string{"default"}}}
	q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "gpu"}] = quota.Limits{Nominal: gpu, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	return q
}

// requesting returns a job of one pod that requests both.
func requesting(name string, cpu, gpu int64, priority int32, second int) WorkloadSet {
	w := job(name, "q", 1, cpu, priority, second)
	w.PodSets[0].PerPod["gpu"] = gpu
	return w
}

func TestHeadBlocksOnlyRequestsForWhatItLacks(t *testing.T) {
	s := newScene(t, Options{}, byResource(8, 4), localOf("q"), requesting("running", 1, 3, 0, 0))
	s.want("a head is short of gpu", s.happens(requesting("head", 1, 2, 0, 1)), "head waits: WaitingForQuota")
	s.want("a workload that would fit requests gpu", s.happens(requesting("small", 1, 1, 0, 2)), "small waits: WaitingForQuota")
	s.want("a workload that requests no gpu arrives", s.happens(requesting("other", 1, 0, 0, 3)), "admit other in q")
	s.want("a workload of higher priority than the head arrives", s.happens(requesting("urgent", 1, 1, 1, 4)), "admit urgent in q")
	s.want("a second head is short of cpu", s.happens(requesting("large", 7, 0, 0, 5)), "large waits: WaitingForQuota")
	s.want("a workload behind the second head requests cpu", s.happens(requesting("little", 1, 0, 0, 6)), "little waits: WaitingForQuota")
	s.want("gpu is released for the first head, but too little cpu for the second", s.happens(gone("running")), "admit head in q", "admit small in q")
	s.want("enough cpu for the second head is released", s.happens(gone("head"), gone("small"), gone("other")), "admit large in q", "little waits: WaitingForQuota")
	s.want("the rest of the cpu is released", s.happens(gone("urgent")), "admit little in q")
}

// TestWorkloadThatCannotUseAFlavorPassesItsHead: a head that lacks a flavor holds back only those that the flavor accepts.
func TestWorkloadThatCannotUseAFlavorPassesItsHead(t *testing.T) {
	onGPUs := func(w WorkloadSet) WorkloadSet {
		w.PodSets[0].NodeSelector = map[string]string{"kind": "gpus"}
		w.PodSets[0].Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		return w
	}
	events := plainAndGPUs()
	for i, ev := range events {
		if q, ok := ev.(ClusterQueueSet); ok {
			q.Strategy = ByResource
			events[i] = q
		}
	}
	s := newScene(t, Options{}, append(events, onGPUs(job("running", "q", 1, 60, 0, 0)))...)
	s.want("a head lacks the flavor", s.happens(onGPUs(job("head", "q", 1, 60, 0, 1))), "head waits: WaitingForQuota")
	s.want("a workload that tolerates it arrives", s.happens(onGPUs(job("behind", "q", 1, 1, 0, 2))), "behind waits: WaitingForQuota")
	s.want("a workload that does not arrives", s.happens(job("passes", "q", 1, 1, 0, 3)), "admit passes in q")
}

func TestWorkloadThatNeverFitsBlocksNoneByResource(t *testing.T) {
	s := newScene(t, Options{}, byResource(8, 4), localOf("q"))
	s.want("a head that is too large", s.happens(requesting("huge", 1, 9, 0, 0), requesting("mixed", 9, 1, 0, 1), requesting("a", 1, 1, 0, 2)),
		"admit a in q", "huge waits: ExceedsMaxQuota", "mixed waits: ExceedsMaxQuota")
}

// TestPodSetsThatNeverFitTogetherBlockNoneByResource: a workload whose pod sets fit only one by one does not block
// those behind it.
func TestPodSetsThatNeverFitTogetherBlockNoneByResource(t *testing.T) {
	s := newScene(t, Options{}, byResource(4, 4), localOf("q"), requesting("running", 3, 0, 0, 0))
	huge := requesting("huge", 2, 0, 0, 1)
	huge.PodSets = append(huge.PodSets, flavor.PodSet{Name: "workers", Count: 3, PerPod: map[string]int64{"cpu": 1}})
	s.want("a head that is too large", s.happens(huge), "huge waits: ExceedsMaxQuota")
	s.want("a workload behind it arrives", s.happens(requesting("small", 1, 0, 0, 2)), "admit small in q")
}

func TestHeadThatLeavesLetsOthersPass(t *testing.T) {
	for name, event := range map[string]func(s *scene) Event{
		"it is deleted":            func(*scene) Event { return gone("head") },
		"it is deactivated":        func(s *scene) Event { return s.changed("head", func(w *Workload) { w.Inactive = true }) },
		"it is later in order now": func(s *scene) Event { return s.changed("head", func(w *Workload) { w.Priority = -1 }) },
		"it requests less now":     func(s *scene) Event { return requesting("head", 1, 1, -1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, byResource(8, 4), localOf("q"), requesting("running", 1, 3, 0, 0), requesting("head", 1, 2, 0, 1), requesting("small", 1, 1, 0, 2))
			if got := s.happens(event(s)); !slices.Contains(got, "admit small in q") {
				t.Errorf("got decisions %q, want the workload behind admitted", got)
			}
		})
	}
}

func TestNextOfItsClassBlocksAfterTheHeadLeft(t *testing.T) {
	s := newScene(t, Options{}, byResource(8, 4), localOf("q"), requesting("running", 1, 3, 0, 0), requesting("head", 1, 2, 0, 1), requesting("next", 1, 2, 0, 2), requesting("small", 1, 1, 0, 3))
	s.want("the head is deleted", s.happens(gone("head")))
	s.want("the next in order is deleted", s.happens(gone("next")), "admit small in q")
}

// TestHeadBehindAnotherHeadBlocksNone: only the first of two heads blocks the workloads behind it, whichever of them
// was created first.
func TestHeadBehindAnotherHeadBlocksNone(t *testing.T) {
	s := newScene(t, Options{}, byResource(8, 4), localOf("q"), requesting("running", 1, 3, 0, 0))
	s.want("a head that is short of gpu arrives", s.happens(requesting("both", 1, 2, 0, 5)), "both waits: WaitingForQuota")
	s.want("a workload behind it arrives", s.happens(requesting("gpu", 0, 1, 0, 6)), "gpu waits: WaitingForQuota")
	s.want("a first in order that is short of cpu arrives", s.happens(requesting("first", 8, 0, 1, 7)), "admit gpu in q", "first waits: WaitingForQuota")
}

// TestWaitBehindAHeadByResourceIsExplained: an engine that has made no decisions explains the wait as well.
func TestWaitBehindAHeadByResourceIsExplained(t *testing.T) {
	e := New(Options{})
	running := requesting("running", 1, 3, 0, 0)
	running.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "main", Count: 1,
		Flavors: map[string]string{"cpu": "default", "gpu": "default"}, Usage: map[string]int64{"cpu": 1, "gpu": 3}}}}
	for _, ev := range []Event{defaultFlavor, byResource(8, 4), localOf("q"), running, requesting("head", 1, 2, 0, 1), requesting("small", 1, 1, 0, 2), requesting("other", 1, 0, 0, 3)} {
		e.Apply(ev)
	}
	e.Arrange(epoch)
	if x, _ := e.Explain(Key{Namespace: "ns", Name: "small"}); x.Behind == nil || x.Behind.Name != "head" || !slices.Equal(x.BehindLacks, []string{"gpu"}) {
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
			lacked := map[*class][]quota.FlavorResource{}
			for _, q := range w.engine.queues {
				for _, head := range q.heads {
					lacked[head] = head.lacks
				}
			}
			promised := map[Key]bool{}
			for key, job := range w.engine.workloads {
				promised[key] = job.promise != nil
			}
			for _, d := range w.decide() {
				job := w.engine.workloads[d.Key]
				if d.Admit == nil || promised[d.Key] || job.queue.byUsage {
					continue // ordered by usage, the admitted one may come after others since
				}
				probe := &class{classKey: classKey{shape: job.shape, priority: job.Priority, local: job.localKey()}, queue: job.queue, from: job.local}
				probe.waiting.Push(job.rank())
				if head := w.engine.headBefore(probe); head != nil && slices.Equal(lacked[head], head.lacks) {
					w.describe(t)
					t.Fatalf("%s was admitted before %s, which lacks %v", d.Key, head.head().Key, head.lacks)
				}
			}
		}
	})
}

// TestHeadBlocksForWhatItLacksNow: a head was short of capacity on nodes, of cpu on one and of pods on the other. Now
// it is short of quota, which is reserved for another queue. A restarted engine would know only the latter.
func TestHeadBlocksForWhatItLacksNow(t *testing.T) {
	q, full := queueOf("q", "lab", 0), node("a2", "a", 4)
	q.Strategy, full.Allocatable[place.Pods] = ByResource, 1
	s := newScene(t, Options{BlockUntilReady: BlockQueue}, slices.Concat(onNodes, []Event{q, strict(queueOf("owner", "lab", 8)), localOf("q"), localOf("owner"),
		node("a1", "a", 4), full, pod("", 1, "a1", 2), pod("", 2, "a2", 0), job("starting", "owner", 1, 0, 0, 0)})...)
	s.want("a head is short of cpu and pods", s.happens(job("head", "q", 1, 4, 0, 1)), "head waits: TopologyPlacementFailed")
	s.want("a workload that requests one pod arrives", s.happens(job("idle", "q", 1, 0, 0, 2)), "idle waits: WaitingForQuota")
	s.want("an owner of quota arrives, and before it in order a workload without requests", s.happens(job("none", "owner", 0, 1, 1, 3), job("own", "owner", 8, 1, 0, 4)),
		"none waits: WaitingForPodsReady", "own waits: WaitingForPodsReady")
	s.want("the workload without requests is admitted", s.happens(s.changed("starting", func(w *Workload) { w.Ready = true })), "admit none in owner", "admit idle in q")
}

// TestHeadThatHoldsBackNoneIsReviewed: what a head lacks matters also while nobody waits behind it, for a later head that
// requests it holds back none. A restarted engine would know that at once.
func TestHeadThatHoldsBackNoneIsReviewed(t *testing.T) {
	q := byResource(8, 4)
	q.Groups[0].Resources = append(q.Groups[0].Resources, "memory")
	q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "memory"}] = quota.Limits{Nominal: 4}
	withMemory := func(memory int64, w WorkloadSet) WorkloadSet {
		w.PodSets[0].PerPod["memory"] = memory
		return w
	}
	s := newScene(t, Options{}, q, localOf("q"), requesting("running", 4, 4, 0, 0))
	s.want("a head is short of gpu alone", s.happens(withMemory(2, requesting("first", 0, 1, 0, 1))), "first waits: WaitingForQuota")
	s.want("now it would be short of memory too", s.happens(withMemory(3, requesting("memory", 0, 0, 0, 2))), "admit memory in q")
	s.want("a workload that requests that is no head", s.happens(withMemory(2, requesting("second", 6, 0, 0, 3))), "second waits: WaitingForQuota")
	s.want("and does not hold back who requests cpu", s.happens(requesting("cpu", 1, 0, 0, 4)), "admit cpu in q")
}

// TestHeadThatNeedsACordonedNodeHoldsBackNone: whatever ends, there is no capacity for it before the node is open again.
func TestHeadThatNeedsACordonedNodeHoldsBackNone(t *testing.T) {
	q := queueOf("q", "", 8)
	q.Strategy = ByResource
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), cordoned(node("a2", "a", 4)), job("running", "q", 1, 1, 0, 0)})...)
	s.want("a head for both nodes arrives", s.happens(job("head", "q", 2, 4, 0, 1)), "head waits: WaitingForQuota")
	s.want("a workload for the open one arrives", s.happens(job("small", "q", 1, 1, 0, 2)), "admit small in q")
	s.want("the node is open again", s.happens(node("a2", "a", 4), job("next", "q", 1, 1, 0, 3)), "next waits: WaitingForQuota")
	s.want("the node is cordoned again", s.happens(cordoned(node("a2", "a", 4))), "admit next in q")
	s.want("all work has ended on open nodes", s.happens(node("a2", "a", 4), gone("running"), gone("small"), gone("next")), "admit head in q")
}
