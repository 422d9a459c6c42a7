package trainingjob

import (
	"testing"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestTopologyOfTheTemplateIsRequested(t *testing.T) {
	job := newJob(1, 4)
	job.Spec.ReplicaSpecs.Template.Annotations =
		map[string]string{kueue.PodSetPreferredTopologyAnnotation: "example.com/rack"}
	d := describe(job.TrainingJob, jobs.Facts{})
	if r := d.PodSets[0].TopologyRequest; r == nil || r.Preferred == nil || *r.Preferred != "example.com/rack" ||
		d.Mistake != nil {
		t.Errorf("topology request = %+v, mistake %v, want the preferred level and no mistake", r, d.Mistake)
	}
	job.Spec.ReplicaSpecs.Template.Annotations[kueue.PodSetRequiredTopologyAnnotation] = "example.com/rack"
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Mistake == nil || d.Mistake.Reason != jobs.InvalidJob {
		t.Errorf("mistake for two levels = %v, want InvalidJob", d.Mistake)
	}
}
