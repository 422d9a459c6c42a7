package latticejob

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is what there is to be seen of a LatticeJob ns/job of one task.
type scene struct {
	settings Settings
	seen     jobs.Seen[*lattice.LatticeJob]
}

func newScene() *scene {
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u", Generation: 1,
		CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"t": {Replicas: ptr.To[int32](2), Workload: lattice.WorkloadSpec{
		Containers: map[string]lattice.ContainerSpec{"main": {SidecarContainer: lattice.SidecarContainer{Image: "i:1",
			Command: []string{"/bin/sh"}}}},
	}}}
	return &scene{seen: jobs.Seen[*lattice.LatticeJob]{
		Job: job, Now: now, Admission: jobs.Admission{Grant: jobs.Unqueued},
		Facts: jobs.Facts{Served: map[schema.GroupResource]bool{compile.MeshMembers: true, compile.TracingPolicies: true}},
	}}
}

// stands gives the job the phase, as an earlier look has written it.
func (s *scene) stands(phase lattice.JobPhase, message string, generation int64) *scene {
	s.seen.Job.Status = lattice.LatticeJobStatus{Phase: phase, Message: message}
	if generation > 0 {
		s.seen.Job.Status.ObservedGeneration = ptr.To(generation)
	}
	return s
}

// vcjob has the job have one in the phase, made of the first generation.
func (s *scene) vcjob(phase volcano.JobPhase, reason, message string) *scene {
	v := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "v",
		Annotations: map[string]string{generationAnnotation: "1", domainsAnnotation: ""}}}
	v.Spec.MaxRetry = 3
	v.Status.State = volcano.JobState{Phase: phase, Reason: reason, Message: message}
	s.seen.Children = []client.Object{v}
	return s
}

func (s *scene) generation(n int64) *scene {
	s.seen.Job.Generation = n
	return s
}

func (s *scene) with(change func(*scene)) *scene {
	change(s)
	return s
}

// external has Volcano run VCJobs, and gives the job what its queue grants.
func (s *scene) external(admission jobs.Admission) *scene {
	s.settings.External = true
	s.seen.Facts.Served[volcanoJobs] = true
	s.seen.Admission = admission
	if admission.Grant != jobs.Unqueued {
		s.seen.Job.Spec.Queue = "q"
		s.seen.Facts.Queues.Local = map[string]*kueue.LocalQueue{"q": {}}
	}
	return s
}

func (s *scene) plan(t *testing.T) jobs.Plan {
	t.Helper()
	before := s.seen.Job.DeepCopy()
	plan := New(s.settings).Plan(s.seen)
	if diff := cmp.Diff(before, s.seen.Job); diff != "" {
		t.Errorf("planning changed the job: %s", diff)
	}
	return plan
}

// writes are those of the plan in words, those that come first before a slash.
func writes(p jobs.Plan) string {
	in := func(list []write.Write) string {
		var out []string
		for _, w := range list {
			kind := w.Object().GetObjectKind().GroupVersionKind().Kind
			out = append(out, string(w.Verb())+" "+kind+" "+w.Object().GetName())
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	if len(p.First) == 0 {
		return in(p.Writes)
	}
	return in(p.First) + " / " + in(p.Writes)
}

func events(p jobs.Plan) string {
	var out []string
	for _, e := range p.Events {
		out = append(out, e.Reason)
	}
	return strings.Join(out, ", ")
}

// labelled gives the job the label of that queue, and its VCJob that of another, as it was passed on; "" is none.
func labelled(job, vcjob string) func(*scene) {
	return func(s *scene) {
		if job != "" {
			s.seen.Job.Labels = map[string]string{kueue.QueueLabel: job, "app": "mine"}
		}
		if vcjob != "" {
			metav1.SetMetaDataAnnotation(&s.seen.Children[0].(*volcano.Job).ObjectMeta, queueLabelsAnnotation,
				kueue.QueueLabel+"="+vcjob)
		}
	}
}

func withoutVolcano(s *scene) { delete(s.seen.Facts.Served, volcanoJobs) }

func goes(s *scene) { s.seen.Job.DeletionTimestamp = &metav1.Time{Time: now} }

func hard(s *scene) {
	s.seen.Job.Spec.Topology = &lattice.NetworkTopology{Mode: lattice.HardTopology, MaxTier: ptr.To[int32](2)}
}

func inOneRack(s *scene) {
	s.seen.Job.Annotations = map[string]string{kueue.PodSetRequiredTopologyAnnotation: "rack", "mine": "x"}
}

// policyOfRacks gives the templates of the VCJob an annotation that its job has not asked for, as a policy of the
// cluster does.
func policyOfRacks(s *scene) {
	for i := range s.seen.Children[0].(*volcano.Job).Spec.Tasks {
		task := &s.seen.Children[0].(*volcano.Job).Spec.Tasks[i]
		metav1.SetMetaDataAnnotation(&task.Template.ObjectMeta, kueue.PodSetRequiredTopologyAnnotation, "zone")
	}
}

// madeFor has the VCJob say for which domains it was made.
func madeFor(domains string) func(*scene) {
	return func(s *scene) {
		metav1.SetMetaDataAnnotation(&s.seen.Children[0].(*volcano.Job).ObjectMeta, domainsAnnotation, domains)
	}
}

// madeByEarlierVersion has the VCJob not say for which domains it was made.
func madeByEarlierVersion(s *scene) {
	delete(s.seen.Children[0].(*volcano.Job).Annotations, domainsAnnotation)
}

func vcjobGoes(s *scene) { s.seen.Children[0].SetDeletionTimestamp(&metav1.Time{Time: now}) }

var admitted = jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
	"t": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{NodeSelector: map[string]string{"pool": "a"}}}}}

func resource(s *scene, of lattice.ResourceType, params string) {
	task := s.seen.Job.Spec.Tasks["t"]
	task.Workload.Resources = map[string]lattice.ResourceSpec{"s": {Type: of, ID: "other-x",
		Params: &runtime.RawExtension{Raw: []byte(params)}}}
	s.seen.Job.Spec.Tasks["t"] = task
}

func needSecret(s *scene) { resource(s, lattice.SecretResource, `{"provider": "p"}`) }

func callService(s *scene) { resource(s, lattice.ServiceResource, `{}`) }

func thereIs(objects ...client.Object) func(*scene) {
	return func(s *scene) { s.seen.Related = objects }
}

// hasTasks gives the VCJob the tasks that it was made with.
func hasTasks(names ...string) func(*scene) {
	return func(s *scene) {
		v := s.seen.Children[0].(*volcano.Job)
		for _, name := range names {
			v.Spec.Tasks = append(v.Spec.Tasks, volcano.TaskSpec{Name: name})
		}
	}
}

func otherJob(phase lattice.JobPhase) *lattice.LatticeJob {
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"x": {}}
	job.Status.Phase = phase
	return job
}
