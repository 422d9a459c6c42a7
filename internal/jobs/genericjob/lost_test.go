package genericjob

import (
	"testing"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// TestAPodLostToADisruptionIsReplaced: that counts as no restart, and never ends the
// job, whatever its policy and its rules.
func TestAPodLostToADisruptionIsReplaced(t *testing.T) {
	for _, policy := range []tensorstack.RestartPolicyType{"", tensorstack.RestartNever, tensorstack.RestartAlways} {
		job := newJob().with("worker", 2, tensorstack.RestartPolicy{Policy: policy, Limit: 1}).failsBy(rule("worker", 0))
		zero, one := pod("job-worker-0"), pod("job-worker-1")
		job = then(see(t, job.GenericJob, admitted, of(zero.Running(), one.Running())), job)
		p := see(t, job.GenericJob, admitted, of(zero.Ended(137).Disrupted(), one))
		same(t, "writes", []string{"delete Pod job-worker-0"}, writes(p))
		if len(p.Events) != 1 || p.Events[0].Reason != "ReplacingLostPods" || len(p.Progress.Reclaimable) > 0 ||
			p.Progress.Ready {
			t.Errorf("%q: it tells %v, and its queue %+v", policy, p.Events, p.Progress)
		}
		job = then(p, job)
		p = see(t, job.GenericJob, admitted, of(zero.Terminating(), one))
		same(t, "writes while it goes", nil, writes(p))
		if len(p.Events) > 0 {
			t.Errorf("%q: while it goes it tells %v", policy, p.Events)
		}
		job = then(p, job)
		p = see(t, job.GenericJob, admitted, of(one))
		same(t, "writes when it is gone", []string{"create Pod job-worker-0"}, writes(p))
		if job = then(p, job); job.Status.Tasks[0].RestartCount != 0 || job.Status.Phase != tensorstack.JobPhaseRunning {
			t.Errorf("%q: it is %s after %d restarts", policy, job.Status.Phase, job.Status.Tasks[0].RestartCount)
		}
	}
}

func TestAJobAsksForTheTopologyThatItsTemplatesAskFor(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 4)
	job.Spec.ReplicaSpecs[1].Template.Annotations =
		map[string]string{kueue.PodSetRequiredTopologyAnnotation: "example.com/rack"}
	d := describe(job.GenericJob, jobs.Facts{})
	if r := d.PodSets[1].TopologyRequest; d.PodSets[0].TopologyRequest != nil || r == nil || r.Required == nil ||
		*r.Required != "example.com/rack" || d.Mistake != nil {
		t.Errorf("it asks for %+v and %+v; mistake %v", d.PodSets[0].TopologyRequest, r, d.Mistake)
	}
	job.Spec.ReplicaSpecs[1].Template.Annotations[kueue.PodSetPreferredTopologyAnnotation] = "example.com/rack"
	if d := describe(job.GenericJob, jobs.Facts{}); d.Mistake == nil || d.Mistake.Reason != jobs.InvalidJob {
		t.Errorf("of two levels it tells %v", d.Mistake)
	}
}
