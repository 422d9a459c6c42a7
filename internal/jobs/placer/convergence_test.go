package placer

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// jobPods holds the pods of a job, which have fixed names, and simulates what acts on them: the controller that creates
// them, the placer and the nodes.
type jobPods struct {
	places podspec.Places
	size   int32
	// slice is the size of the slices, 0 if there are none.
	slice int32
	pods  map[int32]*corev1.Pod
	// fill creates the missing pods, and reports whether there were any.
	fill func(*jobPods) bool
}

// createReplicas creates missing pods like the controllers of jobs with replicas, which assign places themselves.
func createReplicas(g *jobPods) bool {
	roster := replicas.Observe("job", []replicas.Group{{Name: "w", Count: g.size}},
		func(string, int32) replicas.Record { return replicas.Record{} }, g.list())
	places := roster.AssignPlaces("w", g.places, g.slice)
	for _, r := range roster.Missing() {
		created := pod(r.Name)
		created.Labels[tensorstack.ReplicaLabel] = r.Name
		if place := places[r.Index]; len(place) > 0 {
			created.at(place[0].Node())
		}
		g.pods[r.Index] = created.Pod
	}
	return len(roster.Missing()) > 0
}

// createIndexes creates missing pods like the Job controller does from a gated template.
func createIndexes(g *jobPods) bool {
	changed := false
	for i := range g.size {
		if g.pods[i] == nil {
			g.pods[i], changed = pod(replicas.Name("job", "w", i)).rank(int(i)).Pod, true
		}
	}
	return changed
}

// list returns the pods in the order of their indexes.
func (j *jobPods) list() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range j.size {
		if j.pods[i] != nil {
			out = append(out, j.pods[i])
		}
	}
	return out
}

// place runs the placer. It returns whether anything changed, and which of its deletions was wrong; "" for none.
func (j *jobPods) place() (changed bool, wrong string) {
	pods := j.list()
	if len(pods) == 0 {
		return false, ""
	}
	running, places := map[string]int32{}, map[string]int32{}
	for _, p := range j.places {
		places[p.Node()] += p.Count
	}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			running[p.Spec.NodeName]++
		}
	}
	give, misplaced := podSetOf(j.places.Ranking(), sliced(j.slice), pods).assign(pods, sameNames{})
	for _, p := range misplaced {
		if node := p.Spec.NodeName; p.Status.Phase == corev1.PodRunning && j.belongs(p, node) {
			if running[node]--; running[node] < places[node] {
				return true, "a running pod is deleted though its node has a place for it: " + p.Name + " on " + node
			}
		}
		podBuilder{p}.terminating()
	}
	for _, p := range give {
		podBuilder{p.pod}.at(p.place.Node())
	}
	return len(give)+len(misplaced) > 0, ""
}

// belongs reports whether the slice of the pod has a place on the node.
func (j *jobPods) belongs(p *corev1.Pod, node string) bool {
	if j.slice == 0 {
		return true
	}
	rank, _ := podspec.IndexOf(p)
	first := rank / j.slice * j.slice
	return slices.ContainsFunc(j.places.Ranks(first, first+j.slice),
		func(at podspec.Place) bool { return at.Node() == node })
}

// runNodes starts pods that have a place and removes terminating ones, each if some returns true.
func (j *jobPods) runNodes(some func() bool) (changed bool) {
	for i := range j.size {
		switch p := j.pods[i]; {
		case p == nil || !some():
		case p.DeletionTimestamp != nil:
			delete(j.pods, i)
			changed = true
		case !gated(p) && p.Status.Phase != corev1.PodRunning:
			p.Spec.NodeName, p.Status.Phase = p.Spec.NodeSelector[corev1.LabelHostname], corev1.PodRunning
			changed = true
		}
	}
	return changed
}

// drawJob returns a job with pods in random states, at places that they had before a random repair. near returns the
// node that a rank gets in place of one drawn for it; mixed means that the places of before do not need to be near.
func drawJob(t *rapid.T, fill func(*jobPods) bool, nodes []string, near func(rank int, node string) string,
	mixed bool) *jobPods {
	g := &jobPods{size: 2 * int32(rapid.IntRange(1, 4).Draw(t, "half")), pods: map[int32]*corev1.Pod{}, fill: fill}
	var before []string
	for rank := range int(g.size) {
		node := rapid.SampledFrom(nodes).Draw(t, "before")
		if !mixed {
			node = near(rank, node)
		}
		before = append(before, node)
	}
	for rank, node := range before {
		if rapid.IntRange(0, 3).Draw(t, "moved") == 0 {
			node = rapid.SampledFrom(nodes).Draw(t, "to")
		}
		g.places = append(g.places, on(near(rank, node), 1))
	}
	fill(g)
	for i, p := range g.list() {
		b := podBuilder{p}
		switch state := rapid.IntRange(0, 4).Draw(t, "state"); state {
		case 0:
			delete(g.pods, int32(i))
		case 1:
			b.at(before[i])
		case 2, 3, 4:
			b.at(before[i]).bound(before[i]).Status.Phase = corev1.PodRunning
			if state == 4 {
				b.terminating()
			}
		}
	}
	return g
}

// TestControllersConvergeWithEveryPodAtAPlace: the placer and the controllers that create pods do not delete and create
// pods for ever, and delete no running pod that has a place.
func TestControllersConvergeWithEveryPodAtAPlace(t *testing.T) {
	for name, fill := range map[string]func(*jobPods) bool{"replicas": createReplicas, "indexes": createIndexes} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g := drawJob(t, fill, []string{"a", "b", "c"}, func(_ int, node string) string { return node }, false)
				some := func() bool { return rapid.Bool().Draw(t, "acts") }
				for range 20 {
					var wrong string
					switch rapid.IntRange(0, 2).Draw(t, "controller") {
					case 0:
						g.fill(g)
					case 1:
						_, wrong = g.place()
					case 2:
						g.runNodes(some)
					}
					if wrong != "" {
						t.Fatal(wrong)
					}
				}
				g.converge(t)
			})
		})
	}
}

// converge runs all controllers until nothing changes any more, and checks that as many pods are on each node as it has
// places.
func (j *jobPods) converge(t *rapid.T) {
	always := func() bool { return true }
	for range 10 * j.size {
		changed, wrong := j.place()
		if wrong != "" {
			t.Fatal(wrong)
		}
		if created, ran := j.fill(j), j.runNodes(always); changed || created || ran {
			continue
		}
		surplus := map[string]int32{}
		for _, p := range j.list() {
			surplus[p.Spec.NodeName]++
		}
		for _, p := range j.places {
			surplus[p.Node()] -= p.Count
		}
		for node, n := range surplus {
			if n != 0 {
				t.Fatalf("node %s has %d more pods than places", node, n)
			}
		}
		return
	}
	t.Fatalf("the controllers still act after %d turns; places %v", 10*j.size, j.places)
}
