package latticejob

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// New returns the LatticeJob API.
func New(settings Settings) jobs.API[*lattice.LatticeJob] {
	c := controller{settings}
	api := jobs.API[*lattice.LatticeJob]{
		Kind:           kind,
		PodLabel:       muster.JobUIDLabel,
		UnlabelledPods: unlabelledPods,
		Describe:       c.describe,
		Plan:           c.plan,
		Watch: jobs.Watch{
			Owns:     []client.Object{&lattice.LatticeJob{}}, // of a schedule
			Matters:  matters,
			Expected: expected,
		},
		Queueing: jobs.Queueing[*lattice.LatticeJob]{
			Rule:            jobs.QueueOptional,
			Delegates:       !settings.External,
			RequeuesChanged: settings.External,
		},
		Reads: jobs.Reads[*lattice.LatticeJob]{
			Kinds:        []schema.GroupResource{compile.ExternalSecrets, compile.MeshMembers, compile.TracingPolicies},
			Related:      related,
			NodeFeatures: nodeFeatures,
		},
	}
	if settings.External {
		// The kind comes with Volcano, which may be installed later.
		api.Watch.Optional = []jobs.OptionalKind{{Resource: volcanoJobs, Object: &volcano.Job{}}}
		api.Queueing.Field = func(job *lattice.LatticeJob) string { return job.Spec.Queue }
	} else {
		api.Watch.Owns = append(api.Watch.Owns, &volcano.Job{})
	}
	return api
}

// unlabelledPods selects the pods that Volcano creates for a VCJob with the name that was made before
// pods had a label with the UID of their job.
func unlabelledPods(name string) labels.Selector {
	of, err := labels.NewRequirement(volcano.JobNameKey, selection.Equals, []string{name})
	if err != nil {
		return labels.Nothing() // not a valid label value
	}
	without, err := labels.NewRequirement(muster.JobUIDLabel, selection.DoesNotExist, nil)
	if err != nil {
		return labels.Nothing()
	}
	return labels.NewSelector().Add(*of, *without)
}

// matters reports whether a change of the VCJob may change the status of the LatticeJob, or make it restore its
// objects.
func matters(before, after client.Object) bool {
	was, isJob := before.(*volcano.Job)
	is, stillJob := after.(*volcano.Job)
	if !isJob || !stillJob {
		return true
	}
	return was.Status.State.Phase != is.Status.State.Phase || was.Status.State.Reason != is.Status.State.Reason ||
		was.Status.State.Message != is.Status.State.Message || restarts(&was.Status) != restarts(&is.Status) ||
		was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()
}

// expected reports whether a new VCJob has no status yet: the LatticeJob's status depends on the VCJob's alone.
func expected(child client.Object) bool {
	vcjob, is := child.(*volcano.Job)
	return is && vcjob.DeletionTimestamp.IsZero() && vcjob.Status.State.Phase == ""
}
