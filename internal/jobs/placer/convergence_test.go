package placer

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// jobPods is a job whose pods have fixed names, with the controllers that act on its pods: the one that
// creates them, the placer and the nodes.
type jobPods struct {
	places podspec.Places
	size   int32
	pods   map[int32]*corev1.Pod
	// fill creates the missing pods.
	fill func(*jobPods) bool
}

// makeReplicas acts like the controllers of jobs with replicas.
func makeReplicas(g *jobPods) bool {
	roster := replicas.Observe("job", []replicas.Group{{Name: "w", Count: g.size}}, func(string, int32) replicas.Record { return replicas.Record{} }, g.list())
	seats := roster.AssignPlaces("w", g.places)
	for _, r := range roster.Missing() {
		made := pod(r.Name)
		if seat := seats[r.Index]; len(seat) > 0 {
			made.at(seat[0].Node())
		}
		g.pods[r.Index] = made.Pod
	}
	return len(roster.Missing()) > 0
}

// makeIndexes acts like the Job controller with a gated template.
func makeIndexes(g *jobPods) bool {
	changed := false
	for i := range g.size {
		if g.pods[i] == nil {
			g.pods[i], changed = pod(replicas.Name("job", "w", i)).rank(int(i)).Pod, true
		}
	}
	return changed
}

func (g *jobPods) list() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range g.size {
		if g.pods[i] != nil {
			out = append(out, g.pods[i])
		}
	}
	return out
}

// place runs the placer and returns what it did wrong.
func (g *jobPods) place() (changed bool, wrong string) {
	pods := g.list()
	if len(pods) == 0 {
		return false, ""
	}
	running, seats := map[string]int32{}, map[string]int32{}
	for _, p := range g.places {
		seats[p.Node()] += p.Count
	}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			running[p.Spec.NodeName]++
		}
	}
	give, misplaced := podSetOf(g.places, nil, pods).assign(pods, sameNames{})
	for _, p := range misplaced {
		if node := p.Spec.NodeName; p.Status.Phase == corev1.PodRunning {
			if running[node]--; running[node] < seats[node] {
				return true, "a running pod is deleted on a place that is kept: " + p.Name + " on " + node
			}
		}
		podBuilder{p}.terminating()
	}
	for _, p := range give {
		podBuilder{p.pod}.at(p.place.Node())
	}
	return len(give)+len(misplaced) > 0, ""
}

// live lets nodes start their pods and end terminating ones.
func (g *jobPods) live(some func() bool) (changed bool) {
	for i := range g.size {
		switch p := g.pods[i]; {
		case p == nil || !some():
		case p.DeletionTimestamp != nil:
			delete(g.pods, i)
			changed = true
		case !gated(p) && p.Status.Phase != corev1.PodRunning:
			p.Spec.NodeName, p.Status.Phase = p.Spec.NodeSelector[corev1.LabelHostname], corev1.PodRunning
			changed = true
		}
	}
	return changed
}

// drawJob draws pods in any state, each at a place that it may have been given before.
func drawJob(t *rapid.T, fill func(*jobPods) bool, nodes []string) *jobPods {
	g := &jobPods{size: 2 * int32(rapid.IntRange(1, 4).Draw(t, "half")), pods: map[int32]*corev1.Pod{}, fill: fill}
	var before []string
	for range g.size {
		before = append(before, rapid.SampledFrom(nodes).Draw(t, "before"))
	}
	for _, was := range before {
		if rapid.IntRange(0, 3).Draw(t, "moved") == 0 {
			was = rapid.SampledFrom(nodes).Draw(t, "to")
		}
		g.places = append(g.places, on(was, 1))
	}
	fill(g)
	for i, p := range g.list() {
		here := podBuilder{p}
		switch state := rapid.IntRange(0, 4).Draw(t, "state"); state {
		case 0:
			delete(g.pods, int32(i))
		case 1:
			here.at(before[i])
		case 2, 3, 4:
			here.at(before[i]).bound(before[i]).Status.Phase = corev1.PodRunning
			if state == 4 {
				here.terminating()
			}
		}
	}
	return g
}

func TestControllersConvergeWithEveryPodAtAPlace(t *testing.T) {
	for name, fill := range map[string]func(*jobPods) bool{"replicas": makeReplicas, "indexes": makeIndexes} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g := drawJob(t, fill, []string{"a", "b", "c"})
				some := func() bool { return rapid.Bool().Draw(t, "now") }
				for range 20 {
					var wrong string
					switch rapid.IntRange(0, 2).Draw(t, "who") {
					case 0:
						g.fill(g)
					case 1:
						_, wrong = g.place()
					case 2:
						g.live(some)
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

// converge runs all controllers until nothing changes any more.
func (g *jobPods) converge(t *rapid.T) {
	always := func() bool { return true }
	for range 10 * g.size {
		changed, wrong := g.place()
		if wrong != "" {
			t.Fatal(wrong)
		}
		if made, lived := g.fill(g), g.live(always); changed || made || lived {
			continue
		}
		there := map[string]int32{}
		for _, p := range g.list() {
			there[p.Spec.NodeName]++
		}
		for _, p := range g.places {
			there[p.Node()] -= p.Count
		}
		for node, more := range there {
			if more != 0 {
				t.Fatalf("node %s has %d more pods than places", node, more)
			}
		}
		return
	}
	t.Fatal(fmt.Sprint("no convergence: ", g.places))
}
