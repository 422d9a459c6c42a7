package placer

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// Thousands of pods of a gang are admitted one by one. What all of them need is computed once, and an index leads to
// the pods that may have the place of one.

// nodeIndex indexes the pods that use a place by their Workload and where they are.
const nodeIndex = "muster.dev/workload-and-node"

// nodesOf is the index function for nodeIndex: the host name that the pod selects and the name of its node, which can
// differ. Pods that have ended are left out, since a place can have had thousands of them.
func nodesOf(object client.Object) []string {
	pod := object.(*corev1.Pod)
	if gated(pod) || podspec.HasEnded(pod) {
		return nil
	}
	var out []string
	for _, workload := range workloadOf(pod) {
		for _, name := range []string{pod.Spec.NodeSelector[corev1.LabelHostname], pod.Spec.NodeName} {
			if key := nodeKey(workload, name); name != "" && !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

// nodeKey returns the key in nodeIndex of a Workload and the name or host name of a node.
func nodeKey(workload, node string) string { return workload + "/" + node }

// rankedSet finds the places of a pod set by rank and by domain.
type rankedSet struct {
	places podspec.Ranking
	// byDomain holds the ranks of each domain, by Place.Key.
	byDomain map[string][]ranks
}

func rankedSetOf(places podspec.Places) *rankedSet {
	out := &rankedSet{places: places.Ranking(), byDomain: make(map[string][]ranks, len(places))}
	var rank int32
	for _, place := range places {
		key := place.Key()
		out.byDomain[key] = append(out.byDomain[key], ranks{rank, rank + place.Count})
		rank += place.Count
	}
	return out
}

// place returns the place of a rank, which must be one of the pod set.
func (r *rankedSet) place(rank int32) podspec.Place { return r.places.Ranks(rank, rank+1)[0] }

// size returns how many of the ranks have places in the domain of the place.
func (r *rankedSet) size(place podspec.Place, within ranks) (size int32) {
	for _, its := range r.byDomain[place.Key()] {
		size += max(0, min(its.to, within.to)-max(its.from, within.from))
	}
	return size
}

// mostRankedSets bounds the memory of rankedSets: one of 10,000 places takes a few megabytes.
const mostRankedSets = 16

// rankedSets keeps the pod sets of which pods were created last. It is safe for concurrent use.
type rankedSets struct{ kept *lru.Cache }

func newRankedSets() rankedSets { return rankedSets{lru.New(mostRankedSets)} }

// rankedKey says which pod set of which Workload is kept, and keptSet for which version of the Workload.
type (
	rankedKey struct {
		workload types.UID
		podSet   kueue.PodSetReference
	}
	keptSet struct {
		version string
		*rankedSet
	}
)

// of returns the pod set of an admitted Workload, nil if it has no places.
func (r rankedSets) of(w *kueue.Workload, podSet kueue.PodSetReference) *rankedSet {
	key := rankedKey{w.UID, podSet}
	if kept, ok := r.kept.Get(key); ok && kept.(keptSet).version == w.ResourceVersion {
		return kept.(keptSet).rankedSet
	}
	i := slices.IndexFunc(w.Status.Admission.PodSetAssignments,
		func(a kueue.PodSetAssignment) bool { return a.Name == podSet })
	if i < 0 {
		return nil
	}
	places := jobs.PlacesOf(w.Status.Admission.PodSetAssignments[i].TopologyAssignment)
	if len(places) == 0 {
		return nil
	}
	out := rankedSetOf(places)
	r.kept.Add(key, keptSet{w.ResourceVersion, out})
	return out
}
