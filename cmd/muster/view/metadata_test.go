package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// TestJobsOfMetadata: shell completion reads no more of jobs than their metadata.
func TestJobsOfMetadata(t *testing.T) {
	named := func(uid types.UID) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ml", Name: "a", UID: uid} }
	made := metav1.ObjectMeta{Namespace: "ml", Name: "a-w-0", UID: "8", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: jobset.GroupVersion.String(), Kind: "JobSet", Name: "a", UID: "1", Controller: ptr.To(true)},
	}}
	jobs := Jobs(&Snapshot{
		JobSets:      []jobset.JobSet{{ObjectMeta: named("1")}},
		GenericJobs:  []tensorstack.GenericJob{{ObjectMeta: named("2")}},
		TrainingJobs: []breezeml.TrainingJob{{ObjectMeta: named("3")}},
		LatticeJobs:  []lattice.LatticeJob{{ObjectMeta: named("4")}},
		VCJobs:       []volcano.Job{{ObjectMeta: named("5")}},
		Jobs:         []batchv1.Job{{ObjectMeta: named("6")}, {ObjectMeta: made}},
		Workloads:    []kueue.Workload{{ObjectMeta: named("7")}},
	}, time.Now())
	var titles []string
	for i := range jobs {
		titles = append(titles, jobs[i].Title())
	}
	want := []string{"genericjob/a", "job/a", "jobset/a", "latticejob/a", "trainingjob/a", "vcjob/a", "workload/a"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Error(diff)
	}
}
