package podspec

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func on(node string, count int32) Place {
	return Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
}

// gpuNodes returns nodes by name with this number of GPUs each, and capacity for 110 pods.
func gpuNodes(gpus map[string]int64) map[string]*corev1.Node {
	out := map[string]*corev1.Node{}
	for name, n := range gpus {
		out[name] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				gpu: *resource.NewQuantity(n, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
				corev1.ResourceCPU: resource.MustParse("64"),
			}},
		}
	}
	return out
}

// gpuPod returns the spec of a pod that requests this number of GPUs.
func gpuPod(gpus int64) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI),
			corev1.ResourceCPU: resource.MustParse("1500m")}}}}}
}

func TestPlacesRanks(t *testing.T) {
	places := Places{on("a", 3), on("b", 2), on("b", 1), on("c", 2)}
	for name, tc := range map[string]struct {
		from, to int32
		want     Places
	}{
		"all ranks":         {0, 8, Places{on("a", 3), on("b", 3), on("c", 2)}},
		"across two places": {2, 4, Places{on("a", 1), on("b", 1)}},
		"within a place":    {1, 3, Places{on("a", 2)}},
		"beyond the end":    {7, 12, Places{on("c", 1)}},
		"none":              {3, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, places.Ranks(tc.from, tc.to)); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInjectionWithPlaces(t *testing.T) {
	nodes := gpuNodes(map[string]int64{"a": 8, "b": 8, "c": 4})
	gates := []string{kueue.TopologyGate}
	hostPort := gpuPod(1)
	hostPort.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
	for name, tc := range map[string]struct {
		gang Gang
		want Injection
	}{
		"no places": {Gang{Count: 4, Spec: gpuPod(1)}, Injection{}},
		"all on one node": {Gang{Places: Places{on("a", 3)}, Count: 3, Spec: gpuPod(1)},
			Injection{NodeSelector: map[string]string{corev1.LabelHostname: "a"}}},
		"places that fill their nodes": {Gang{Places: Places{on("a", 4), on("c", 2)}, Count: 6, Spec: gpuPod(2)},
			Injection{Nodes: []string{"a", "c"}}},
		"places that leave too little for another pod": {Gang{Places: Places{on("a", 2), on("c", 1)}, Count: 3,
			Spec: gpuPod(3)},
			Injection{Nodes: []string{"a", "c"}}},
		"pods with a host port": {Gang{Places: Places{on("a", 1), on("b", 1)}, Count: 2, Spec: hostPort},
			Injection{Nodes: []string{"a", "b"}}},
		"a node with capacity for one more": {Gang{Places: Places{on("a", 4), on("b", 3)}, Count: 7, Spec: gpuPod(2)},
			Injection{Gates: gates}},
		"slices that must be apart": {Gang{Places: Places{on("a", 4), on("b", 4)}, Count: 8, Spec: gpuPod(2),
			SlicesApart: true}, Injection{Gates: gates}},
		"a missing node": {Gang{Places: Places{on("a", 4), on("gone", 4)}, Count: 8, Spec: gpuPod(2)},
			Injection{Gates: gates}},
		"a node with two places": {Gang{Places: Places{on("a", 4), on("b", 4), on("a", 4)}, Count: 12, Spec: gpuPod(2)},
			Injection{Gates: gates}},
		"fewer places than pods": {Gang{Places: Places{on("a", 3)}, Count: 4, Spec: gpuPod(1)},
			Injection{Gates: gates}},
		"two places wider than a node": {Gang{Places: Places{{Domain: map[string]string{"rack": "1"}, Count: 2},
			{Domain: map[string]string{"rack": "2"}, Count: 2}}, Count: 4, Spec: gpuPod(4)}, Injection{Gates: gates}},
		"one place wider than a node": {Gang{Places: Places{{Domain: map[string]string{"rack": "1"}, Count: 2}}, Count: 2,
			Spec: gpuPod(4)}, Injection{NodeSelector: map[string]string{"rack": "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Injection{}.WithPlaces(tc.gang, nodes)); diff != "" {
				t.Errorf("injection (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequiredNodesExtendTheUsersAffinity(t *testing.T) {
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z"}}
	only := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
		Values: []string{"a", "b"}}
	field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 1,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{zone}}}}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: terms},
			PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}}
	}
	term := func(list ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: list}
	}
	for name, tc := range map[string]struct{ had, want *corev1.Affinity }{
		"nothing": {nil, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term(only)}}}}},
		"preferred nodes only": {
			&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}},
			required(term(only))},
		"one or the other": {required(term(zone),
			corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{field}}),
			required(term(zone, only), corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{only},
				MatchFields: []corev1.NodeSelectorRequirement{field}})},
		"a term that matches nothing": {required(term(), term(zone)), required(term(), term(zone, only))},
	} {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: tc.had}}
			before := template.DeepCopy()
			got := Injection{Nodes: []string{"a", "b"}}.Inject(template)
			if diff := cmp.Diff(tc.want, got.Spec.Affinity); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, &template); diff != "" {
				t.Errorf("the given template was changed:\n%s", diff)
			}
		})
	}
}

func TestAllowsPlace(t *testing.T) {
	elsewhere := Injection{Nodes: []string{"b"}}.Inject(corev1.PodTemplateSpec{}).Spec
	required := elsewhere.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	required.NodeSelectorTerms[0].MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn
	to := func(in Injection) corev1.PodSpec { return in.Inject(corev1.PodTemplateSpec{}).Spec }
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"any node":         {to(Injection{}), true},
		"the node":         {to(Injection{NodeSelector: map[string]string{corev1.LabelHostname: "a"}}), true},
		"another node":     {to(Injection{NodeSelector: map[string]string{corev1.LabelHostname: "b"}}), false},
		"one of several":   {to(Injection{Nodes: []string{"b", "a"}}), true},
		"none of several":  {to(Injection{Nodes: []string{"b", "c"}}), false},
		"a gate":           {to(Injection{Gates: []string{kueue.TopologyGate}}), true},
		"not another node": {elsewhere, true},
		"unrelated labels": {to(Injection{NodeSelector: map[string]string{"pool": "x"}}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AllowsPlace(tc.spec, on("a", 1)); got != tc.want {
				t.Errorf("AllowsPlace = %v, want %v", got, tc.want)
			}
		})
	}
}

// job is a part of a gang, of pods from one template.
type job struct {
	from, to int32
	places   Places // of its ranks
	gpus     int64
	slice    int32
	in       Injection
	racks    []int          // the rack for each rank
	unbound  []int32        // ranks
	bound    map[string]int // by node
}

// TestAnyBindingOrderHonorsTheAssignment has kube-scheduler bind pods in any order to any node that the selectors allow
// and that has capacity. No node gets more pods of a job than have a place there, no slice is split, and all pods are
// bound in the end.
func TestAnyBindingOrderHonorsTheAssignment(t *testing.T) {
	var byTemplate, gated int
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(t, "nodes")
		gpus, free := map[string]int64{}, map[string]int64{}
		var names []string
		for i := range size {
			name := fmt.Sprintf("n%d", i)
			names = append(names, name)
			gpus[name] = rapid.Int64Range(1, 8).Draw(t, "gpus of "+name)
			free[name] = gpus[name]
		}
		nodes := gpuNodes(gpus)
		rackOf := func(node string) int { var i int; fmt.Sscanf(node, "n%d", &i); return i / 2 }
		var jobs []*job
		for range rapid.IntRange(1, 5).Draw(t, "gangs") {
			jobs = append(jobs, drawGang(t, names, free, nodes, rackOf)...)
		}
		for _, j := range jobs {
			switch {
			case len(j.in.Gates) > 0:
				gated++
			case len(j.in.Nodes) > 0:
				byTemplate++
			}
		}
		room := map[string]int64{}
		for name := range gpus {
			room[name] = gpus[name]
		}
		for {
			var open []*job
			for _, j := range jobs {
				if len(j.unbound) > 0 && len(j.choices(names, room)) > 0 {
					open = append(open, j)
				}
			}
			if len(open) == 0 {
				break
			}
			j := open[rapid.IntRange(0, len(open)-1).Draw(t, "job")]
			choices := j.choices(names, room)
			node := choices[rapid.IntRange(0, len(choices)-1).Draw(t, "node")]
			rank := j.unbound[0]
			j.unbound = j.unbound[1:]
			j.bound[node]++
			room[node] -= j.gpus
			var assigned int32
			for _, place := range j.places {
				if place.Node() == node {
					assigned += place.Count
				}
			}
			if j.bound[node] > int(assigned) {
				t.Fatalf("%d pods of ranks [%d,%d) are on %s, where %d have a place (%+v)", j.bound[node], j.from, j.to,
					node, assigned, j.in)
			}
			if j.slice > 0 && rackOf(node) != j.racks[rank-j.from] {
				t.Fatalf("rank %d is in rack %d, want that of its slice, %d (%+v)", rank, rackOf(node), j.racks[rank-j.from], j.in)
			}
		}
		for _, j := range jobs {
			if len(j.unbound) > 0 {
				t.Fatalf("ranks %v of [%d,%d) cannot be bound (%+v)", j.unbound, j.from, j.to, j.in)
			}
		}
	})
	if byTemplate == 0 || gated == 0 {
		t.Errorf("%d jobs of several nodes were placed by template and %d by gate, want some of both", byTemplate, gated)
	}
}

// choices returns the nodes to which the next pod of the job may be bound.
func (j *job) choices(names []string, room map[string]int64) []string {
	spec := j.in.Inject(corev1.PodTemplateSpec{}).Spec
	if len(j.in.Gates) > 0 { // then each pod gets its own node
		place := j.places.Ranks(j.unbound[0]-j.from, j.unbound[0]-j.from+1)[0]
		spec = Injection{NodeSelector: place.Domain}.Inject(corev1.PodTemplateSpec{}).Spec
	}
	var out []string
	for _, name := range names {
		if room[name] >= j.gpus && AllowsPlace(spec, on(name, 1)) {
			out = append(out, name)
		}
	}
	return out
}

// drawGang gives places to a gang of equal pods, slice by slice, each in one rack, and splits it into equal jobs. Pods
// that do not fit get no places. Half of the gangs take all that is free in their racks, as only gangs that fill their
// nodes are placed by template.
func drawGang(t *rapid.T, names []string, free map[string]int64, nodes map[string]*corev1.Node,
	rackOf func(string) int) []*job {
	perPod := rapid.Int64Range(1, 4).Draw(t, "gpus per pod")
	fills := rapid.Bool().Draw(t, "fills racks")
	var slice int32
	if !fills {
		slice = rapid.Int32Range(0, 3).Draw(t, "slice size")
	}
	units := rapid.IntRange(1, 6).Draw(t, "units")
	var places Places
	var racks []int
	for range units {
		rack := rapid.IntRange(0, (len(names)-1)/2).Draw(t, "rack")
		var fits int64
		for _, name := range names {
			if rackOf(name) == rack {
				fits += free[name] / perPod
			}
		}
		unit := max(slice, 1)
		if fills {
			unit = int32(fits)
		}
		if fits < int64(unit) {
			continue
		}
		left := unit
		for _, name := range names {
			if rackOf(name) != rack || left == 0 {
				continue
			}
			if n := min(left, int32(free[name]/perPod)); n > 0 {
				places = append(places, on(name, n))
				free[name] -= int64(n) * perPod
				left -= n
			}
		}
		for range unit {
			racks = append(racks, rack)
		}
	}
	count := places.Count()
	if count == 0 {
		return nil
	}
	parts := int32(1)
	if n := rapid.Int32Range(1, 3).Draw(t, "jobs"); count%n == 0 {
		parts = n
	}
	var out []*job
	for i := range parts {
		from, to := i*count/parts, (i+1)*count/parts
		j := &job{from: from, to: to, places: places.Ranks(from, to), gpus: perPod, slice: slice, racks: racks[from:to],
			bound: map[string]int{}}
		j.in = Injection{}.WithPlaces(Gang{Places: j.places, Count: to - from, Spec: gpuOnly(perPod),
			SlicesApart: slice > 0 && from/slice != (to-1)/slice}, nodes)
		for rank := from; rank < to; rank++ {
			j.unbound = append(j.unbound, rank)
		}
		out = append(out, j)
	}
	return out
}

// gpuOnly returns the spec of a pod that requests nothing else.
func gpuOnly(gpus int64) corev1.PodSpec {
	pod := gpuPod(gpus)
	delete(pod.Containers[0].Resources.Requests, corev1.ResourceCPU)
	return pod
}
