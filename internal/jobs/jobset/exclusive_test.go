package jobset

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// exclusiveSet returns a JobSet of two Jobs of four pods, each of which needs a rack of its own.
func exclusiveSet() *jobset.JobSet {
	js := twoByFour()
	js.Annotations = map[string]string{jobset.ExclusiveKey: "rack"}
	return js
}

// manuallyLabelled returns exclusiveSet with the strategy by which users label the nodes.
func manuallyLabelled() *jobset.JobSet {
	js := exclusiveSet()
	js.Annotations[jobset.NodeSelectorStrategyKey] = "true"
	return js
}

// jobKey returns the value of the label job-key for a Job.
func jobKey(name string) string {
	sum := sha1.Sum([]byte("ns/" + name))
	return hex.EncodeToString(sum[:])
}

func TestExclusiveJobsAskForASliceEach(t *testing.T) {
	slices := func() *kueue.PodSetTopologyRequest {
		return &kueue.PodSetTopologyRequest{
			PodIndexLabel: ptr.To(batchv1.JobCompletionIndexAnnotation), SubGroupIndexLabel: ptr.To(jobset.JobIndexKey),
			SubGroupCount:               ptr.To[int32](2),
			PodSetSliceRequiredTopology: ptr.To("rack"), PodSetSliceSize: ptr.To[int32](4)}
	}
	ofReplicatedJob := exclusiveSet()
	ofReplicatedJob.Spec.ReplicatedJobs[0].Template.Annotations = map[string]string{jobset.ExclusiveKey: "row"}
	inARow := slices()
	inARow.PodSetSliceRequiredTopology = ptr.To("row")
	inABlock := exclusiveSet()
	inABlock.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations =
		map[string]string{kueue.PodSetRequiredTopologyAnnotation: "block"}
	within := slices()
	within.Required = ptr.To("block")
	noIndex := exclusiveSet()
	noIndex.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
	withoutIndex := slices()
	withoutIndex.PodIndexLabel = nil
	for name, tc := range map[string]struct {
		js   *jobset.JobSet
		want *kueue.PodSetTopologyRequest
		key  string
	}{
		"annotation of the JobSet":                         {exclusiveSet(), slices(), "rack"},
		"annotation of the replicated job too, which wins": {ofReplicatedJob, inARow, "row"},
		"all Jobs within one domain":                       {inABlock, within, "rack"},
		"pods without an index":                            {noIndex, withoutIndex, "rack"},
		"no annotation":                                    {twoByFour(), nil, ""},
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
	both := exclusiveSet()
	both.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{
		kueue.PodSetSliceRequiredTopologyAnnotation: "rack", kueue.PodSetSliceSizeAnnotation: "2"}
	noLabel := exclusiveSet()
	noLabel.Annotations[jobset.ExclusiveKey] = "a rack"
	for name, tc := range map[string]struct {
		js   *jobset.JobSet
		want string
	}{
		"slices of the user's own":   {both, "cannot be combined with other slices"},
		"level that is no label key": {noLabel, "it must be the key of a node label"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := describe(tc.js, jobs.Facts{}); d.Mistake == nil || !strings.Contains(d.Mistake.Message, tc.want) {
				t.Errorf("mistake = %+v, want %q", d.Mistake, tc.want)
			}
		})
	}
}

// podAffinity returns the required pod affinity and anti-affinity terms of a template.
func podAffinity(template corev1.PodTemplateSpec) (affinity, antiAffinity []corev1.PodAffinityTerm) {
	if a := template.Spec.Affinity; a != nil && a.PodAffinity != nil {
		affinity = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a := template.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		antiAffinity = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return affinity, antiAffinity
}

func TestExclusiveJobsWithoutPlacesUsePodAffinity(t *testing.T) {
	quotaOnly := grantPlaces()
	for name, admission := range map[string]jobs.Admission{"without a queue": unqueued,
		"with quota but no places": quotaOnly} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, exclusiveSet(), admission, nil)
			for _, job := range []string{"js-workers-0", "js-workers-1"} {
				affinity, antiAffinity := podAffinity(createdJob(t, p, job).Spec.Template)
				same(t, "affinity", []corev1.PodAffinityTerm{{TopologyKey: "rack", NamespaceSelector: &metav1.LabelSelector{},
					LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpIn, Values: []string{jobKey(job)}}}}}}, affinity)
				same(t, "anti-affinity", []corev1.PodAffinityTerm{{TopologyKey: "rack", NamespaceSelector: &metav1.LabelSelector{},
					LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpExists},
						{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{jobKey(job)}},
						{Key: jobset.PriorityKey, Operator: metav1.LabelSelectorOpIn, Values: []string{"0"}}}}}}, antiAffinity)
			}
		})
	}
}

func TestNegativePriorityIsNoLabel(t *testing.T) {
	js := exclusiveSet()
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.PriorityClassName = "low"
	a := newPlanner(seenOf(js, unqueued, nil))
	a.seen.Facts.Priorities.Pod = map[string]*schedulingv1.PriorityClass{"low": {Value: -1}}
	template := a.newJob(&js.Spec.ReplicatedJobs[0], 0).Spec.Template
	if value, ok := template.Labels[jobset.PriorityKey]; ok {
		t.Errorf("the priority label is %q, want none", value)
	}
	if _, terms := podAffinity(template); len(terms) != 1 || len(terms[0].LabelSelector.MatchExpressions) != 2 {
		t.Errorf("anti-affinity = %+v, want one term with two expressions", terms)
	}
}

func TestPodAffinityOfTheTemplateStays(t *testing.T) {
	js := exclusiveSet()
	own := corev1.PodAffinityTerm{TopologyKey: "zone"}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
	_, terms := podAffinity(createdJob(t, checkedPlan(t, js, unqueued, nil), "js-workers-0").Spec.Template)
	if len(terms) != 2 || terms[0].TopologyKey != "zone" {
		t.Errorf("anti-affinity = %+v, want the template's own term and another", terms)
	}
}

func TestExclusiveJobWithPlacesSelectsItsDomain(t *testing.T) {
	p := checkedPlan(t, exclusiveSet(), grantPlaces(on("a", 2), on("b", 2), on("c", 4)), nil)
	for job, rack := range map[string]string{"js-workers-0": "r1", "js-workers-1": "r2"} {
		template := createdJob(t, p, job).Spec.Template
		if got := template.Spec.NodeSelector["rack"]; got != rack {
			t.Errorf("%s selects rack %q, want %s", job, got, rack)
		}
		if affinity, antiAffinity := podAffinity(template); len(affinity)+len(antiAffinity) > 0 {
			t.Errorf("%s has affinity %v and anti-affinity %v, want none", job, affinity, antiAffinity)
		}
		if got := template.Annotations[jobset.ExclusiveKey]; got != "rack" {
			t.Errorf("%s has the annotation %q, want rack", job, got)
		}
	}
	same(t, "nodes", []string{"a", "b"}, hostNames(createdJob(t, p, "js-workers-0").Spec.Template.Spec))
}

// TestJobMovesIfARepairChangesItsDomain: a Job whose replaced places are in another rack is suspended, to be started
// there.
func TestJobMovesIfARepairChangesItsDomain(t *testing.T) {
	gated := grantPlaces(on("a", 1), on("b", 3), on("c", 4))
	p := checkedPlan(t, exclusiveSet(), gated, nil)
	first, second := createdJob(t, p, "js-workers-0"), createdJob(t, p, "js-workers-1")
	same(t, "gates", 1, len(first.Spec.Template.Spec.SchedulingGates))
	js := exclusiveSet()
	js.Status.Conditions = statusOf(p).Conditions
	p = checkedPlan(t, js, grantPlaces(on("d", 1), on("c", 3), on("c", 4)), []client.Object{service(), first, second})
	same(t, "writes", []string{"change Job js-workers-0, suspended"}, writes(p))
	same(t, "events", []string{"Warning Moved: The pods of Job js-workers-0 are stopped and started again: " +
		"its pod template selects nodes with rack=r1, and the nodes it was given have r2"}, events(p)[:1])
}

// TestARenamedDomainDoesNotStopReadyPods: only when a pod is missing, whose replacement would look for the old name, is
// the Job started again.
func TestARenamedDomainDoesNotStopReadyPods(t *testing.T) {
	before := grantPlaces(on("a", 2), on("b", 2), on("c", 4))
	p := checkedPlan(t, exclusiveSet(), before, nil)
	first, second := createdJob(t, p, "js-workers-0"), createdJob(t, p, "js-workers-1")
	js := exclusiveSet()
	js.Status.Conditions = statusOf(p).Conditions
	renamed := grantPlaces(on("a", 2), on("b", 2), on("c", 4))
	for _, name := range []string{"a", "b"} {
		renamed.PodSets["workers"].Nodes[name].Labels["rack"] = "new"
	}
	for _, job := range []*batchv1.Job{first, second} {
		job.Status.Active, job.Status.Ready = 4, ptr.To[int32](4)
	}
	same(t, "writes while all pods are ready", nil,
		writes(checkedPlan(t, js, renamed, []client.Object{service(), first, second})))
	first.Status.Ready = ptr.To[int32](3)
	p = checkedPlan(t, js, renamed, []client.Object{service(), first, second})
	same(t, "writes while a pod is not ready", []string{"change Job js-workers-0, suspended"}, writes(p))
	same(t, "events", []string{"Warning Moved: The pods of Job js-workers-0 are stopped and started again: " +
		"its pod template selects nodes with rack=r1, and the nodes it was given have new"}, events(p)[:1])
}

func TestManuallyLabelledNodesAreUsed(t *testing.T) {
	toleration := corev1.Toleration{Key: jobset.NoScheduleTaintKey, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoSchedule}
	for name, admission := range map[string]jobs.Admission{"without a queue": unqueued,
		"with places": grantPlaces(on("a", 4), on("c", 4))} {
		t.Run(name, func(t *testing.T) {
			template := createdJob(t, checkedPlan(t, manuallyLabelled(), admission, nil), "js-workers-1").Spec.Template
			same(t, "node selector", map[string]string{jobset.NamespacedJobKey: "ns_js-workers-1"}, template.Spec.NodeSelector)
			same(t, "tolerations", []corev1.Toleration{toleration}, template.Spec.Tolerations)
			if affinity, antiAffinity := podAffinity(template); len(affinity)+len(antiAffinity)+
				len(template.Spec.SchedulingGates) > 0 {
				t.Errorf("the template has pod affinity or gates: %+v", template.Spec)
			}
		})
	}
	podSet := describe(manuallyLabelled(), jobs.Facts{}).PodSets[0]
	same(t, "request", nil, podSet.TopologyRequest)
	same(t, "tolerations", []corev1.Toleration{toleration}, podSet.Template.Spec.Tolerations)
	terms := podSet.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 ||
		!slices.Equal(terms[0].MatchExpressions[0].Values, []string{"ns_js-workers-0", "ns_js-workers-1"}) {
		t.Errorf("node affinity of the pod set = %+v, want the nodes of both Jobs", terms)
	}
}

func TestJobIsRecreatedIfItsPodAffinityChanges(t *testing.T) {
	old := createdJob(t, checkedPlan(t, exclusiveSet(), grantPlaces(on("a", 4), on("c", 4)), nil), "js-workers-0")
	old.Spec.Suspend = ptr.To(true)
	same(t, "writes", []string{"delete Job js-workers-0"},
		writes(checkedPlan(t, exclusiveSet(), grantPlaces(), []client.Object{service(), old, job("workers", 1).ready().job})))
}
