package controller_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobsetapi "github.com/musterhq/muster/api/jobset/v1alpha2"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	"github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
)

// largePods is a template of which each copy takes half a megabyte.
var largePods = corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
	Args: []string{strings.Repeat("a", 500_000)}}}}

// TestLargeChildrenAreCreatedInParts: a plan has no more copies of a template than fit into some megabytes.
func TestLargeChildrenAreCreatedInParts(t *testing.T) {
	const children, most = 60, 40
	set := newJobSet("")
	set.Spec.ReplicatedJobs = set.Spec.ReplicatedJobs[:1]
	set.Spec.ReplicatedJobs[0].Replicas = children
	set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec = largePods
	set.Spec.Network = &jobsetapi.Network{EnableDNSHostnames: ptr.To(false)}
	generic := newGenericJob("")
	generic.Spec.ReplicaSpecs, generic.Spec.Service = generic.Spec.ReplicaSpecs[:1], nil
	generic.Spec.ReplicaSpecs[0].Replicas = ptr.To[int32](children)
	generic.Spec.ReplicaSpecs[0].Template.Spec = largePods
	vc := newVCJob()
	vc.Spec.Tasks = vc.Spec.Tasks[:1]
	vc.Spec.Tasks[0].Replicas, vc.Spec.MinAvailable = children, children
	vc.Spec.Tasks[0].Template.Spec = largePods
	training := newTrainingJob()
	training.Spec.MinSize, training.Spec.MaxSize = ptr.To[int32](children), ptr.To[int32](children)
	training.Spec.ReplicaSpecs.Template.Spec = largePods
	admitted := func(podSet string) jobs.Admission {
		return jobs.Admission{Grant: jobs.Admitted,
			PodSets: map[string]jobs.PodSetAdmission{podSet: {Count: children, Asked: children, Left: children}}}
	}
	for kind, plan := range map[string]jobs.Plan{
		"JobSet": jobset.API.Plan(jobs.Seen[*jobsetapi.JobSet]{Job: set,
			Admission: jobs.Admission{Grant: jobs.Unqueued}, Now: epoch}),
		"GenericJob": genericjob.API.Plan(jobs.Seen[*tensorstack.GenericJob]{Job: generic,
			Admission: jobs.Admission{Grant: jobs.Unqueued}, Now: epoch}),
		"VCJob": vcjob.API.Plan(jobs.Seen[*volcano.Job]{Job: vc, Admission: admitted("master"), Now: epoch}),
		"TrainingJob": trainingjob.API(trainingSettings).Plan(jobs.Seen[*breezeml.TrainingJob]{Job: training,
			Admission: admitted("worker"), Now: epoch}),
	} {
		created := 0
		for _, write := range plan.Writes {
			if write.Verb() == "create" {
				created++
			}
		}
		if created < 10 || created > most || !plan.Unfinished {
			t.Errorf("a plan of a %s creates %d children of half a megabyte (unfinished: %t), want at most %d", kind, created,
				plan.Unfinished, most)
		}
	}
}

// TestAJobWithUnfinishedPlanIsPlannedAtOnce: no event need follow the children that were created.
func TestAJobWithUnfinishedPlanIsPlannedAtOnce(t *testing.T) {
	const children = 50
	generic := newGenericJob("")
	generic.Spec.ReplicaSpecs, generic.Spec.Service = generic.Spec.ReplicaSpecs[:1], nil
	generic.Spec.ReplicaSpecs[0].Replicas = ptr.To[int32](children)
	generic.Spec.ReplicaSpecs[0].Template.Spec = largePods
	w := newPodWorld(t, fault{}, of(genericjob.API), generic)
	var created int
	for created < children {
		result := w.reconcile()
		now := len(list[corev1.PodList](w.world).Items)
		if now == created || now < children && result.RequeueAfter != 1 {
			t.Fatalf("after %d and then %d pods, of %d, it is planned again after %s, want at once", created, now, children,
				result.RequeueAfter)
		}
		created = now
	}
}

// TestUsualChildrenAreCreatedAtOnce, but not those of many parts: to reconcile a job once more for each hundred of them
// would cost more than it spares.
func TestUsualChildrenAreCreatedAtOnce(t *testing.T) {
	container := corev1.Container{Name: "main", Image: "registry.example/team/trainer:1.2.3",
		Command: []string{"python3", "train.py"}}
	for range 20 {
		container.Env = append(container.Env,
			corev1.EnvVar{Name: "AN_OPTION_OF_THE_TRAINER", Value: "with a value of some length"})
	}
	var plan, large jobs.Plan
	for i := range 2_000 {
		var child client.Object = &batchv1.Job{
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}}}
		if !plan.CreateChild(child, jobs.FailedCreate) {
			t.Fatalf("only %d of 2,000 usual Jobs are created at once", i)
		}
	}
	// A text of empty arguments takes five times as much in memory.
	created := 0
	for large.CreateChild(&corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: make([]string, 20_000)}}}}, jobs.FailedCreate) {
		created++
	}
	if created > 60 || !large.Unfinished || len(large.Writes) != created {
		t.Errorf("%d pods of 320 KB are created at once, unfinished: %t", created, large.Unfinished)
	}
}
