package placer

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/podspec"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// on returns a place for this many pods on the node.
func on(node string, count int32) podspec.Place {
	return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
}

// podBuilder builds a pod, with a method for each part.
type podBuilder struct{ *corev1.Pod }

// pod returns a gated pod.
func pod(name string) podBuilder {
	return podBuilder{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}},
	}}
}

func (p podBuilder) rank(n int) podBuilder {
	p.Labels[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(n)
	return p
}

func (p podBuilder) group(n, of int) podBuilder {
	p.Labels[jobset.JobIndexKey], p.Labels[jobset.ReplicatedJobReplicas] = fmt.Sprint(n), fmt.Sprint(of)
	return p
}

// ranks sets the ranks of the pod's Job.
func (p podBuilder) ranks(ranks string) podBuilder {
	p.Annotations = map[string]string{muster.RanksAnnotation: ranks}
	return p
}

// at gives the pod a place on the node.
func (p podBuilder) at(node string) podBuilder {
	p.Spec.SchedulingGates, p.Spec.NodeSelector = nil, map[string]string{corev1.LabelHostname: node}
	return p
}

// bound binds the pod to the node, whatever its selector.
func (p podBuilder) bound(node string) podBuilder {
	p.Spec.SchedulingGates, p.Spec.NodeName = nil, node
	return p
}

func (p podBuilder) terminating() podBuilder {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
	p.Finalizers = []string{"example.com/kubelet"} // without one, a fake API server would delete it at once
	return p
}
func (p podBuilder) done() podBuilder { p.Status.Phase = corev1.PodSucceeded; return p }
func (p podBuilder) younger() podBuilder {
	p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Minute))
	return p
}

// sameNames are nodes whose hostnames are their names; all nodes exist.
type sameNames struct{}

func (sameNames) hostOf(node string) string { return node }

func (sameNames) exists(string) bool { return true }

func (sameNames) open(string) bool { return true }

// hosts are the hostnames of the existing nodes, by node.
type hosts map[string]string

func (h hosts) hostOf(node string) string { return h[node] }

func (h hosts) exists(host string) bool { return slices.Contains(slices.Collect(maps.Values(h)), host) }

func (h hosts) open(host string) bool { return h.exists(host) }

// assigned returns which of the pods get which places, and which are misplaced.
func assigned(places podspec.Places, request *kueue.PodSetTopologyRequest, pods ...podBuilder) []string {
	var list []*corev1.Pod
	for _, b := range pods {
		list = append(list, b.Pod)
	}
	return describe(podSetOf(places.Ranking(), request, list).assign(list, sameNames{}))
}

// describe returns the placements as "pod to node", sorted, and then the misplaced pods as "pod misplaced".
func describe(give []placement, misplaced []*corev1.Pod) (out []string) {
	for _, p := range give {
		out = append(out, p.pod.Name+" to "+p.place.Node())
	}
	slices.Sort(out)
	for _, p := range misplaced {
		out = append(out, p.Name+" misplaced")
	}
	return out
}

func TestAssign(t *testing.T) {
	two := podspec.Places{on("a", 2), on("b", 2)}
	slots := podspec.Places{on("a", 1), on("b", 1), on("a", 1), on("b", 1)}
	for name, tc := range map[string]struct {
		places  podspec.Places
		request *kueue.PodSetTopologyRequest
		pods    []podBuilder
		want    []string
	}{
		"pods with ranks": {two, nil,
			[]podBuilder{pod("p3").rank(3), pod("p1").rank(1), pod("p0").rank(0), pod("p2").rank(2)},
			[]string{"p0 to a", "p1 to a", "p2 to b", "p3 to b"}},
		"places of a node that are not consecutive": {slots, nil,
			[]podBuilder{pod("p0").rank(0), pod("p1").rank(1), pod("p2").rank(2), pod("p3").rank(3)},
			[]string{"p0 to a", "p1 to b", "p2 to a", "p3 to b"}},
		"pods without ranks": {two, nil, []podBuilder{pod("x"), pod("y"), pod("z").at("a")}, []string{"x to a", "y to b"}},
		"rank by another label": {two, &kueue.PodSetTopologyRequest{PodIndexLabel: ptr.To("index")},
			[]podBuilder{func() podBuilder { b := pod("x"); b.Labels["index"] = "2"; return b }()}, []string{"x to b"}},
		"rank by an annotation": {two, nil, []podBuilder{func() podBuilder {
			b := pod("x")
			b.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: "2"}
			return b
		}()}, []string{"x to b"}},
		"replacement of a terminating pod, which waits": {two, nil,
			[]podBuilder{pod("old").rank(2).at("b").terminating(), pod("other").rank(3).at("b"), pod("new").rank(2)}, nil},
		"replacement of a pod that has ended": {two, nil, []podBuilder{pod("old").rank(2).at("b").done(),
			pod("other").rank(3).at("b"), pod("new").rank(2)}, []string{"new to b"}},
		"place of the rank in use": {two, nil, []podBuilder{pod("x").at("b"), pod("y").at("b"), pod("p2").rank(2)},
			[]string{"p2 to a"}},
		"rank beyond the places": {two, nil,
			[]podBuilder{pod("p0").rank(0).done(), pod("p1").rank(1).at("a"), pod("p7").rank(7)}, []string{"p7 to a"}},
		"no free place": {two, nil,
			[]podBuilder{pod("w").at("a"), pod("x").at("a"), pod("y").at("b"), pod("z").at("b"), pod("p").rank(0)}, nil},
		"terminating pod": {two, nil, []podBuilder{pod("p0").rank(0).terminating()}, nil},
		"place without a pod rather than that of one that has succeeded": {two, nil,
			[]podBuilder{pod("x").at("a").done(), pod("y").at("a").done(), pod("z").at("b"), pod("new")}, []string{"new to b"}},
		"place without a pod rather than the last one of a node with a pod that has succeeded": {two, nil,
			[]podBuilder{pod("x").at("a").done(), pod("y").at("a"), pod("z").at("b"), pod("new")}, []string{"new to b"}},
		"the same, beside a terminating pod": {two, nil,
			[]podBuilder{pod("x").at("a").done(), pod("y").at("a").terminating(), pod("z").at("b"), pod("new")},
			[]string{"new to b"}},
		"place of a pod that has succeeded, for want of another": {two, nil,
			[]podBuilder{pod("x").at("a").done(), pod("y").at("b"), pod("z").at("b"), pod("new"), pod("newer")},
			[]string{"new to a", "newer to a"}},
		"groups": {two, nil, []podBuilder{pod("g1").group(1, 2), pod("g0").group(0, 2),
			pod("more").group(0, 2).at("a").younger(), pod("most").group(0, 2).younger()},
			[]string{"g0 to a", "g1 to b"}},
		"groups of the Workload's topology request": {two,
			&kueue.PodSetTopologyRequest{SubGroupIndexLabel: ptr.To("g"), SubGroupCount: ptr.To[int32](2)},
			[]podBuilder{func() podBuilder { b := pod("x").rank(0); b.Labels["g"] = "1"; return b }()}, []string{"x to b"}},
		"pods that state their ranks": {two, nil,
			[]podBuilder{pod("g1").group(1, 3).rank(0).ranks("0-1"), pod("g2").group(2, 3).rank(1).ranks("2-3")},
			[]string{"g1 to a", "g2 to b"}},
		"invalid ranks": {two, nil,
			[]podBuilder{pod("x").ranks("3-4"), pod("y").ranks("2"), pod("z").ranks("3-2")}, nil},
		"invalid group": {two, nil, []podBuilder{pod("x").group(0, 2), pod("g").group(7, 2)},
			[]string{"x to a"}},
		"pod without a place after a repair": {podspec.Places{on("a", 2), on("c", 2)}, nil,
			[]podBuilder{pod("p0").rank(0).at("a"), pod("p2").rank(2).at("b"), pod("p3").rank(3)},
			[]string{"p3 to c", "p2 misplaced"}},
		"bound pod without a place": {podspec.Places{on("a", 2)}, nil,
			[]podBuilder{pod("p").bound("b"), pod("q").bound("a")}, []string{"p misplaced"}},
		"terminating pod without a place": {podspec.Places{on("a", 2)}, nil,
			[]podBuilder{pod("p").bound("b").terminating()}, nil},
		"ended pod without a place": {podspec.Places{on("a", 2)}, nil, []podBuilder{pod("p").bound("b").done()}, nil},
		"pod without a node": {podspec.Places{on("a", 2)}, nil,
			[]podBuilder{func() podBuilder { b := pod("p"); b.Spec.SchedulingGates = nil; return b }()}, nil},
		"too many pods on a node, one of a rank elsewhere": {slots, nil,
			[]podBuilder{pod("p0").rank(0).at("a"), pod("p2").rank(2).at("a"), pod("p1").rank(1).at("a")},
			[]string{"p1 misplaced"}},
		"too many pods on a node, without ranks": {podspec.Places{on("a", 1), on("b", 1)}, nil,
			[]podBuilder{pod("x").at("a"), pod("y").at("a").younger()}, []string{"y misplaced"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, assigned(tc.places, tc.request, tc.pods...)); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPodOnADeletedNodeIsMisplacedOnceAllPlacesHaveNodes: the hostname of the deleted node, which may differ from its
// name, is not known any more. Once all places have nodes, the pod cannot be at one of them, and need not wait for the
// garbage collection of pods.
func TestAPodOnADeletedNodeIsMisplacedOnceAllPlacesHaveNodes(t *testing.T) {
	existing := hosts{"ip-1": "a", "ip-3": "c"}
	rack := podspec.Place{Domain: map[string]string{"rack": "r"}, Count: 2}
	for name, tc := range map[string]struct {
		places podspec.Places
		pod    podBuilder
		want   []string
	}{
		"all places have nodes": {podspec.Places{on("a", 1), on("c", 1)}, pod("p").bound("ip-2"),
			[]string{"p misplaced"}},
		"a place without a node":  {podspec.Places{on("a", 1), on("b", 1)}, pod("p").bound("ip-2"), nil},
		"places wider than nodes": {podspec.Places{rack}, pod("p").bound("ip-2"), nil},
		"terminating pod": {podspec.Places{on("a", 1), on("c", 1)},
			pod("p").bound("ip-2").terminating(), nil},
		"node exists": {podspec.Places{on("a", 1), on("c", 1)}, pod("p").bound("ip-3"), nil},
		"node selector with the lost hostname": {podspec.Places{on("a", 1), on("c", 1)}, pod("p").at("b").bound("ip-2"),
			[]string{"p misplaced"}},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []*corev1.Pod{tc.pod.Pod}
			if diff := cmp.Diff(tc.want, describe(podSetOf(tc.places.Ranking(), nil, pods).assign(pods, existing))); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPlaceOnANodeThatIsGoneIsTheLast: where pods have succeeded their places are not moved when the node is lost.
func TestAPlaceOnANodeThatIsGoneIsTheLast(t *testing.T) {
	pods := []*corev1.Pod{pod("x").Pod, pod("y").Pod, pod("z").Pod}
	give, misplaced := podSetOf(podspec.Places{on("gone", 2), on("a", 2)}.Ranking(), nil, pods).assign(pods,
		hosts{"ip-1": "a"})
	if diff := cmp.Diff([]string{"x to a", "y to a", "z to gone"}, describe(give, misplaced)); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
}

// TestPlacesWiderThanNodesAreInDoubtToo: another controller may assign racks, of which no node is the one.
func TestPlacesWiderThanNodesAreInDoubtToo(t *testing.T) {
	rack := func(name string) podspec.Place {
		return podspec.Place{Domain: map[string]string{"rack": name}, Count: 1}
	}
	succeeded := pod("x").at("").done()
	succeeded.Spec.NodeSelector = rack("r1").Domain
	pods := []*corev1.Pod{succeeded.Pod, pod("new").Pod}
	give, _ := podSetOf(podspec.Places{rack("r1"), rack("r2")}.Ranking(), nil, pods).assign(pods, hosts{})
	if len(give) != 1 || give[0].place.Domain["rack"] != "r2" {
		t.Errorf("assignments = %+v, want that of the new pod to the rack where none has succeeded", give)
	}
}

// TestPlacesAreAssignedOnceAndInTheEndToAllPods simulates a Job controller, kubelets, replaced nodes and an operator
// that may be killed between any two writes: no pod gets a place on a node whose places are all used, and in the end
// every pod has a place.
func TestPlacesAreAssignedOnceAndInTheEndToAllPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := podspec.Places{}
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			places = append(places, on(fmt.Sprintf("n%d", i), rapid.Int32Range(1, 3).Draw(t, "places")))
		}
		g := &gang{places: places, ranked: rapid.Bool().Draw(t, "ranked"),
			completions: int(places.Count()) + rapid.IntRange(0, 3).Draw(t, "more completions")}
		t.Repeat(map[string]func(*rapid.T){
			"":                        g.check,
			"the Job controller acts": func(*rapid.T) { g.control() },
			"one place is assigned": func(t *rapid.T) {
				give, misplaced := g.assign()
				if len(give) > 0 { // then the operator is killed
					g.place(t, give[rapid.IntRange(0, len(give)-1).Draw(t, "which")])
				}
				for _, pod := range misplaced {
					pod.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
				}
			},
			"a pod is deleted": func(t *rapid.T) {
				g.with(t, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) })
			},
			"a pod fails": func(t *rapid.T) {
				g.with(t, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			},
			"a deleted pod is removed": func(*rapid.T) { g.reap(1) },
			"a node is replaced": func(t *rapid.T) {
				i := rapid.IntRange(0, len(g.places)-1).Draw(t, "node")
				g.repairs++
				g.places = slices.Clone(g.places)
				g.places[i] = on(fmt.Sprintf("m%d", g.repairs), g.places[i].Count)
			},
		})
		for range 20 { // from now on nothing fails
			g.reap(len(g.pods))
			g.control()
			give, misplaced := g.assign()
			for _, pod := range misplaced {
				pod.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
			}
			for _, p := range give {
				g.place(t, p)
			}
			g.check(t)
		}
		for _, pod := range g.pods {
			if gated(pod) || pod.DeletionTimestamp != nil {
				t.Fatalf("%s is still gated or terminating", pod.Name)
			}
		}
		if int32(len(g.pods)) != places.Count() {
			t.Fatalf("there are %d live pods, want %d", len(g.pods), places.Count())
		}
	})
}

// gang holds the live pods of a Job.
type gang struct {
	places      podspec.Places
	ranked      bool
	completions int
	pods        []*corev1.Pod
	created     int
	repairs     int
}

// control acts as the Job controller: it replaces every pod that ended or was deleted.
func (g *gang) control() {
	g.pods = slices.DeleteFunc(g.pods, podspec.HasEnded)
	used := map[string]bool{}
	var stay int32
	for _, pod := range g.pods {
		if pod.DeletionTimestamp == nil {
			used[pod.Labels[batchv1.JobCompletionIndexAnnotation]] = true
			stay++
		}
	}
	for index := 0; stay < g.places.Count(); index++ {
		if used[fmt.Sprint(index)] && g.ranked {
			continue
		}
		b := pod(fmt.Sprintf("p%d", g.created))
		if g.ranked {
			b.rank(index % g.completions)
		}
		g.created++
		stay++
		g.pods = append(g.pods, b.Pod)
	}
}

func (g *gang) assign() ([]placement, []*corev1.Pod) {
	return podSetOf(g.places.Ranking(), nil, g.pods).assign(g.pods, sameNames{})
}

// place gives the pod its place, and checks that the pod was gated and that the place was free.
func (g *gang) place(t *rapid.T, p placement) {
	if !gated(p.pod) || p.pod.DeletionTimestamp != nil {
		t.Fatalf("%s gets a place though it is not gated, or terminating", p.pod.Name)
	}
	podBuilder{p.pod}.at(p.place.Node())
	live := 0
	for _, pod := range g.pods {
		if !gated(pod) && !podspec.HasEnded(pod) && pod.Spec.NodeSelector[corev1.LabelHostname] == p.place.Node() {
			live++
		}
	}
	var size int32
	for _, place := range g.places {
		if place.Node() == p.place.Node() {
			size += place.Count
		}
	}
	if live > int(size) {
		t.Fatalf("%s is pod number %d on %s, which has %d places", p.pod.Name, live, p.place.Node(), size)
	}
}

// with applies a function to one of the pods.
func (g *gang) with(t *rapid.T, do func(*corev1.Pod)) {
	if len(g.pods) > 0 {
		do(g.pods[rapid.IntRange(0, len(g.pods)-1).Draw(t, "pod")])
	}
}

// reap removes the first n terminating pods.
func (g *gang) reap(n int) {
	g.pods = slices.DeleteFunc(g.pods, func(pod *corev1.Pod) bool {
		if pod.DeletionTimestamp == nil || n == 0 {
			return false
		}
		n--
		return true
	})
}

// check checks that the names of the pods are unique.
func (g *gang) check(t *rapid.T) {
	names := map[string]bool{}
	for _, pod := range g.pods {
		if names[pod.Name] {
			t.Fatalf("there are two pods %s", pod.Name)
		}
		names[pod.Name] = true
	}
}
