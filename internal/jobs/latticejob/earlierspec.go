package latticejob

import (
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
)

// removeOfEarlierSpecs removes the mesh members and TracingPolicies that the job had by an earlier spec and does not
// have by this one. Objects of earlier specs stay until the LatticeJob is deleted, and most of them do nothing. But a
// mesh member keeps its task in the service graph, and a TracingPolicy kills all programs in the pods of the new spec
// that it does not list, their entrypoints first. They are listed, as nothing may have the names of their tasks any
// more: the VCJob of the earlier spec could not be applied, or is gone.
func (v *view) removeOfEarlierSpecs(result *compile.Result) (out []write.Write) {
	if v.job.Generation <= 1 {
		return nil // there was no earlier spec
	}
	wanted := map[string][]string{}
	for _, object := range result.Objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		wanted[kind] = append(wanted[kind], object.GetName())
	}
	if v.seen.Facts.Served[compile.MeshMembers] {
		out = append(out, write.RemoveAll(compile.MeshMembersIn(v.job.Namespace), wanted[compile.MeshMemberKind]...))
	}
	if v.seen.Facts.Served[compile.TracingPolicies] {
		out = append(out, write.RemoveAll(compile.TracingPoliciesIn(v.job.Namespace), wanted[compile.TracingPolicyKind]...))
	}
	return out
}
