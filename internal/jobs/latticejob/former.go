package latticejob

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// Objects of earlier specs stay until the LatticeJob is deleted. Most of them do nothing, but a mesh member
// keeps its task in the service graph, and a TracingPolicy kills what it does not list in the pods of the
// new spec, their entrypoints first.

// removeFormer removes the mesh members and TracingPolicies that the job's tasks had by an earlier spec and
// do not have by this one. There may be no VCJob of the earlier spec: it could not be applied, or is gone.
func (l *planner) removeFormer(result *compile.Result) (out []jobs.Write) {
	if l.job.Generation <= 1 {
		return nil // there was no earlier spec
	}
	wanted := map[string]bool{}
	for _, object := range result.Objects {
		wanted[object.GetObjectKind().GroupVersionKind().Kind+"/"+object.GetName()] = true
	}
	for i := range result.VCJob.Spec.Tasks {
		for _, o := range l.actingOn(result.VCJob.Spec.Tasks[i].Name) {
			if !wanted[o.GetKind()+"/"+o.GetName()] {
				out = append(out, jobs.Remove(o))
			}
		}
	}
	return out
}

// removePoliciesOfGoneTasks removes the TracingPolicies of tasks with which the VCJob was made and which the
// spec does not have any more; the VCJob, which is to be deleted, alone has their names. Its pods must not run.
func (l *planner) removePoliciesOfGoneTasks() (out []jobs.Write) {
	if !l.seen.Facts.Served[compile.TracingPolicies] {
		return nil
	}
	for i := range l.vcjob.Spec.Tasks {
		name := l.vcjob.Spec.Tasks[i].Name
		if _, there := l.job.Spec.Tasks[name]; !there {
			out = append(out, jobs.Remove(compile.TracingPolicy(l.job, name)))
		}
	}
	return out
}

// actingOn returns the objects that act on pods of the task by their labels, of the kinds that the cluster
// serves. They need not exist.
func (l *planner) actingOn(task string) (out []*unstructured.Unstructured) {
	if l.seen.Facts.Served[compile.MeshMembers] {
		out = append(out, compile.MeshMember(l.job, task))
	}
	if l.seen.Facts.Served[compile.TracingPolicies] {
		out = append(out, compile.TracingPolicy(l.job, task))
	}
	return out
}
