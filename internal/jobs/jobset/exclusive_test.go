package jobset

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// apart makes each of the two Jobs of four pods need a rack of its own.
func apart() *jobset.JobSet {
	js := twoByFour()
	js.Annotations = map[string]string{jobset.ExclusiveKey: "rack"}
	return js
}

func byHand() *jobset.JobSet {
	js := apart()
	js.Annotations[jobset.NodeSelectorStrategyKey] = "true"
	return js
}

func jobKey(name string) string {
	sum := sha1.Sum([]byte("ns/" + name))
	return hex.EncodeToString(sum[:])
}

func TestExclusiveJobsAskForASliceEach(t *testing.T) {
	slices := func() *kueue.PodSetTopologyRequest {
		return &kueue.PodSetTopologyRequest{
			PodIndexLabel: ptr.To(batchv1.JobCompletionIndexAnnotation), SubGroupIndexLabel: ptr.To(jobset.JobIndexKey), SubGroupCount: ptr.To[int32](2),
			PodSetSliceRequiredTopology: ptr.To("rack"), PodSetSliceSize: ptr.To[int32](4)}
	}
	ofReplicatedJob := apart()
	ofReplicatedJob.Spec.ReplicatedJobs[0].Template.Annotations = map[string]string{jobset.ExclusiveKey: "row"}
	inARow := slices()
	inARow.PodSetSliceRequiredTopology = ptr.To("row")
	inABlock := apart()
	inABlock.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{kueue.PodSetRequiredTopologyAnnotation: "block"}
	within := slices()
	within.Required = ptr.To("block")
	noIndex := apart()
	noIndex.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
	withoutIndex := slices()
	withoutIndex.PodIndexLabel = nil
	for name, tc := range map[string]struct {
		js   *jobset.JobSet
		want *kueue.PodSetTopologyRequest
		key  string
	}{
		"by the JobSet":                     {apart(), slices(), "rack"},
		"by the replicated job, which wins": {ofReplicatedJob, inARow, "row"},
		"within a domain for all of them":   {inABlock, within, "rack"},
		"without an index of their pods":    {noIndex, withoutIndex, "rack"},
		"not at all":                        {twoByFour(), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := describe(tc.js, jobs.Facts{})
			if d.Mistake != nil {
				t.Fatal(d.Mistake.Message)
			}
			same(t, "request", tc.want, d.PodSets[0].TopologyRequest)
			same(t, "annotation of the pod set", tc.key, d.PodSets[0].Template.Annotations[jobset.ExclusiveKey])
		})
	}
}

func TestMistakesInExclusivePlacement(t *testing.T) {
	both := apart()
	both.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{
		kueue.PodSetSliceRequiredTopologyAnnotation: "rack", kueue.PodSetSliceSizeAnnotation: "2"}
	noLabel := apart()
	noLabel.Annotations[jobset.ExclusiveKey] = "a rack"
	for name, tc := range map[string]struct {
		js   *jobset.JobSet
		want string
	}{
		"slices of one's own": {both, "cannot be combined with other slices"},
		"no key of a label":   {noLabel, "it must be the key of a node label"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := describe(tc.js, jobs.Facts{}); d.Mistake == nil || !strings.Contains(d.Mistake.Message, tc.want) {
				t.Errorf("got %+v", d.Mistake)
			}
		})
	}
}

// company is what a template asks of other pods: with whom, and away from whom.
func company(template corev1.PodTemplateSpec) (with, away []corev1.PodAffinityTerm) {
	if a := template.Spec.Affinity; a != nil && a.PodAffinity != nil {
		with = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a := template.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		away = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return with, away
}

func TestExclusiveJobsWithoutPlacesUsePodAffinity(t *testing.T) {
	quotaOnly := grantPlaces()
	for name, admission := range map[string]jobs.Admission{"without a queue": unqueued, "with quota alone": quotaOnly} {
		t.Run(name, func(t *testing.T) {
			p := look(t, apart(), admission, nil)
			for _, job := range []string{"js-workers-0", "js-workers-1"} {
				with, away := company(createdJob(t, p, job).Spec.Template)
				same(t, "with", []corev1.PodAffinityTerm{{TopologyKey: "rack", NamespaceSelector: &metav1.LabelSelector{},
					LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpIn, Values: []string{jobKey(job)}}}}}}, with)
				same(t, "away from", []corev1.PodAffinityTerm{{TopologyKey: "rack", NamespaceSelector: &metav1.LabelSelector{},
					LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpExists},
						{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{jobKey(job)}},
						{Key: jobset.PriorityKey, Operator: metav1.LabelSelectorOpIn, Values: []string{"0"}}}}}}, away)
			}
		})
	}
}

func TestNegativePriorityIsNoLabel(t *testing.T) {
	js := apart()
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.PriorityClassName = "low"
	a := newPlanner(seenOf(js, unqueued, nil))
	a.seen.Facts.Priorities.Pod = map[string]*schedulingv1.PriorityClass{"low": {Value: -1}}
	template := a.newJob(&js.Spec.ReplicatedJobs[0], 0).Spec.Template
	if value, ok := template.Labels[jobset.PriorityKey]; ok {
		t.Errorf("priority %q", value)
	}
	if _, away := company(template); len(away) != 1 || len(away[0].LabelSelector.MatchExpressions) != 2 {
		t.Errorf("away from %+v", away)
	}
}

func TestPodAffinityOfTheTemplateStays(t *testing.T) {
	js := apart()
	own := corev1.PodAffinityTerm{TopologyKey: "zone"}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
	_, away := company(createdJob(t, look(t, js, unqueued, nil), "js-workers-0").Spec.Template)
	if len(away) != 2 || away[0].TopologyKey != "zone" {
		t.Errorf("away from %+v", away)
	}
}

func TestExclusiveJobWithPlacesSelectsItsDomain(t *testing.T) {
	p := look(t, apart(), grantPlaces(on("a", 2), on("b", 2), on("c", 4)), nil)
	for job, rack := range map[string]string{"js-workers-0": "r1", "js-workers-1": "r2"} {
		template := createdJob(t, p, job).Spec.Template
		if got := template.Spec.NodeSelector["rack"]; got != rack {
			t.Errorf("%s selects rack %q, want %s", job, got, rack)
		}
		if with, away := company(template); len(with)+len(away) > 0 {
			t.Errorf("%s asks of other pods %v, %v", job, with, away)
		}
		if got := template.Annotations[jobset.ExclusiveKey]; got != "rack" {
			t.Errorf("%s has annotation %q", job, got)
		}
	}
	same(t, "nodes", []string{"a", "b"}, hostNames(createdJob(t, p, "js-workers-0").Spec.Template.Spec))
}

func TestJobMovesIfARepairChangesItsDomain(t *testing.T) {
	gated := grantPlaces(on("a", 1), on("b", 3), on("c", 4))
	p := look(t, apart(), gated, nil)
	first, second := createdJob(t, p, "js-workers-0"), createdJob(t, p, "js-workers-1")
	same(t, "gates", 1, len(first.Spec.Template.Spec.SchedulingGates))
	js := apart()
	js.Status.Conditions = statusOf(p).Conditions
	p = look(t, js, grantPlaces(on("d", 1), on("c", 3), on("c", 4)), []client.Object{service(), first, second})
	same(t, "writes", []string{"change Job js-workers-0, suspended"}, writes(p))
}

func TestManuallyLabelledNodesAreUsed(t *testing.T) {
	toleration := corev1.Toleration{Key: jobset.NoScheduleTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	for name, admission := range map[string]jobs.Admission{"without a queue": unqueued, "with places": grantPlaces(on("a", 4), on("c", 4))} {
		t.Run(name, func(t *testing.T) {
			template := createdJob(t, look(t, byHand(), admission, nil), "js-workers-1").Spec.Template
			same(t, "node selector", map[string]string{jobset.NamespacedJobKey: "ns_js-workers-1"}, template.Spec.NodeSelector)
			same(t, "tolerations", []corev1.Toleration{toleration}, template.Spec.Tolerations)
			if with, away := company(template); len(with)+len(away)+len(template.Spec.SchedulingGates) > 0 {
				t.Errorf("it asks for more: %+v", template.Spec)
			}
		})
	}
	podSet := describe(byHand(), jobs.Facts{}).PodSets[0]
	same(t, "request", nil, podSet.TopologyRequest)
	same(t, "tolerations", []corev1.Toleration{toleration}, podSet.Template.Spec.Tolerations)
	terms := podSet.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || !slices.Equal(terms[0].MatchExpressions[0].Values, []string{"ns_js-workers-0", "ns_js-workers-1"}) {
		t.Errorf("it asks for %+v", terms)
	}
}

func TestJobIsRecreatedIfItsPodAffinityChanges(t *testing.T) {
	had := createdJob(t, look(t, apart(), grantPlaces(on("a", 4), on("c", 4)), nil), "js-workers-0")
	had.Spec.Suspend = ptr.To(true)
	same(t, "writes", []string{"delete Job js-workers-0"}, writes(look(t, apart(), grantPlaces(), []client.Object{service(), had, job("workers", 1).ready().job})))
}
