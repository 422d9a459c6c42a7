package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/cmd/muster/view"
)

// expectedEnds maps the kinds that are jobs to the state in which they should end. A bare Workload stays Admitted,
// since no controller starts pods for it here.
var expectedEnds = map[schema.GroupKind]view.State{
	{Group: jobset.GroupVersion.Group, Kind: "JobSet"}:          view.Completed,
	{Group: tensorstack.GroupVersion.Group, Kind: "GenericJob"}: view.Completed,
	{Group: breezeml.DefaultGroup, Kind: "TrainingJob"}:         view.Completed,
	{Group: lattice.GroupVersion.Group, Kind: "LatticeJob"}:     view.Completed,
	{Group: volcano.GroupVersion.Group, Kind: "Job"}:            view.Completed,
	{Group: batchv1.GroupName, Kind: "Job"}:                     view.Completed,
	{Group: kueue.GroupVersion.Group, Kind: "Workload"}:         view.Admitted,
}

// expectation is one applied job and the state that it should end in.
type expectation struct {
	namespace, title string
	end              view.State
}

// expect returns the expectation for an applied object; false if it is not a job.
func expect(object *unstructured.Unstructured) (expectation, bool) {
	end, isJob := expectedEnds[object.GroupVersionKind().GroupKind()]
	title := strings.ToLower(object.GetKind()) + "/" + object.GetName()
	if object.GroupVersionKind().Group == volcano.GroupVersion.Group {
		title = "vc" + title // VCJob, not batch/v1 Job
	}
	return expectation{namespace: object.GetNamespace(), title: title, end: end}, isJob
}

// standing compares the expected jobs with their state at one time.
type standing struct {
	jobs     []view.Job // the expected ones that exist, in the order in which they started
	open     []string   // titles of jobs that have not ended
	answered bool       // the operator has admitted each, or reported why it waits
	wrong    []string   // titles of jobs with an unexpected end, and the reason
}

// judge compares jobs with their expectations.
func judge(expected []expectation, jobs []view.Job) standing {
	s := standing{answered: true}
	for _, e := range expected {
		i := slices.IndexFunc(jobs, func(job view.Job) bool { return job.Namespace == e.namespace && job.Title() == e.title })
		if i < 0 {
			s.open, s.answered = append(s.open, e.namespace+"/"+e.title), false
			continue
		}
		job := jobs[i]
		s.jobs = append(s.jobs, job)
		s.answered = s.answered && hasAnswer(&job)
		switch {
		case job.State == e.end:
		case job.State.HasOutcome():
			s.wrong = append(s.wrong,
				fmt.Sprintf("%s is %s, expected %s: %s", job.FullTitle(), job.State, e.end, cmp.Or(job.Why(), "no reason given")))
		default:
			s.open = append(s.open, job.FullTitle())
		}
	}
	slices.SortStableFunc(s.jobs, func(a, b view.Job) int {
		switch {
		case a.StartedAt != nil && b.StartedAt != nil:
			return a.StartedAt.Compare(b.StartedAt.Time)
		case a.StartedAt != nil:
			return -1
		case b.StartedAt != nil:
			return 1
		}
		return 0
	})
	return s
}

// overtaken returns jobs that waited while a job of lower priority with equal requests in the same queue was admitted:
// the examples exist to show the order of priority. API times have whole seconds, so admissions within the second of a
// job's creation are ignored.
func overtaken(jobs []view.Job) []string {
	var wrong []string
	for i := range jobs {
		for j := range jobs {
			first, second := &jobs[i], &jobs[j]
			if first.ClusterQueue == "" || first.ClusterQueue != second.ClusterQueue || first.Priority <= second.Priority ||
				first.StartedAt == nil || second.StartedAt == nil || !maps.EqualFunc(first.Requests, second.Requests, sameAmount) {
				continue
			}
			if second.StartedAt.After(first.CreatedAt.Time) && second.StartedAt.Before(first.StartedAt) {
				wrong = append(wrong, fmt.Sprintf("%s (priority %d) waited while %s (priority %d) was served",
					first.FullTitle(), first.Priority, second.FullTitle(), second.Priority))
			}
		}
	}
	return wrong
}

func sameAmount(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// hasAnswer reports whether the operator has reconciled the job.
func hasAnswer(job *view.Job) bool { return job.State != view.Pending || job.Reason != "" }
