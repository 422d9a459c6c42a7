package view

import (
	"fmt"
	"slices"
	"strings"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// Name is how people name a job: [namespace/][kind/]name.
type Name struct {
	Namespace, Kind, Name string // Namespace and Kind may be empty
}

// ParseName reads pytorch, jobset/pytorch, ml/jobset/pytorch, and the forms of the kind that kubectl takes: jobsets,
// jobset.jobset.x-k8s.io. The namespace, when given with -n, stands in front.
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

// kindWord brings the forms of a kind to one: lower case, singular, without the group.
func kindWord(word string) string {
	word, group, _ := strings.Cut(strings.ToLower(word), ".")
	switch word {
	case "kwl", "wl", "kueueworkload", "kueueworkloads":
		return "workload"
	case "job", "jobs":
		if strings.HasSuffix(group, volcano.GroupVersion.Group) {
			return "vcjob" // as its API calls it
		}
	case "lj":
		return "latticejob"
	case "vj":
		return "vcjob"
	}
	return strings.TrimSuffix(word, "s")
}

// KindWords are the words for the kinds of jobs, those of jobs of other kinds that queue here among them.
func KindWords(jobs []Job) []string {
	words := []string{"jobset", "genericjob", "trainingjob", "latticejob", "vcjob", "job", "workload"}
	for i := range jobs {
		if word := kindWord(jobs[i].Kind); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// Find gives the jobs of that name; more than one if the name is ambiguous. A Workload's name finds the job that it
// queues for.
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
	return found
}
