package jobset

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// Summary returns what lists of jobs say of a JobSet with these Jobs.
func Summary(js *jobset.JobSet, children []*batchv1.Job) jobs.Summary {
	s := jobs.Summary{
		Queue:    cmp.Or(js.Labels[kueue.QueueLabel], js.Annotations[kueue.QueueAnnotation]),
		Restarts: js.Status.Restarts, PartName: "single Jobs",
		Suspended: ptr.Deref(js.Spec.Suspend, false), SizeFromSpec: true,
	}
	for rj := range pointers.To(js.Spec.ReplicatedJobs) {
		s.Parts = append(s.Parts, jobs.SummaryPart{Name: kueue.PodSetReference(rj.Name), Pods: podCount(rj)})
		s.Ask(podCount(rj), &rj.Template.Spec.Template)
	}
	for _, job := range children {
		s.CountPodsOf(job)
	}
	if c := outcomeCondition(js); c != nil {
		s.End(c.Type == string(jobset.JobSetCompleted), c.Reason, c.Message, c.LastTransitionTime)
	}
	if c := meta.FindStatusCondition(js.Status.Conditions, muster.CannotStartCondition); c != nil &&
		c.Status == metav1.ConditionTrue {
		s.Blocked = c.Message
	}
	for entry := range pointers.To(js.Status.ReplicatedJobsStatus) {
		for _, restarts := range entry.JobRestarts {
			s.PartRestarts += restarts
		}
	}
	s.NoteManager(js.Spec.ManagedBy, jobset.JobSetControllerName)
	return s
}
