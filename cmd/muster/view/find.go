package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// Name identifies a job as users type it: [[namespace/]kind/]name.
type Name struct {
	Namespace, Kind, Name string // Namespace and Kind may be empty
}

// ParseName parses pytorch, jobset/pytorch and ml/jobset/pytorch; the kind may have any form that kubectl accepts:
// jobsets, jobset.jobset.x-k8s.io.
func ParseName(text string) (Name, error) {
	parts := strings.Split(text, "/")
	for _, part := range parts {
		if part == "" {
			return Name{}, fmt.Errorf("%q is not the name of a job: write name, kind/name or namespace/kind/name", text)
		}
	}
	switch len(parts) {
	case 1:
		return Name{Name: parts[0]}, nil
	case 2:
		return Name{Kind: kindWord(parts[0]), Name: parts[1]}, nil
	case 3:
		return Name{Namespace: parts[0], Kind: kindWord(parts[1]), Name: parts[2]}, nil
	}
	return Name{}, fmt.Errorf("%q is not the name of a job: write name, kind/name or namespace/kind/name", text)
}

// kindWord normalizes the forms of a kind: lower case, singular, without the group.
func kindWord(word string) string {
	word, group, _ := strings.Cut(strings.ToLower(word), ".")
	switch word {
	case "kwl", "wl", "kueueworkload", "kueueworkloads":
		return "workload"
	case "job", "jobs":
		if strings.HasSuffix(group, volcano.GroupVersion.Group) {
			return "vcjob" // the short name that its API defines
		}
	case "lj":
		return "latticejob"
	case "vj":
		return "vcjob"
	}
	return strings.TrimSuffix(word, "s")
}

// KindWords returns the words for kinds of jobs, including kinds of other controllers whose jobs queue here.
func KindWords(jobs []Job) []string {
	words := []string{"jobset", "genericjob", "trainingjob", "latticejob", "vcjob", "job", "workload"}
	for i := range jobs {
		if word := kindWord(jobs[i].Kind); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// Find returns the jobs of that name; more than one if the name is ambiguous. With kind workload, the name of a
// Workload finds the job that it belongs to. With kind job, it finds jobs of other kinds if no Job has the name: users
// say job for every kind.
func Find(jobs []Job, name Name) []Job {
	var found []Job
	for _, job := range jobs {
		if name.Namespace != "" && job.Namespace != name.Namespace {
			continue
		}
		itself := job.Name == name.Name && (name.Kind == "" || kindWord(job.Kind) == name.Kind)
		byWorkload := job.Workload == name.Name && name.Kind == "workload"
		if itself || byWorkload {
			found = append(found, job)
		}
	}
	if len(found) == 0 && name.Kind == "job" {
		return Find(jobs, Name{Namespace: name.Namespace, Name: name.Name})
	}
	return found
}

// ExplainsItself reports whether the jobs of that name, all of which the snapshot has, are one whose explanation needs
// no other job: it may run and has its Workload, or is over.
func ExplainsItself(snapshot *Snapshot, name Name, now time.Time) bool {
	found := Find(Jobs(snapshot, now), name)
	if len(found) != 1 {
		return false
	}
	switch job := &found[0]; job.State {
	case Completed, Failed:
		return true
	case Running, Starting, Admitted:
		return job.Workload != "" || job.Queue == ""
	}
	return false
}

// FindOwner returns the names of the jobs that created the batch Jobs and VCJobs of that name: kubectl lists these,
// though they are only parts of a job.
func FindOwner(snapshot *Snapshot, name Name) (owners []Name) {
	add := func(kind string, part metav1.Object) {
		owner := metav1.GetControllerOf(part)
		if owner == nil || part.GetName() != name.Name || name.Namespace != "" && part.GetNamespace() != name.Namespace {
			return
		}
		if name.Kind == "" || name.Kind == kind || name.Kind == "job" {
			owners = append(owners, Name{Namespace: part.GetNamespace(), Kind: kindWord(owner.Kind), Name: owner.Name})
		}
	}
	for i := range snapshot.Jobs {
		add("job", &snapshot.Jobs[i])
	}
	for i := range snapshot.VCJobs {
		add("vcjob", &snapshot.VCJobs[i])
	}
	return owners
}
