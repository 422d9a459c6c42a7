package translate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/podspec"
)

func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func byHost(selector *metav1.LabelSelector, changes ...func(*corev1.PodAffinityTerm)) []corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: place.Hostname}
	for _, change := range changes {
		change(&term)
	}
	return []corev1.PodAffinityTerm{term}
}

func awayFrom(terms []corev1.PodAffinityTerm) *corev1.PodSpec {
	return &corev1.PodSpec{Affinity: &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}
}

func nextTo(terms []corev1.PodAffinityTerm) *corev1.PodSpec {
	return &corev1.PodSpec{Affinity: &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}}
}

func spread(c corev1.TopologySpreadConstraint) *corev1.PodSpec {
	return &corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}}
}

// TestConstraintsBetweenPodsOfAGang: those that the pod templates decide become bounds, others are left to
// kube-scheduler.
func TestConstraintsBetweenPodsOfAGang(t *testing.T) {
	apart := func(podSets ...string) []place.Bound {
		return []place.Bound{{Kind: place.Apart, Key: place.Hostname, Counts: podSets}}
	}
	job := &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", Controller: ptr.To(true)}
	vcjob := &metav1.OwnerReference{APIVersion: volcano.GroupVersion.String(), Kind: "Job", Name: "v",
		Controller: ptr.To(true)}
	jobSet := &metav1.OwnerReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "s",
		Controller: ptr.To(true)}
	training := &metav1.OwnerReference{APIVersion: "breezeml.ai/v1", Kind: "TrainingJob", Name: "t",
		Controller: ptr.To(true)}
	generic := &metav1.OwnerReference{APIVersion: tensorstack.GroupVersion.String(), Kind: "GenericJob", Name: "g",
		Controller: ptr.To(true)}
	hard := corev1.TopologySpreadConstraint{MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: matching("app", "a"),
		MinDomains:    ptr.To(int32(3)), NodeAffinityPolicy: ptr.To(corev1.NodeInclusionPolicyIgnore),
		NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor)}
	soft := hard
	soft.WhenUnsatisfiable = corev1.ScheduleAnyway
	others := hard
	others.LabelSelector = matching("app", "b")
	for name, tc := range map[string]struct {
		spec  *corev1.PodSpec // of the pod set w, whose pods have the label app: a; those of l have role: leader
		owner *metav1.OwnerReference
		want  []place.Bound
	}{
		"apart from their own label":     {awayFrom(byHost(matching("app", "a"))), nil, apart("w")},
		"apart from the leader":          {awayFrom(byHost(matching("role", "leader"))), nil, apart("l")},
		"apart from all pods":            {awayFrom(byHost(&metav1.LabelSelector{})), nil, apart("l", "w")},
		"apart from no pods":             {awayFrom(byHost(nil)), nil, nil},
		"apart from another application": {awayFrom(byHost(matching("app", "b"))), nil, nil},
		"apart by the name of the Job":   {awayFrom(byHost(matching("job-name", "j"))), job, apart("l", "w")},
		"apart by the name of the TrainingJob": {awayFrom(byHost(matching("training.kubeflow.org/job-name", "t"))), training,
			apart("l", "w")},
		"apart by the name of the GenericJob": {awayFrom(byHost(matching(tensorstack.GenericJobLabel, "g"))), generic,
			apart("l", "w")},
		"apart by the name of another Job": {awayFrom(byHost(matching("job-name", "other"))), job, nil},
		"apart by the task of the VCJob":   {awayFrom(byHost(matching("volcano.sh/task-spec", "w"))), vcjob, apart("w")},
		"apart by the replicated job": {awayFrom(byHost(matching("jobset.sigs.k8s.io/replicatedjob-name", "l"))),
			jobSet, apart("l")},
		"apart in all namespaces": {awayFrom(byHost(matching("app", "a"),
			func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} })), nil, apart("w")},
		"apart in another namespace": {awayFrom(byHost(matching("app", "a"),
			func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"other"} })), nil, nil},
		"apart in namespaces with a label": {awayFrom(byHost(matching("app", "a"),
			func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = matching("team", "a") })), nil, nil},
		"apart with a label that only pods get": {awayFrom(byHost(matching("app", "a"),
			func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = []string{"uid"} })), nil, nil},
		"apart with the same label value": {awayFrom(byHost(&metav1.LabelSelector{},
			func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = []string{"app"} })), nil, apart("w")},
		"together with the leader": {nextTo(byHost(matching("role", "leader"))), nil,
			[]place.Bound{{Kind: place.Together, Key: place.Hostname, Counts: []string{"l"}}}},
		"a hard spread constraint": {spread(hard), nil, []place.Bound{
			{Kind: place.Even, Key: "zone", Counts: []string{"w"}, MaxSkew: 2, MinDomains: 3, AllNodes: true, Untainted: true}}},
		"a soft spread constraint":                   {spread(soft), nil, nil},
		"a spread constraint that counts other pods": {spread(others), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorkload("x", 2, admissiontest.Quantities("cpu", "1"))
			if tc.owner != nil {
				w.OwnerReferences = []metav1.OwnerReference{*tc.owner}
			}
			container := w.Spec.PodSets[0].Template.Spec.Containers
			tc.spec.Containers = container
			w.Spec.PodSets = []kueue.PodSet{
				{Name: "l", Count: 1,
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"role": "leader"}},
						Spec: corev1.PodSpec{Containers: container}}},
				{Name: "w", Count: 2,
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
						Spec: *tc.spec}},
			}
			podSets, refused := newAccountant(podspec.Counting{}).account(w)
			if refused != "" || podSets[0].Bounds != nil {
				t.Fatalf("leader: %v, refused %q, want no bound", podSets[0].Bounds, refused)
			}
			if diff := cmp.Diff(tc.want, podSets[1].Bounds); diff != "" {
				t.Errorf("bounds (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlySomeConstraintsBetweenPodsAreLookedAt: users may write thousands, each with thousands of labels.
func TestOnlySomeConstraintsBetweenPodsAreLookedAt(t *testing.T) {
	others := func(n int) (out []corev1.PodAffinityTerm) {
		for range n {
			out = append(out, byHost(matching("app", "b"))...)
		}
		return out
	}
	own := byHost(matching("app", "a"))
	about := func(labels int) *metav1.LabelSelector {
		out := matching("app", "a")
		for i := range labels - 1 {
			out.MatchExpressions = append(out.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: fmt.Sprint("x", i), Operator: metav1.LabelSelectorOpDoesNotExist})
		}
		return out
	}
	byKeys := func(keys int) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = slices.Repeat([]string{"app"}, keys) }
	}
	both := awayFrom(others(10_000))
	both.Affinity.PodAffinity = nextTo(own).Affinity.PodAffinity
	both.TopologySpreadConstraints = spread(corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone",
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: matching("app", "a")}).TopologySpreadConstraints
	for name, tc := range map[string]struct {
		spec *corev1.PodSpec
		want int
	}{
		"eight are bounds":                         {awayFrom(slices.Repeat(own, 10_000)), maxBounds},
		"the last that is looked at":               {awayFrom(append(others(maxLooked-1), own...)), 1},
		"the first that is not":                    {awayFrom(append(others(maxLooked), own...)), 0},
		"those of all kinds together":              {both, 0},
		"as many labels as are looked at":          {awayFrom(byHost(about(maxLabels))), 1},
		"one label more":                           {awayFrom(byHost(about(maxLabels + 1))), 0},
		"keys whose values the pods share":         {awayFrom(byHost(about(maxLabels-1), byKeys(1))), 1},
		"one more key whose values the pods share": {awayFrom(byHost(about(1), byKeys(maxLabels))), 0},
	} {
		w := &kueue.Workload{}
		w.Spec.PodSets = []kueue.PodSet{{Name: "w"}}
		w.Spec.PodSets[0].Template.Labels = map[string]string{"app": "a"}
		w.Spec.PodSets[0].Template.Spec = *tc.spec
		podSets := make([]engine.PodSet, 1)
		setBounds(w, podSets)
		if got := len(podSets[0].Bounds); got != tc.want {
			t.Errorf("%s: %d bounds, want %d", name, got, tc.want)
		}
	}
}
