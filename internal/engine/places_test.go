package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

const rack = "example.com/rack"

// onNodes declares the flavor default, whose pods are placed by racks and nodes.
var onNodes = []Event{
	FlavorSet{Flavor{Name: "default", Topology: "racks"}},
	TopologySet{place.Topology{Name: "racks", Levels: []string{rack, place.Hostname}}},
}

// node returns a node of a rack with this amount of cpu.
func node(name, of string, cpu int64) NodeSet {
	return NodeSet{place.Node{Name: name, Labels: map[string]string{rack: of, place.Hostname: name},
		Allocatable: map[string]int64{"cpu": cpu, place.Pods: 10}}}
}

// failed and cordoned return the node in that state.
func failed(n NodeSet) NodeSet   { n.Failed = true; return n }
func cordoned(n NodeSet) NodeSet { n.Cordoned = true; return n }

// within requires all pods of the job to be in one rack.
func within(w WorkloadSet) WorkloadSet {
	w.PodSets = slices.Clone(w.PodSets)
	w.PodSets[0].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
	return w
}

// pod returns the n-th pod of a job, bound to a node; of no job if job is "".
func pod(job string, n int, on string, cpu int64) PodBound {
	p := place.Pod{Key: Key{Namespace: "ns", Name: fmt.Sprintf("%s-%d", job, n)}, Node: on, Requests: map[string]int64{"cpu": cpu}}
	if job != "" {
		p.Workload, p.PodSet = Key{Namespace: "ns", Name: job}, "main"
	}
	return PodBound{p}
}

// podGone returns the event that the n-th pod of the job is gone.
func podGone(job string, n int) PodGone {
	return PodGone{Key{Namespace: "ns", Name: fmt.Sprintf("%s-%d", job, n)}}
}

// places returns the nodes of the job's pods, as in n1:2 n2:1.
func (s *scene) places(name string) (out []string) {
	a := s.engine.Holds(Key{Namespace: "ns", Name: name})
	if a == nil {
		return nil
	}
	for _, ps := range a.PodSets {
		for _, p := range ps.Places {
			out = append(out, fmt.Sprintf("%s:%d", p.Node, p.Count))
		}
	}
	slices.Sort(out)
	return out
}

// wantPlaces compares the nodes of the job's pods.
func (s *scene) wantPlaces(name string, want ...string) {
	s.Helper()
	if got := s.places(name); !slices.Equal(got, want) {
		s.Errorf("places of %s = %q, want %q", name, got, want)
	}
}

// cluster returns a scene with a queue of ample quota and four nodes of 4 cpu in two racks.
func cluster(t *testing.T, more ...Event) *scene {
	return newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"),
		node("a1", "a", 4), node("a2", "a", 4), node("b1", "b", 4), node("b2", "b", 4)}, more)...)
}

func TestGangGetsPlacesForAllItsPods(t *testing.T) {
	s := cluster(t)
	s.want("the job arrives", s.happens(within(job("gang", "q", 2, 4, 0, 0))), "admit gang in q")
	if got := s.places("gang"); !slices.Equal(got, []string{"a1:1", "a2:1"}) && !slices.Equal(got, []string{"b1:1", "b2:1"}) {
		t.Errorf("places of gang = %q, want both nodes of one rack", got)
	}
	s.want("a job without a topology request arrives", s.happens(job("any", "q", 1, 4, 0, 1)), "admit any in q")
	s.want("a gang that needs a free rack arrives", s.happens(within(job("other", "q", 2, 4, 0, 2))), "other waits: TopologyPlacementFailed")
	s.want("one of the jobs ends", s.happens(gone("any")), "admit other in q")
}

// TestWhatNoLongerWaitsForPlacesIsForgotten: on full nodes nothing may be released for weeks, while users submit jobs and
// delete them again.
func TestWhatNoLongerWaitsForPlacesIsForgotten(t *testing.T) {
	s := cluster(t)
	for size := range int64(3) {
		s.want("a job arrives", s.happens(job("large", "q", 1, 5+size, 0, 0)), "large waits: ExceedsNodes")
		s.happens(gone("large"))
	}
	if left := s.engine.blockedByFlavor["default"]; len(left) != 0 {
		t.Errorf("%d classes are kept, want none", len(left))
	}
}

// TestADeletedFlavorIsForgotten, also by what waited for places in it.
func TestADeletedFlavorIsForgotten(t *testing.T) {
	s := cluster(t)
	s.want("a job arrives", s.happens(job("large", "q", 1, 5, 0, 0)), "large waits: ExceedsNodes")
	s.want("the flavor is deleted", s.happens(FlavorDeleted{"default"}), "large waits: NoMatchingFlavor")
	if left := s.engine.blockedByFlavor; len(left) != 0 {
		t.Errorf("%d flavors are kept, want none", len(left))
	}
}

// TestTwoGangsThatFitAloneButNotTogether: two gangs that fit only one at a time run one after the other; never do parts
// of both run.
func TestTwoGangsThatFitAloneButNotTogether(t *testing.T) {
	s := cluster(t)
	s.want("both arrive", s.happens(job("first", "q", 3, 4, 0, 0), job("second", "q", 3, 4, 0, 1)), "admit first in q", "second waits: TopologyPlacementFailed")
	if got := s.places("second"); got != nil {
		t.Errorf("places of second = %q, want none", got)
	}
	for n, on := range []string{"a1", "a2", "b1"} {
		s.want("its pods start", s.happens(pod("first", n, on, 4)))
	}
	s.want("the first is deleted and its pods still run", s.happens(gone("first")), "second waits: WaitingForPreemptedWorkloads")
	s.want("the first of its pods is gone", s.happens(podGone("first", 0)))
	s.want("the second of its pods is gone", s.happens(podGone("first", 1)), "admit second in q")
}

func TestPodsOfOthersCount(t *testing.T) {
	s := cluster(t, pod("", 0, "a1", 1), pod("", 1, "b1", 1))
	s.want("no rack is free", s.happens(within(job("gang", "q", 2, 4, 0, 0))), "gang waits: TopologyPlacementFailed")
	s.want("a foreign pod is gone", s.happens(podGone("", 1)), "admit gang in q")
	s.wantPlaces("gang", "b1:1", "b2:1")
}

func TestExistingPodIsNotCountedTwice(t *testing.T) {
	s := cluster(t)
	s.happens(within(job("gang", "q", 2, 2, 0, 0)))
	at := s.places("gang")
	if len(at) != 1 {
		t.Fatalf("places of the gang = %q, want one node", at)
	}
	s.happens(pod("gang", 0, at[0][:2], 2), pod("gang", 1, at[0][:2], 2))
	s.want("a job for the free capacity arrives", s.happens(job("rest", "q", 3, 4, 0, 1)), "admit rest in q")
	s.want("a job for more than that arrives", s.happens(job("more", "q", 1, 1, 0, 2)), "more waits: TopologyPlacementFailed")
}

func TestFailedNodeIsReplacedInTheSameRack(t *testing.T) {
	s := cluster(t, node("a3", "a", 4))
	s.happens(within(job("gang", "q", 2, 4, 0, 0)))
	s.wantPlaces("gang", "b1:1", "b2:1") // in the rack with the least free capacity
	s.happens(gone("gang"), node("b3", "b", 4), cordoned(node("a3", "a", 4)), cordoned(node("a2", "a", 4)))
	s.happens(within(job("run", "q", 2, 4, 0, 1)))
	at := s.places("run")
	spare := map[string]string{"b1": "b3", "b2": "b3", "b3": "b2"}
	if slices.Contains(at, "b1:1") && slices.Contains(at, "b3:1") {
		spare["b1"], spare["b3"] = "b2", "b2"
	}
	s.happens(pod("run", 0, at[0][:2], 4), pod("run", 1, at[1][:2], 4))
	s.want("a node fails", s.happens(failed(node(at[0][:2], "b", 4))), "replace run")
	if got := s.places("run"); !slices.Contains(got, at[1]) || slices.Contains(got, at[0]) {
		t.Errorf("places of run were %q and are %q, want only the failed node replaced", at, got)
	}
	s.want("a later workload arrives", s.happens(within(job("next", "q", 2, 4, 0, 2))), "next waits: TopologyPlacementFailed")
}

func TestGangWithoutPodsIsPlacedAgainInOneDomain(t *testing.T) {
	s := cluster(t)
	s.happens(within(job("gang", "q", 2, 4, 0, 0)))
	at := s.places("gang")
	s.want("a node moves to another rack", s.happens(node(at[0][:2], "c", 4)), "replace gang")
	other := map[string][]string{"a": {"b1:1", "b2:1"}, "b": {"a1:1", "a2:1"}}[at[0][:1]]
	s.wantPlaces("gang", other...)
	s.happens(pod("gang", 0, other[0][:2], 4))
	s.want("a node with a pod moves to another rack", s.happens(node(other[0][:2], "d", 4)))
}

// TestMostUrgentGangIsRepairedFirst: of two gangs that lost their nodes, the one of higher priority gets the capacity
// that is left, whatever their names.
func TestMostUrgentGangIsRepairedFirst(t *testing.T) {
	for _, names := range [][2]string{{"a", "z"}, {"z", "a"}} {
		urgent, other := names[0], names[1]
		s := cluster(t, pod("", 0, "b2", 4))
		s.want("both arrive", s.happens(job(urgent, "q", 1, 4, 10, 0), job(other, "q", 1, 4, 0, 1)), "admit "+urgent+" in q", "admit "+other+" in q")
		lost := []Event{NodeDeleted{s.places(urgent)[0][:2]}, NodeDeleted{s.places(other)[0][:2]}}
		s.want("their nodes are deleted and one is added", s.happens(lost...), "replace "+urgent, "evict "+other+": NodeFailures")
	}
}

func TestGangThatCannotBeRepairedIsEvictedAndComesFirst(t *testing.T) {
	s := cluster(t)
	s.happens(within(job("gang", "q", 2, 4, 0, 5)))
	s.want("an earlier workload arrives", s.happens(job("waits", "q", 3, 4, 0, 0)), "waits waits: TopologyPlacementFailed")
	at := s.places("gang")
	s.happens(pod("gang", 1, at[1][:2], 4))
	s.want("a node is deleted that its rack cannot replace", s.happens(NodeDeleted{at[0][:2]}), "evict gang: NodeFailures")
	s.want("its pods are gone", s.happens(s.changed("gang", func(w *Workload) {
		w.Admission, w.Admitted, w.Evicted, w.LostNodes = nil, false, false, true
	})), "admit gang in q")
}

func TestForeignPodThatTakesAPlaceMovesIt(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 2, 3, 0, 0))
	at := s.places("gang")
	s.want("a foreign pod is bound to its place", s.happens(pod("", 0, at[0][:2], 3)), "replace gang")
	if slices.Contains(s.places("gang"), at[0]) {
		t.Errorf("places of gang = %q, want others than the occupied one", s.places("gang"))
	}
}

func TestCordonMovesThePlacesOfPodsToCome(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 2, 4, 0, 0))
	at := s.places("gang")
	s.happens(pod("gang", 0, at[0][:2], 4))
	s.want("a node with a pod is cordoned", s.happens(cordoned(node(at[0][:2], at[0][:1], 4))))
	s.want("a node without a pod is cordoned", s.happens(cordoned(node(at[1][:2], at[1][:1], 4))), "replace gang")
	if got := s.places("gang"); !slices.Contains(got, at[0]) || slices.Contains(got, at[1]) {
		t.Errorf("places of gang were %q and are %q, want only the cordoned node without a pod replaced", at, got)
	}
}

// TestCordonUnderAGangThatEnds: all nodes of a gang are cordoned, and there are no other places. Its ended pods need
// none; only a pod that would have to be created again makes it lose its places.
func TestCordonUnderAGangThatEnds(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 2, 4, 0, 0))
	at := s.places("gang")
	var cordons []Event
	for n := range 2 {
		s.happens(pod("gang", n, at[n][:2], 4))
	}
	for _, name := range nodeNames {
		cordons = append(cordons, cordoned(node(name, name[:1], 4)))
	}
	s.want("all nodes are cordoned", s.happens(cordons...))
	first := podGone("gang", 0).Key
	s.want("one pod has ended", s.happens(PodEnded{Key: first, Of: place.PodSetKey{Workload: Key{Namespace: "ns", Name: "gang"}, PodSet: "main"}}))
	s.want("the ended pod is deleted", s.happens(PodGone{first}), "evict gang: NodeFailures")
}

func TestNodeThatTheSchedulerRefusesIsAvoided(t *testing.T) {
	s := cluster(t)
	s.happens(job("one", "q", 1, 4, 0, 0))
	at := s.places("one")
	s.want("kube-scheduler reports the pod unschedulable", s.happens(PodUnschedulable{Workload: Key{Namespace: "ns", Name: "one"}, Node: at[0][:2]}), "replace one")
	if got := s.places("one"); slices.Equal(got, at) {
		t.Errorf("places of one = %q, want another node", got)
	}
}

func TestPreemptionFreesNodes(t *testing.T) {
	q := evicting(queueOf("q", "", 1000), lower)
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("a2", "a", 4), node("b1", "b", 4), node("b2", "b", 4)})...)
	s.happens(job("low1", "q", 1, 4, 0, 0))
	s.happens(job("low2", "q", 1, 4, 0, 1))
	s.now = s.now.Add(time.Second)
	s.happens(job("low3", "q", 1, 4, 0, 2))
	var lows []string
	for _, low := range []string{"low1", "low2", "low3"} {
		at := s.places(low)
		lows = append(lows, at...)
		s.happens(pod(low, 0, at[0][:2], 4))
	}
	// One node is free: a rack that contains it needs only one victim.
	got := s.happens(within(job("high", "q", 2, 4, 2, 3)))
	if len(got) != 2 || got[1] != "high waits: WaitingForPreemptedWorkloads" {
		t.Fatalf("low pods are on %q: got decisions %q, want one eviction", lows, got)
	}
	var victim string
	fmt.Sscanf(got[0], "evict %s for", &victim)
	s.want("a workload arrives that would fit", s.happens(job("thief", "q", 1, 1, 0, 4)), "thief waits: TopologyPlacementFailed")
	s.want("the victim's quota is released and its pod remains", s.happens(s.stopped(victim)), victim+" waits: TopologyPlacementFailed")
	s.want("the victim's pod is gone", s.happens(podGone(victim, 0)), "admit high in q")
}

func TestHeadByResourceBlocksRequestsForWhatNodesLack(t *testing.T) {
	q := queueOf("q", "", 1000)
	q.Strategy = ByResource
	gpus := node("g1", "a", 4)
	gpus.Allocatable["gpu"] = 2
	withGPU := func(w WorkloadSet, gpu int64) WorkloadSet {
		w.PodSets[0].OfNode = map[string]int64{"cpu": 1, "gpu": gpu}
		return w
	}
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), gpus, node("a1", "a", 4)})...)
	s.happens(withGPU(job("runs", "q", 1, 1, 0, 0), 1))
	s.want("a head is short of gpu", s.happens(withGPU(job("head", "q", 1, 1, 0, 1), 2)), "head waits: TopologyPlacementFailed")
	s.want("a workload that requests gpu arrives", s.happens(withGPU(job("small", "q", 1, 1, 0, 2), 1)), "small waits: WaitingForQuota")
	s.want("a workload does not fit the other flavor", s.happens(job("cpu", "q", 1, 1, 0, 3)), "admit cpu in q")
	s.want("a head that never fits arrives", s.happens(gone("head"), withGPU(job("never", "q", 1, 1, 0, 1), 3)), "admit small in q", "never waits: ExceedsNodes")
}

func TestOnDemandWorkloadThatNoNodeCouldHoldIsAdmittedByQuotaAlone(t *testing.T) {
	q := queueOf("q", "", 1000)
	q.OnDemand = true
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4)})...)
	s.want("a job arrives that no node can hold", s.happens(job("large", "q", 1, 8, 0, 0)), "admit large in q")
	s.wantPlaces("large")
	s.want("a node is large enough", s.happens(job("small", "q", 1, 4, 0, 1)), "admit small in q")
	s.wantPlaces("small", "a1:1")
	s.want("a node is large enough but in use", s.happens(job("later", "q", 1, 4, 0, 2)), "later waits: TopologyPlacementFailed")
	s.want("a node is added with the pod of the first", s.happens(node("new", "a", 8), pod("large", 0, "new", 8)))
	s.wantPlaces("large")
	s.want("capacity is released", s.happens(gone("large"), podGone("large", 0)), "admit later in q")
}

func TestFlavorWithoutCapacityIsSkipped(t *testing.T) {
	q := queueOf("q", "", 1000)
	q.Groups[0].Flavors = []string{"default", "other"}
	q.Quotas = quotasFor(1000, "default", "other")
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), FlavorSet{Flavor{Name: "other"}}, node("a1", "a", 4)})...)
	s.happens(job("first", "q", 1, 4, 0, 0), job("second", "q", 1, 4, 0, 1))
	s.wantPlaces("first", "a1:1")
	s.wantPlaces("second")
	if got := s.engine.Holds(Key{Namespace: "ns", Name: "second"}); got == nil || got.PodSets[0].Flavors["cpu"] != "other" {
		t.Errorf("second was given %+v, want flavor other", got)
	}
	s.want("a job that requests a topology arrives", s.happens(within(job("near", "q", 1, 4, 0, 2))), "near waits: TopologyPlacementFailed")
}

// TestNodesMatchAllFlavorsOfAPod: pods that get cpu and gpu from different flavors are placed only on nodes of both, whose
// taints either flavor may tolerate.
func TestNodesMatchAllFlavorsOfAPod(t *testing.T) {
	q := queueOf("q", "", 1000)
	q.Groups = append(q.Groups, flavor.Group{Resources: []string{"gpu"}, Flavors: []string{"gpus"}})
	q.Quotas[quota.FlavorResource{Flavor: "gpus", Resource: "gpu"}] = quota.Limits{Nominal: 8}
	withGPUs := func(n NodeSet, kind string) NodeSet {
		n.Labels["kind"], n.Allocatable["gpu"] = kind, 1
		n.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		return n
	}
	gpus := Flavor{Name: "gpus", NodeLabels: map[string]string{"kind": "new"}, Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), FlavorSet{gpus}, withGPUs(node("a1", "a", 4), "old"), withGPUs(node("b1", "b", 4), "new")})...)
	training := job("training", "q", 1, 1, 0, 0)
	training.PodSets[0].PerPod["gpu"] = 1
	s.want("a job for cpu and gpu arrives", s.happens(training), "admit training in q")
	s.wantPlaces("training", "b1:1")
	training.Key.Name, training.UID = "next", "next-uid"
	s.want("another one arrives", s.happens(training), "next waits: TopologyPlacementFailed")
}

func TestPartialAdmissionOnNodes(t *testing.T) {
	s := cluster(t)
	s.want("a gang that can start smaller arrives", s.happens(within(smaller(job("gang", "q", 5, 4, 0, 0), 1))), "admit gang in q, 2 of 5 main")
}

func TestFlavorWithMissingTopologyIsNotUsed(t *testing.T) {
	s := newScene(t, Options{}, onNodes[0], queueOf("q", "", 1000), localOf("q"), node("a1", "a", 4))
	s.want("the job arrives", s.happens(job("one", "q", 1, 4, 0, 0)), "one waits: NoMatchingFlavor")
	s.want("the topology is created", s.happens(onNodes[1]), "admit one in q")
	s.want("a job requests a level that does not exist", s.happens(func() Event {
		w := within(job("two", "q", 1, 0, 0, 1))
		w.PodSets[0].Topology.Level = "example.com/row"
		return w
	}()), "two waits: NoMatchingFlavor")
	s.want("a job requests one node, of a topology of racks alone", s.happens(TopologySet{place.Topology{Name: "racks", Levels: []string{rack}}}, func() Event {
		w := within(job("three", "q", 1, 0, 0, 2))
		w.PodSets[0].Topology.Level = place.Hostname
		return w
	}()), "admit three in q", "two waits: NoMatchingFlavor")
}

func TestExclusiveRacks(t *testing.T) {
	s := cluster(t)
	alone := func(w WorkloadSet) WorkloadSet { w.PodSets[0].ExclusiveKey = rack; return w }
	s.want("two exclusive gangs arrive", s.happens(alone(within(job("one", "q", 1, 1, 0, 0))), alone(within(job("two", "q", 1, 1, 0, 1)))), "admit one in q", "admit two in q")
	if a, b := s.places("one"), s.places("two"); a[0][:1] == b[0][:1] {
		t.Errorf("places are %q and %q, want different racks", a, b)
	}
	s.want("a third exclusive gang arrives", s.happens(alone(within(job("three", "q", 1, 1, 0, 2)))), "three waits: TopologyPlacementFailed")
	s.want("a job that shares arrives", s.happens(job("shares", "q", 1, 1, 0, 3)), "admit shares in q")
	s.want("one of the jobs ends", s.happens(gone("one")), "admit three in q")
}

// Any user may write on a pod that it is exclusive by any label.
func TestAPodOfNoJobKeepsNoExclusiveGangOff(t *testing.T) {
	for name, of := range map[string]string{"bare": "", "of a job that does not exist": "none", "of a job that shares": "shares"} {
		s := cluster(t)
		s.happens(job("shares", "q", 1, 1, 0, 0))
		claims := pod(of, 0, "a1", 1)
		claims.ExclusiveKey = "block"
		gang := within(job("gang", "q", 1, 1, 0, 1))
		gang.PodSets[0].ExclusiveKey = rack
		s.want("an exclusive gang arrives where a pod "+name+" claims all nodes", s.happens(claims, gang), "admit gang in q")
	}
}

func TestReclaimingNeedsNodeCapacity(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{
		evicting(queueOf("q", "lab", 8), preempt.Policy{Reclaim: preempt.Any}), queueOf("p", "lab", 0), localOf("q"), localOf("p"),
		node("a1", "a", 4), node("b1", "b", 4)})...)
	s.happens(job("borrows1", "p", 1, 4, 0, 0))
	s.happens(job("borrows2", "p", 1, 4, 0, 1))
	s.want("the owner of the quota arrives", s.happens(job("owner", "q", 2, 4, 0, 2)), "evict borrows1 for owner: reclaimed", "evict borrows2 for owner: reclaimed", "owner waits: WaitingForPreemptedWorkloads")
	s.want("the pods of one borrower are gone", s.happens(s.stopped("borrows1")), "borrows1 waits: WaitingForQuota")
	s.want("the pods of both are gone", s.happens(s.stopped("borrows2")), "admit owner in q", "borrows2 waits: WaitingForQuota")
}

func TestTaintInvalidatesPlaces(t *testing.T) {
	s := cluster(t)
	tainted := node("a1", "a", 4)
	tainted.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoSchedule}}
	s.happens(tainted)
	s.want("a gang that needs all nodes arrives", s.happens(job("gang", "q", 4, 4, 0, 0)), "gang waits: ExceedsNodes")
	s.want("the taint is removed", s.happens(node("a1", "a", 4)), "admit gang in q")
}

func TestReplacementIsRetriedIfNotWritten(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 2, 4, 0, 0))
	gang := s.jobs["gang"]
	at := s.places("gang")
	s.engine.Apply(NodeDeleted{at[0][:2]})
	got := decideAll(s.engine, s.now)
	if len(got) != 1 || got[0].Replace == nil {
		t.Fatalf("got decisions %+v, want a replacement", got)
	}
	s.engine.Apply(gang) // a stale event
	if s.wantPlaces("gang", s.places("gang")...); slices.Equal(s.places("gang"), at) {
		t.Errorf("places after a stale event = %q, want the new ones", at)
	}
	s.engine.Apply(Failed{Key: gang.Key, UID: gang.UID})
	s.want("the write fails", s.happens(), "replace gang")
	if slices.Contains(s.places("gang"), at[0]) {
		t.Errorf("places of gang = %q, want others than the failed one", s.places("gang"))
	}
}

// quotasFor returns quotas of this amount of cpu for each of the flavors.
func quotasFor(cpu int64, flavors ...string) quota.Quotas {
	out := quota.Quotas{}
	for _, name := range flavors {
		out[quota.FlavorResource{Flavor: name, Resource: "cpu"}] = quota.Limits{Nominal: cpu, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	}
	return out
}

func TestMissingNodeCapacityIsExplained(t *testing.T) {
	s := cluster(t, cordoned(node("b2", "b", 4)))
	s.happens(job("runs", "q", 1, 1, 0, 0), within(job("gang", "q", 3, 3, 0, 1)))
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "gang"})
	if x.Code != "ExceedsNodes" {
		t.Errorf("reason %s: %s, want ExceedsNodes", x.Code, x.Message)
	}
	said := x.PodSets[0].Flavors[0].Nodes
	if said == nil || said.Fits || len(said.PodSets) != 1 || said.PodSets[0].Count != 3 || said.PodSets[0].Fits != 2 || said.PodSets[0].Nodes != 4 {
		t.Fatalf("explanation of the nodes = %+v, want 2 of 3 pods on 4 nodes", said)
	}
	if best := said.PodSets[0].Best; best == nil || !slices.Equal(best.Values, []string{"a"}) {
		t.Errorf("best domain = %+v, want rack a", best)
	}
}

func TestMissingNodeCapacityForAllPodSetsIsExplained(t *testing.T) {
	s := cluster(t)
	gang := within(job("gang", "q", 2, 4, 0, 0))
	gang.PodSets[0].Topology.Group = "g"
	leader := gang.PodSets[0]
	leader.Name, leader.Count, leader.PerPod = "leader", 1, map[string]int64{"cpu": 1}
	gang.PodSets = append(gang.PodSets, leader)
	s.want("a gang arrives whose pod sets fit a rack each but not together", s.happens(gang), "gang waits: ExceedsNodes")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "gang"})
	if x.Together == nil || len(x.Together.PodSets) != 2 || !x.Together.PodSets[0].Together {
		t.Fatalf("explanation of both pod sets together = %+v", x.Together)
	}
	if want := `pod sets "main", "leader" within one example.com/rack preferred, not required`; x.Together.Relaxation != want {
		t.Errorf("relaxation = %q, want %q", x.Together.Relaxation, want)
	}
	gang.PodSets[0].Count = 3
	s.want("one of its pod sets no longer fits alone", s.happens(gang))
	x, _ = s.engine.Explain(Key{Namespace: "ns", Name: "gang"})
	if said := x.PodSets[0].Flavors[0].Nodes; said == nil || said.Relaxation != `pod sets "main", "leader" within one example.com/rack preferred, not required` {
		t.Errorf("explanation of the pod set alone = %+v, want its relaxation", said)
	}
	s.happens(within(job("large", "q", 3, 4, 0, 1)))
	if x, _ = s.engine.Explain(Key{Namespace: "ns", Name: "large"}); x.Together != nil {
		t.Errorf("explanation of a single pod set has Together = %+v, want none", x.Together)
	}
}

func TestWaitForNewNodesIsExplained(t *testing.T) {
	q := queueOf("q", "", 1000)
	q.OnDemand = true
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4)})...)
	s.happens(job("large", "q", 1, 8, 0, 0), job("small", "q", 1, 4, 0, 0))
	for name, want := range map[string]bool{"large": true, "small": false} {
		if x, _ := s.engine.Explain(Key{Namespace: "ns", Name: name}); x.AwaitsNodes != want {
			t.Errorf("%s awaits nodes = %v, want %v", name, x.AwaitsNodes, want)
		}
	}
	for what, ev := range map[string]Event{"it is ready": s.changed("large", func(w *Workload) { w.Ready = true }), "its pod has one": pod("large", 0, "new", 8)} {
		s.happens(s.changed("large", func(w *Workload) { w.Ready = false }), podGone("large", 0), ev)
		if x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "large"}); x.AwaitsNodes {
			t.Errorf("large awaits nodes although %s", what)
		}
	}
}
