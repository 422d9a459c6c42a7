package translate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/podproblem"
)

const (
	// maxBounds is how many constraints between pods of a pod set become bounds. kube-scheduler alone keeps the others.
	maxBounds = 8
	// maxLooked is how many constraints of a pod set are matched with the pods of all pod sets, since some concern none.
	maxLooked = 2 * maxBounds
	// maxLabels is how many labels a constraint may be about. One with more is left to kube-scheduler: users may write
	// thousands, and each is matched with the pods of all pod sets.
	maxLabels = 16
)

// setBounds gives the pod sets the constraints between their pods that place.Bound can say: required pod anti-affinity
// and affinity, and hard spread constraints. Constraints that concern no pod of the Workload, or that depend on more
// than the pod templates say, are left to kube-scheduler.
func setBounds(w *kueue.Workload, podSets []engine.PodSet) {
	var pods []podLabels // only if any pod set has constraints
	for i := range w.Spec.PodSets {
		spec := &w.Spec.PodSets[i].Template.Spec
		if !hasBounds(spec) {
			continue
		}
		if pods == nil {
			pods = podLabelsOf(w)
		}
		podSets[i].Bounds = boundsOf(spec, pods, i, w.Namespace)
	}
}

func hasBounds(spec *corev1.PodSpec) bool {
	return len(spec.TopologySpreadConstraints) > 0 ||
		spec.Affinity != nil && (spec.Affinity.PodAntiAffinity != nil || spec.Affinity.PodAffinity != nil)
}

// podLabels are the labels of the pods of a pod set, as far as they are known before the pods exist.
type podLabels struct {
	podSet string
	labels labels.Set
}

// podLabelsOf returns the labels of the pods of each pod set: the labels of the template, and the labels that the
// controller of the job gives all pods.
func podLabelsOf(w *kueue.Workload) []podLabels {
	out := make([]podLabels, len(w.Spec.PodSets))
	owner := metav1.GetControllerOfNoCopy(w)
	for i := range w.Spec.PodSets {
		name, given := string(w.Spec.PodSets[i].Name), labels.Set{}
		if owner != nil {
			group, _ := schema.ParseGroupVersion(owner.APIVersion)
			given = podproblem.LabelsOf(group.Group, owner.Kind, owner.Name, name)
		}
		out[i] = podLabels{name, labels.Merge(w.Spec.PodSets[i].Template.Labels, given)}
	}
	return out
}

// boundsOf returns the bounds of the i-th pod set.
func boundsOf(spec *corev1.PodSpec, pods []podLabels, i int, namespace string) []place.Bound {
	var out []place.Bound
	looked := 0
	add := func(b place.Bound, selector *metav1.LabelSelector, matchKeys []string) {
		if looked++; looked > maxLooked || len(out) >= maxBounds || labelsIn(selector)+len(matchKeys) > maxLabels {
			return
		}
		counts, ok := counted(selector, matchKeys, pods, i)
		own := slices.Contains(counts, pods[i].podSet)
		if b.Counts = counts; ok && len(counts) > 0 && (own || b.Kind != place.Even) {
			out = append(out, b)
		}
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if isOwnTerm(&term, namespace) {
				add(place.Bound{Kind: place.Apart, Key: term.TopologyKey}, term.LabelSelector, term.MatchLabelKeys)
			}
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if isOwnTerm(&term, namespace) {
				add(place.Bound{Kind: place.Together, Key: term.TopologyKey}, term.LabelSelector, term.MatchLabelKeys)
			}
		}
	}
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			add(evenBy(c), c.LabelSelector, c.MatchLabelKeys)
		}
	}
	return out
}

// labelsIn returns how many labels a selector is about.
func labelsIn(selector *metav1.LabelSelector) int {
	if selector == nil {
		return 0
	}
	return len(selector.MatchLabels) + len(selector.MatchExpressions)
}

// isOwnTerm reports whether the term concerns pods of the namespace. Labels of namespaces are not looked at, nor keys
// by which the pods must differ.
func isOwnTerm(term *corev1.PodAffinityTerm, namespace string) bool {
	everywhere := term.NamespaceSelector != nil &&
		len(term.NamespaceSelector.MatchLabels)+len(term.NamespaceSelector.MatchExpressions) == 0
	own := len(term.Namespaces) == 0 && term.NamespaceSelector == nil || slices.Contains(term.Namespaces, namespace)
	return (everywhere || own) && len(term.MismatchLabelKeys) == 0
}

func evenBy(c *corev1.TopologySpreadConstraint) place.Bound {
	out := place.Bound{Kind: place.Even, Key: c.TopologyKey, MaxSkew: max(1, c.MaxSkew)}
	if c.MinDomains != nil {
		out.MinDomains = *c.MinDomains
	}
	out.AllNodes = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	out.Untainted = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	return out
}

// counted returns, sorted, the pod sets whose pods a selector matches; ok is false if that depends on labels that only
// the pods have. matchKeys are labels of which the pods must have the values of the i-th pod set.
func counted(selector *metav1.LabelSelector, matchKeys []string, pods []podLabels, i int) (out []string, ok bool) {
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, false
	}
	for _, key := range matchKeys {
		if !pods[i].labels.Has(key) {
			return nil, false
		}
	}
	for _, p := range pods {
		differs := func(key string) bool { return p.labels.Get(key) != pods[i].labels.Get(key) }
		if matches.Matches(p.labels) && !slices.ContainsFunc(matchKeys, differs) {
			out = append(out, p.podSet)
		}
	}
	slices.Sort(out)
	return out, true
}
