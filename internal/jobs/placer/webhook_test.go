package placer

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/podspec"
)

// TestTheWebhookOverlooksNoPod: whichever way other pods of the gang are where they are, the answer is the same as if
// all of them were looked at. Nodes may be gone, or have other host names than names; the places of the Workload change
// in between.
func TestTheWebhookOverlooksNoPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := func(what string) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, what) }
		oneIn := func(n int, what string) bool { return rapid.IntRange(1, n).Draw(t, what) == n }
		drawPlaces := func() (out []podspec.Place) {
			wide := oneIn(6, "wider than nodes")
			for range rapid.IntRange(1, 4).Draw(t, "places") {
				place := on(host("place"), rapid.Int32Range(1, 2).Draw(t, "count"))
				if wide {
					place.Domain = map[string]string{"rack": place.Node()}
				}
				out = append(out, place)
			}
			return out
		}
		drawPod := func(name string) podBuilder {
			b := pod(name)
			if !oneIn(9, "no rank") {
				b.rank(rapid.IntRange(0, 5).Draw(t, "rank"))
			}
			switch {
			case oneIn(8, "group"):
				b.group(rapid.IntRange(0, 2).Draw(t, "number"), 2)
			case oneIn(8, "ranks"):
				b.ranks(rapid.SampledFrom([]string{"0-1", "1-3", "2-9", "x"}).Draw(t, "from and to"))
			}
			b.of("wl")
			if oneIn(8, "another Workload") {
				b.Annotations[kueue.WorkloadAnnotation] = "other"
			}
			if oneIn(8, "another pod set") {
				b.Labels[kueue.PodSetLabel] = "leader"
			}
			return b
		}
		seen := newIndexedCache(drawPlaces()...)
		for _, name := range []string{"a", "b", "c", "d"} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
			if !oneIn(4, "no host name") {
				node.Labels[corev1.LabelHostname] = host("host name")
			}
			if !oneIn(4, "gone") {
				seen.add(seen.nodes, node)
			}
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
			b := drawPod(fmt.Sprint("p", i))
			if !oneIn(6, "gated") {
				b.at(host("selected host"))
				b.Spec.NodeSelector["rack"] = host("rack")
				if oneIn(3, "bound") {
					b.bound(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node"))
				}
				if b.Spec.NodeName != "" && oneIn(2, "without a selector") {
					b.Spec.NodeSelector, b.Spec.Affinity = nil, toHosts(host("allowed host"), "d")
				}
			}
			switch {
			case oneIn(8, "terminating"):
				b.terminating()
			case oneIn(8, "done"):
				b.done()
			}
			seen.add(seen.pods, b.Pod)
		}
		p := &placer{client: seen, ranked: newRankedSets()}
		for i := range 4 {
			if i == 2 {
				seen.workload = admitted(drawPlaces()...)
				seen.workload.ResourceVersion = "2"
			}
			b := drawPod("new")
			name := client.ObjectKey{Namespace: "ns", Name: b.Annotations[kueue.WorkloadAnnotation]}
			got, ok, err := p.placeOf(t.Context(), name, b.Pod)
			want, free := podspec.Place{}, false
			if name.Name == "wl" && b.Labels[kueue.PodSetLabel] == "main" {
				want, free = seen.placeFromAll(b.Pod)
			}
			if err != nil || ok != free || ok && !cmp.Equal(want.Domain, got.Domain) {
				t.Fatalf("the place is %v, free: %v (error %v), want %v, free: %v", got, ok, err, want, free)
			}
		}
	})
}

// placeFromAll returns the place of the pod's rank, and whether it is free, from all places and pods of the gang.
func (i *indexedCache) placeFromAll(pod *corev1.Pod) (podspec.Place, bool) {
	places := jobs.PlacesOf(i.workload.Status.Admission.PodSetAssignments[0].TopologyAssignment)
	set := podSetOf(places.Ranking(), requestOf(i.workload, "main"), []*corev1.Pod{pod})
	group := set.groupOf(pod)
	if !set.hasRanks(group) {
		return podspec.Place{}, false
	}
	var others []*corev1.Pod
	for _, o := range i.pods.List() {
		if other := o.(*corev1.Pod); other.Annotations[kueue.WorkloadAnnotation] == "wl" &&
			other.Labels[kueue.PodSetLabel] == "main" && !podspec.HasEnded(other) && set.groupOf(other) == group {
			others = append(others, other)
		}
	}
	d := set.groupPlaces(group, others, cachedNodes{context.Background(), i}).domainOfRank(pod)
	if d == nil {
		return podspec.Place{}, false
	}
	return d.place, d.free()
}

// TestAPodThatSelectsTheHostOfItsNodeCountsOnce, though it is found by both names of the node.
func TestAPodThatSelectsTheHostOfItsNodeCountsOnce(t *testing.T) {
	w := newWorld(t, admitted(on("host", 2)), pod("p0").rank(0).at("host").bound("node"))
	if err := w.api.Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node",
			Labels: map[string]string{corev1.LabelHostname: "host"}}}); err != nil {
		t.Fatal(err)
	}
	place, free, err := w.placer.placeOf(t.Context(), client.ObjectKey{Namespace: "ns", Name: "wl"},
		pod("p1").rank(1).of("wl").Pod)
	if err != nil || !free || place.Node() != "host" {
		t.Errorf("the place is %v, free: %v (error %v), want one on host", place, free, err)
	}
}

// TestPodsAdmittedAtOnceGetPlacesOfTheirOwn: the cache has none of the others yet.
func TestPodsAdmittedAtOnceGetPlacesOfTheirOwn(t *testing.T) {
	places := []podspec.Place{on("a", 2), on("b", 1), on("a", 1), on("c", 3)}
	w := newWorld(t, admitted(places...))
	got := make([]string, 7)
	var all sync.WaitGroup
	for rank := range got {
		all.Go(func() {
			place, ok, err := w.placer.placeOf(t.Context(), client.ObjectKey{Namespace: "ns", Name: "wl"},
				pod(fmt.Sprint("p", rank)).rank(rank).of("wl").Pod)
			if err != nil || !ok {
				t.Errorf("pod %d has no place (error %v)", rank, err)
			}
			got[rank] = place.Node()
		})
	}
	all.Wait()
	w.check("nodes by rank", []string{"a", "a", "b", "a", "c", "c", "c"}, got)
}

// TestTimeOfAdmissions: each pod of a gang is admitted without looking at all others, nor at all places.
func TestTimeOfAdmissions(t *testing.T) {
	jobstest.CheckAboutLinear(t, 500, func(size int) func() {
		var places []podspec.Place
		var pods []podBuilder
		for i := range size {
			places, pods = append(places, on(fmt.Sprint("node-", i), 1)), append(pods, pod(fmt.Sprint("p", i)).rank(i).of("wl"))
		}
		seen := newIndexedCache(places...)
		p := &placer{client: seen, ranked: newRankedSets()}
		return func() {
			for _, b := range pods {
				place, ok, err := p.placeOf(t.Context(), client.ObjectKey{Namespace: "ns", Name: "wl"}, b.Pod)
				if err != nil || !ok {
					t.Fatalf("%s has no place (error %v)", b.Name, err)
				}
				seen.add(seen.pods, b.at(place.Node()).Pod)
			}
		}
	})
}

// indexedCache is a cache with one Workload, its pods and nodes, which finds them by the indexes that the webhook uses.
type indexedCache struct {
	client.Client
	workload    *kueue.Workload
	pods, nodes cache.Indexer
}

func newIndexedCache(places ...podspec.Place) *indexedCache {
	by := func(of client.IndexerFunc) cache.IndexFunc {
		return func(o any) ([]string, error) { return of(o.(client.Object)), nil }
	}
	return &indexedCache{
		workload: admitted(places...),
		pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{workloadIndex: by(workloadOf), nodeIndex: by(nodesOf)}),
		nodes: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{jobs.HostnameIndex: by(jobs.HostnameOf)}),
	}
}

func (i *indexedCache) add(to cache.Indexer, o client.Object) { utilruntime.Must(to.Add(o)) }

func (i *indexedCache) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	switch out := out.(type) {
	case *kueue.Workload:
		if key.Name == i.workload.Name {
			*out = *i.workload
			return nil
		}
	case *corev1.Node:
		if node, exists, err := i.nodes.GetByKey(key.Name); exists || err != nil {
			*out = *node.(*corev1.Node)
			return err
		}
	}
	return apierrors.NewNotFound(corev1.Resource("objects"), key.Name)
}

func (i *indexedCache) List(_ context.Context, out client.ObjectList, options ...client.ListOption) error {
	field := (&client.ListOptions{}).ApplyOptions(options).FieldSelector.Requirements()[0]
	switch list := out.(type) {
	case *corev1.PodList:
		found, err := i.pods.ByIndex(field.Field, field.Value)
		for _, o := range found {
			list.Items = append(list.Items, *o.(*corev1.Pod))
		}
		return err
	case *corev1.NodeList:
		found, err := i.nodes.ByIndex(field.Field, field.Value)
		for _, o := range found {
			list.Items = append(list.Items, *o.(*corev1.Node))
		}
		return err
	}
	return nil
}
