package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

func TestParseName(t *testing.T) {
	tests := []struct {
		text string
		want Name
		bad  bool
	}{
		{text: "pytorch", want: Name{Name: "pytorch"}},
		{text: "jobset/pytorch", want: Name{Kind: "jobset", Name: "pytorch"}},
		{text: "JobSets/pytorch", want: Name{Kind: "jobset", Name: "pytorch"}},
		{text: "jobset.jobset.x-k8s.io/pytorch", want: Name{Kind: "jobset", Name: "pytorch"}},
		{text: "kwl/sample-job", want: Name{Kind: "workload", Name: "sample-job"}},
		{text: "lj/llm-finetune", want: Name{Kind: "latticejob", Name: "llm-finetune"}},
		{text: "vj/mpi", want: Name{Kind: "vcjob", Name: "mpi"}},
		{text: "jobs.batch.volcano.sh/mpi", want: Name{Kind: "vcjob", Name: "mpi"}},
		{text: "jobs.v1alpha1.batch.volcano.sh/mpi", want: Name{Kind: "vcjob", Name: "mpi"}},
		{text: "jobs.batch/mpi", want: Name{Kind: "job", Name: "mpi"}},
		{text: "ml/jobset/pytorch", want: Name{Namespace: "ml", Kind: "jobset", Name: "pytorch"}},
		{text: "", bad: true},
		{text: "jobset/", bad: true},
		{text: "a/b/c/d", bad: true},
	}
	for _, test := range tests {
		got, err := ParseName(test.text)
		if (err != nil) != test.bad {
			t.Errorf("ParseName(%q): error %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("ParseName(%q) differs (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestFind(t *testing.T) {
	jobs := []Job{
		{Namespace: "ml", Kind: "JobSet", Name: "x", Workload: "jobset-x-abcde"},
		{Namespace: "ml", Kind: "Job", Name: "x"},
		{Namespace: "ml", Kind: "JobSet", Name: "y"},
		{Namespace: "lab", Kind: "JobSet", Name: "x"},
	}
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"an ambiguous name", "x", []string{"ml/jobset/x", "ml/job/x"}},
		{"a kind and a name", "job/x", []string{"ml/job/x"}},
		{"an unambiguous name", "y", []string{"ml/jobset/y"}},
		{"the name of a Workload", "workload/jobset-x-abcde", []string{"ml/jobset/x"}},
		{"a missing job", "jobset/z", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			name, err := ParseName(test.text)
			if err != nil {
				t.Fatal(err)
			}
			name.Namespace = "ml"
			var got []string
			for _, job := range Find(jobs, name) {
				got = append(got, job.FullTitle())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("found differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFindOwner: a part of a job leads to the job.
func TestFindOwner(t *testing.T) {
	part := func(name, ownerKind, owner string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ml", Name: name,
			OwnerReferences: []metav1.OwnerReference{{Kind: ownerKind, Name: owner, Controller: ptr.To(true)}}}
	}
	snapshot := &Snapshot{
		Jobs: []batchv1.Job{{ObjectMeta: part("x-workers-0", "JobSet", "x")},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "own"}}},
		VCJobs: []volcano.Job{{ObjectMeta: part("tune", "LatticeJob", "tune")}},
	}
	for text, want := range map[string][]Name{
		"x-workers-0":         {{"ml", "jobset", "x"}},
		"job/x-workers-0":     {{"ml", "jobset", "x"}},
		"jobset/x-workers-0":  nil,
		"lab/job/x-workers-0": nil,
		"vcjob/tune":          {{"ml", "latticejob", "tune"}},
		"own":                 nil,
	} {
		name, err := ParseName(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, FindOwner(snapshot, name)); diff != "" {
			t.Errorf("owners of %s differ (-want +got):\n%s", text, diff)
		}
	}
}
