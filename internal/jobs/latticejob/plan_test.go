package latticejob

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
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
	"github.com/musterhq/muster/internal/podspec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is what there is to be seen of a LatticeJob ns/job of one task.
type scene struct {
	settings Settings
	seen     jobs.Seen[*lattice.LatticeJob]
}

func newScene() *scene {
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
	job.Spec.Tasks = map[string]lattice.JobTaskSpec{"t": {Replicas: ptr.To[int32](2), Workload: lattice.WorkloadSpec{
		Containers: map[string]lattice.ContainerSpec{"main": {SidecarContainer: lattice.SidecarContainer{Image: "i:1", Command: []string{"/bin/sh"}}}},
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
	v := &volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "v", Annotations: map[string]string{generationAnnotation: "1"}}}
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
	in := func(list []jobs.Write) string {
		var out []string
		for _, w := range list {
			kind := w.Object().GetObjectKind().GroupVersionKind().Kind
			out = append(out, w.Verb()+" "+kind+" "+w.Object().GetName())
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
			metav1.SetMetaDataAnnotation(&s.seen.Children[0].(*volcano.Job).ObjectMeta, queueLabelsAnnotation, kueue.QueueLabel+"="+vcjob)
		}
	}
}

const submitting = "apply ServiceAccount job-t, apply TracingPolicyNamespaced allow-binaries-job-t / apply Job job"

func TestLifeOfAJob(t *testing.T) {
	const gone = "Its VCJob was deleted, so nothing of it runs, and it is not made again: delete the LatticeJob, and make another to run it"
	const changed = ". The spec was changed after that, to generation 2, and the change is ignored: it runs with generation 1"
	for name, test := range map[string]struct {
		scene          *scene
		phase          lattice.JobPhase
		message        string
		generation     int64
		writes, events string
	}{
		"it is new":                                {newScene(), "", "", 0, submitting, ""},
		"its VCJob was not looked at":              {newScene().vcjob("", "", ""), "", "", 0, "", ""},
		"its VCJob waits for quota":                {newScene().vcjob(volcano.Pending, volcano.WaitingForQuota, "2 cpu more"), lattice.Pending, "Waiting for quota: 2 cpu more", 0, "", ""},
		"its VCJob has no queue":                   {newScene().vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none"), lattice.Pending, "Queue q is none", 0, "", ""},
		"its VCJob has no pods":                    {newScene().vcjob(volcano.Pending, volcano.NoPods, "No task has replicas"), lattice.Pending, "No task has replicas", 0, "", ""},
		"its VCJob cannot be queued":               {newScene().vcjob(volcano.Pending, jobs.InvalidJob, "spec.networkTopology is hard"), lattice.Pending, "spec.networkTopology is hard", 0, "", ""},
		"Volcano runs it, and it cannot be queued": {newScene().external(jobs.Admission{Grant: jobs.Waiting}).with(func(s *scene) { s.seen.Mistake = "no such class" }), lattice.Pending, "no such class", 0, "", ""},
		"its queue is gone":                        {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none"), lattice.Running, "Queue q is none", 1, "", ""},
		"it is given another queue":                {newScene().stands(lattice.Pending, "Queue q is none", 0).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none").generation(2), lattice.Pending, "Queue q is none", 0, "delete  job", ""},
		"it was renamed while it waits":            {newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").generation(2).with(hasTasks("old")), lattice.Pending, "Waiting for quota", 0, "remove LatticeMeshMember job-old / delete  job", ""},
		"it is labelled otherwise while it waits":  {newScene().stands(lattice.Pending, "Queue q is none", 0).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none").with(labelled("q", "")), lattice.Pending, "Queue q is none", 0, submitting, ""},
		"its label is taken away while it waits":   {newScene().stands(lattice.Pending, "Queue q is none", 0).vcjob(volcano.Pending, volcano.QueueNotFound, "Queue q is none").with(labelled("", "q")), lattice.Pending, "Queue q is none", 0, submitting, ""},
		"its label was passed on":                  {newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(labelled("q", "q")), lattice.Pending, "Waiting for quota", 0, "", ""},
		"it is labelled otherwise while it runs":   {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Running, "", "").with(labelled("q", "")), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"its VCJob has quota":                      {newScene().stands(lattice.Pending, "Waiting for quota: 2 cpu more", 0).vcjob(volcano.Pending, "", ""), lattice.Running, "Job submitted to Volcano", 1, "", "JobSubmitted"},
		"it runs":                                  {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Running, "", ""), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"it runs, and is evicted":                  {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Pending, volcano.WaitingForQuota, "preempted"), lattice.Running, "Waiting for quota: preempted", 1, "", ""},
		"it has succeeded":                         {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Completed, "", ""), lattice.Succeeded, "All tasks completed successfully", 1, "", "JobSucceeded"},
		"it has succeeded at once":                 {newScene().vcjob(volcano.Completed, "", ""), lattice.Succeeded, "All tasks completed successfully", 1, "", "JobSucceeded"},
		"it has failed":                            {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Failed, "", ""), lattice.Failed, "Job failed", 1, "", "JobFailed"},
		"it was terminated":                        {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Terminated, "", ""), lattice.Failed, "Job failed", 1, "", "JobFailed"},
		"it was aborted":                           {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Aborted, "", ""), lattice.Failed, "Job failed", 1, "", "JobFailed"},
		"it restarts":                              {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Restarting, "", ""), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"it restarts for ever": {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Restarting, "", "").with(func(s *scene) {
			s.seen.Children[0].(*volcano.Job).Spec.MaxRetry = 0
		}), lattice.Failed, "Job failed", 1, "", "JobFailed"},
		"its VCJob is gone while it runs":                         {newScene().stands(lattice.Running, "m", 1), lattice.Running, gone, 1, "", "VCJobGone"},
		"its VCJob is gone, and that was told":                    {newScene().stands(lattice.Running, gone, 1), lattice.Running, gone, 1, "", ""},
		"its VCJob is gone as it is itself":                       {newScene().stands(lattice.Running, "m", 1).with(goes), lattice.Running, "m", 1, "", ""},
		"its VCJob is gone with Volcano":                          {newScene().external(jobs.Admission{Grant: jobs.Unqueued}).stands(lattice.Running, "m", 1).with(withoutVolcano), lattice.Running, "m", 1, "", ""},
		"it asks for HyperNodes":                                  {newScene().with(hard), lattice.Pending, hardTopology, 0, "", "InvalidJob"},
		"it asks Volcano for HyperNodes":                          {newScene().with(hard).external(jobs.Admission{Grant: jobs.Unqueued}), "", "", 0, submitting, ""},
		"its pods are to be elsewhere while it waits":             {newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").with(hasTasks("t")).with(inOneRack), lattice.Pending, "Waiting for quota", 0, "remove LatticeMeshMember job-t / delete  job", ""},
		"its pods are to be elsewhere while it runs":              {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Running, "", "").with(hasTasks("t")).with(inOneRack), lattice.Running, "Job submitted to Volcano", 1, "", ""},
		"it was changed while it runs":                            {newScene().stands(lattice.Running, "Job submitted to Volcano", 1).vcjob(volcano.Running, "", "").generation(2), lattice.Running, "Job submitted to Volcano" + changed, 1, "", "SpecChangeIgnored"},
		"it was changed, and that was told":                       {newScene().stands(lattice.Running, "Job submitted to Volcano"+changed, 1).vcjob(volcano.Running, "", "").generation(2), lattice.Running, "Job submitted to Volcano" + changed, 1, "", ""},
		"it was changed, and has succeeded":                       {newScene().stands(lattice.Running, "Job submitted to Volcano"+changed, 1).vcjob(volcano.Completed, "", "").generation(2), lattice.Succeeded, "All tasks completed successfully", 2, "", "JobSucceeded"},
		"it was changed while it waits for quota":                 {newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").generation(2), lattice.Pending, "Waiting for quota", 0, "delete  job", ""},
		"it was changed between quota and Running":                {newScene().stands(lattice.Pending, "", 0).vcjob(volcano.Pending, "", "").generation(2), lattice.Running, "Job submitted to Volcano" + changed, 1, "", "JobSubmitted, SpecChangeIgnored"},
		"it is over, and was changed":                             {newScene().stands(lattice.Failed, "Job failed", 1).vcjob(volcano.Running, "", "").generation(2), lattice.Failed, "Job failed", 1, "", ""},
		"its last VCJob is going":                                 {newScene().stands(lattice.Pending, "", 0).vcjob(volcano.Pending, "", "").with(func(s *scene) { s.seen.Children[0].SetDeletionTimestamp(&metav1.Time{Time: now}) }), lattice.Pending, "", 0, "", ""},
		"it cannot be compiled":                                   {newScene().with(func(s *scene) { s.seen.Job.Spec.Tasks = nil }), lattice.Failed, "Failed to compile job: job has no tasks", 1, "remove all LatticeMeshMember ", "CompileFailed"},
		"it cannot be compiled, and there is no mesh":             {newScene().with(func(s *scene) { s.seen.Job.Spec.Tasks, s.seen.Facts.Served = nil, nil }), lattice.Failed, "Failed to compile job: job has no tasks", 1, "", "CompileFailed"},
		"it needs a kind that is not served":                      {newScene().with(needSecret), lattice.Pending, "The cluster does not serve ExternalSecret (external-secrets.io), which the job needs: install what does, and the job goes on", 0, "", "MissingKind"},
		"the kind that it needs has come":                         {newScene().with(needSecret).with(func(s *scene) { s.seen.Facts.Served[compile.ExternalSecrets] = true }), "", "", 0, "apply ExternalSecret job-t-s, apply ServiceAccount job-t, apply TracingPolicyNamespaced allow-binaries-job-t / apply Job job", ""},
		"it does without a kind":                                  {newScene().with(func(s *scene) { s.seen.Facts.Served = nil }), "", "", 0, "apply ServiceAccount job-t / apply Job job", "KindSkipped"},
		"configuration demands the kind":                          {newScene().with(func(s *scene) { s.seen.Facts.Served, s.settings.NeedTracing = nil, true }), lattice.Pending, "The cluster does not serve TracingPolicyNamespaced (cilium.io), which the job needs: install what does, and the job goes on", 0, "", "MissingKind"},
		"params mean nothing":                                     {newScene().with(func(s *scene) { resource(s, lattice.VolumeResource, `{"sise": 1}`) }), "", "", 0, submitting, "IgnoredInSpec"},
		"it calls a service that is not there, yet":               {newScene().with(callService).with(func(s *scene) { s.seen.Job.CreationTimestamp = metav1.NewTime(now.Add(-time.Second)) }), lattice.Pending, "Compile failed (will retry): compilation failed for task 't': resource 's': service 'ns/other-x' does not exist", 0, "", ""},
		"it calls a service that is not there":                    {newScene().with(callService), lattice.Failed, "Failed to compile job: compilation failed for task 't': resource 's': service 'ns/other-x' does not exist", 1, "remove all LatticeMeshMember ", "CompileFailed"},
		"it calls a Service":                                      {newScene().with(callService).with(thereIs(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other-x"}})), "", "", 0, withMesh, ""},
		"it calls a task of another job":                          {newScene().with(callService).with(thereIs(otherJob(lattice.Running))), "", "", 0, withMesh, ""},
		"it calls a task of a job that is over":                   {newScene().with(callService).with(thereIs(otherJob(lattice.Succeeded))), lattice.Failed, "Failed to compile job: compilation failed for task 't': resource 's': service 'ns/other-x' does not exist", 1, "remove all LatticeMeshMember ", "CompileFailed"},
		"it is over, and leaves the graph":                        {newScene().with(callService).with(thereIs(otherJob(lattice.Running))).stands(lattice.Running, "", 1).vcjob(volcano.Completed, "", "").with(hasTasks("t")), lattice.Succeeded, "All tasks completed successfully", 1, "remove LatticeMeshMember job-t", "JobSucceeded"},
		"it is over, as is whom it called":                        {newScene().with(callService).stands(lattice.Running, "", 1).vcjob(volcano.Completed, "", "").with(hasTasks("t")), lattice.Succeeded, "All tasks completed successfully", 1, "remove LatticeMeshMember job-t", "JobSucceeded"},
		"it is over, and its tasks were renamed":                  {newScene().stands(lattice.Running, "", 1).vcjob(volcano.Failed, "", "").with(hasTasks("old", "t")), lattice.Failed, "Job failed", 1, "remove LatticeMeshMember job-old, remove LatticeMeshMember job-t", "JobFailed"},
		"it is over, and there is no mesh":                        {newScene().with(func(s *scene) { s.seen.Facts.Served = nil }).stands(lattice.Running, "", 1).vcjob(volcano.Completed, "", "").with(hasTasks("t")), lattice.Succeeded, "All tasks completed successfully", 1, "", "JobSucceeded"},
		"Volcano runs it, in a queue of its own":                  {newScene().external(jobs.Admission{Grant: jobs.Unqueued}).vcjob(volcano.Pending, "", ""), lattice.Running, "Job submitted to Volcano. Its queue is not one of Muster's, whose quota does not cover it", 1, "", "JobSubmitted"},
		"Volcano is to run it, and is not there":                  {newScene().external(jobs.Admission{Grant: jobs.Unqueued}).with(withoutVolcano), lattice.Pending, "The cluster does not serve Job (batch.volcano.sh), which the job needs: install what does, and the job goes on", 0, "", "MissingKind"},
		"Volcano runs it, when it is admitted":                    {newScene().external(jobs.Admission{Grant: jobs.Waiting, Why: "2 cpu more"}), lattice.Pending, "Waiting for quota: 2 cpu more", 0, "", ""},
		"Volcano runs it, and its queue said naught":              {newScene().external(jobs.Admission{Grant: jobs.Waiting}), lattice.Pending, "Waiting for quota", 0, "", ""},
		"Volcano runs it, for it was admitted":                    {newScene().external(admitted).vcjob(volcano.Pending, "", ""), lattice.Running, "Job submitted to Volcano", 1, "", "JobSubmitted"},
		"Volcano runs it, and it is evicted":                      {newScene().external(jobs.Admission{Grant: jobs.Stopping}).stands(lattice.Running, "", 1).vcjob(volcano.Running, "", ""), lattice.Pending, "Evicted: its pods are stopped, and it waits for quota again", 0, "delete  job", "Evicted"},
		"Volcano runs it, and it leaves the graph with its quota": {newScene().external(jobs.Admission{Grant: jobs.Stopping}).stands(lattice.Running, "", 1).vcjob(volcano.Running, "", "").with(hasTasks("t")), lattice.Pending, "Evicted: its pods are stopped, and it waits for quota again", 0, "remove LatticeMeshMember job-t / delete  job", "Evicted"},
		"Volcano runs it, and it loses its quota before it runs":  {newScene().external(jobs.Admission{Grant: jobs.Stopping}).stands(lattice.Pending, "Waiting for quota", 0), lattice.Pending, "Waiting for quota", 0, "", ""},
		"Volcano ran it, and it is evicted without its VCJob":     {newScene().external(jobs.Admission{Grant: jobs.Stopping}).stands(lattice.Running, "", 1), lattice.Pending, "Evicted: its pods are stopped, and it waits for quota again", 0, "", "Evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := test.scene.plan(t)
			got := plan.Status.(*lattice.LatticeJob).Status
			want := lattice.LatticeJobStatus{Phase: test.phase, Message: test.message}
			if test.generation > 0 {
				want.ObservedGeneration = &test.generation
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got := writes(plan); got != test.writes {
				t.Errorf("writes\n%s, want\n%s", got, test.writes)
			}
			if got := events(plan); got != test.events {
				t.Errorf("events %q, want %q", got, test.events)
			}
		})
	}
}

// TestThatPodsRunIsWrittenThoughTheServerIsBusy: a VCJob that is deleted then is not made anew.
func TestThatPodsRunIsWrittenThoughTheServerIsBusy(t *testing.T) {
	for phase, yields := range map[volcano.JobPhase]bool{"": true, volcano.Pending: true, volcano.Running: false, volcano.Restarting: false} {
		if got := newScene().stands("", "", 0).vcjob(phase, "", "").plan(t); got.StatusYields != yields {
			t.Errorf("its VCJob is %q: its status yields: %v", phase, got.StatusYields)
		}
	}
	if !newScene().plan(t).StatusYields {
		t.Error("before there is a VCJob its status does not yield")
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

const withMesh = "apply LatticeMeshMember job-t, apply ServiceAccount job-t, apply TracingPolicyNamespaced allow-binaries-job-t / apply Job job"

var admitted = jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
	"t": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{NodeSelector: map[string]string{"pool": "a"}}}}}

func resource(s *scene, of lattice.ResourceType, params string) {
	task := s.seen.Job.Spec.Tasks["t"]
	task.Workload.Resources = map[string]lattice.ResourceSpec{"s": {Type: of, ID: "other-x", Params: &runtime.RawExtension{Raw: []byte(params)}}}
	s.seen.Job.Spec.Tasks["t"] = task
}

func needSecret(s *scene)  { resource(s, lattice.SecretResource, `{"provider": "p"}`) }
func callService(s *scene) { resource(s, lattice.ServiceResource, `{}`) }

func thereIs(objects ...client.Object) func(*scene) {
	return func(s *scene) { s.seen.Beside = objects }
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

func TestWhatIsAskedForIsWhatTheSpecRefersTo(t *testing.T) {
	s := newScene()
	callService(s)
	task := s.seen.Job.Spec.Tasks["t"]
	task.Workload.Resources["g"] = lattice.ResourceSpec{Type: lattice.GPUResource}
	s.seen.Job.Spec.Tasks["t"] = task
	api := New(Settings{})
	var got []string
	for _, o := range api.Beside(s.seen.Job) {
		switch o.(type) {
		case *nodev1.RuntimeClass:
			got = append(got, "RuntimeClass "+o.GetName())
		case *corev1.Service:
			got = append(got, "Service "+o.GetNamespace()+"/"+o.GetName())
		case *lattice.LatticeJob:
			got = append(got, "LatticeJob "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	if diff := cmp.Diff([]string{"RuntimeClass nvidia", "Service ns/other-x", "LatticeJob ns/other"}, got); diff != "" {
		t.Error(diff)
	}
	if n := len(api.AsksNodes(s.seen.Job)); n != 2 {
		t.Errorf("%d features of nodes are asked for", n)
	}
	if api.AsksNodes(newScene().seen.Job) != nil {
		t.Error("nodes are asked for a job without GPUs")
	}
}

func TestRefusedWritesAreToldAndTriedAgain(t *testing.T) {
	plan := newScene().plan(t)
	status, event := plan.StatusOnError(errors.New("apply Job ns/job: no"))
	want := lattice.LatticeJobStatus{Phase: lattice.Pending, Message: "Apply failed (will retry): apply Job ns/job: no"}
	if diff := cmp.Diff(want, status.(*lattice.LatticeJob).Status); diff != "" {
		t.Error(diff)
	}
	if event.Reason != applyFailedReason || event.Type != corev1.EventTypeWarning {
		t.Errorf("event %+v", event)
	}
}

// The end is told when nothing of the job is left in the graph: nobody looks at it after that.
func TestAJobHasNotEndedWhileItCannotLeaveTheGraph(t *testing.T) {
	for _, before := range []lattice.JobPhase{"", lattice.Pending, lattice.Running} {
		plan := newScene().stands(before, "m", 1).vcjob(volcano.Completed, "", "").with(hasTasks("t")).plan(t)
		if plan.StatusFirst || plan.StatusOnError == nil {
			t.Fatal("the end is told whether the edges are gone or not")
		}
		status, event := plan.StatusOnError(errors.New("remove LatticeMeshMember ns/job-t: no"))
		got := status.(*lattice.LatticeJob).Status
		if ended(status.(*lattice.LatticeJob)) || got.Phase == "" || got.Message != "Leaving the service graph failed (will retry): remove LatticeMeshMember ns/job-t: no" {
			t.Errorf("from %q: %+v", before, got)
		}
		if event.Type != corev1.EventTypeWarning {
			t.Errorf("event %+v", event)
		}
	}
}

func TestWhatAdmissionGivesReachesTheVCJob(t *testing.T) {
	vcjob := func(s *scene) *volcano.Job { return s.plan(t).Writes[0].Object().(*volcano.Job) }
	s := newScene().external(admitted)
	if got := vcjob(s).Spec.Tasks[0].Template.Spec.NodeSelector["pool"]; got != "a" {
		t.Errorf("node selector %q", got)
	}
	native := newScene().with(inOneRack)
	native.seen.Job.Labels = map[string]string{kueue.QueueLabel: "q", "mine": "x"}
	labels := vcjob(native).Labels
	if labels[kueue.QueueLabel] != "q" || labels["mine"] != "" {
		t.Errorf("labels %v", labels)
	}
	if diff := cmp.Diff(map[string]string{kueue.PodSetRequiredTopologyAnnotation: "rack"}, vcjob(native).Spec.Tasks[0].Template.Annotations); diff != "" {
		t.Errorf("annotations of pods (-want +got):\n%s", diff)
	}
}

// TestAJobThatWasChangedOnceItWasAdmittedQueuesAnew: quota is for the pods that asked for it, and what the job says by now runs, or nothing.
func TestAJobThatWasChangedOnceItWasAdmittedQueuesAnew(t *testing.T) {
	withGPU := func(s *scene) {
		resource(s, lattice.GPUResource, `{"count": 1}`)
		s.seen.Beside = []client.Object{&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: compile.NvidiaRuntime}}}
	}
	task := func(change func(*lattice.JobTaskSpec)) func(*scene) {
		return func(s *scene) {
			of := s.seen.Job.Spec.Tasks["t"]
			change(&of)
			s.seen.Job.Spec.Tasks["t"] = of
		}
	}
	main := func(change func(*lattice.ContainerSpec)) func(*scene) {
		return task(func(of *lattice.JobTaskSpec) {
			c := of.Workload.Containers["main"]
			change(&c)
			of.Workload.Containers = map[string]lattice.ContainerSpec{"main": c}
		})
	}
	for name, test := range map[string]struct {
		first, then func(*scene)
		anew        bool
	}{
		"nothing":                         {func(*scene) {}, func(*scene) {}, false},
		"nothing, and it uses GPUs":       {withGPU, func(*scene) {}, false},
		"what costs nothing":              {func(*scene) {}, main(func(c *lattice.ContainerSpec) { c.Image = "i:2" }), false},
		"how many pods":                   {func(*scene) {}, task(func(of *lattice.JobTaskSpec) { of.Replicas = ptr.To[int32](3) }), true},
		"a task more":                     {func(*scene) {}, func(s *scene) { s.seen.Job.Spec.Tasks["u"] = s.seen.Job.Spec.Tasks["t"] }, true},
		"what a pod needs":                {func(*scene) {}, withGPU, true},
		"its queue, for one of Volcano's": {func(*scene) {}, func(s *scene) { s.seen.Job.Spec.Queue = "theirs" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene().with(test.first).external(jobs.Admission{Grant: jobs.Admitted})
			s.seen.Admission.PodSets = map[string]jobs.PodSetAdmission{}
			for _, podSet := range New(s.settings).Describe(s.seen.Job, s.seen.Facts).PodSets {
				s.seen.Admission.PodSets[string(podSet.Name)] = jobs.PodSetAdmission{Count: podSet.Count, Asked: podSet.Count, Left: podSet.Count, Template: podSet.Template.DeepCopy()}
			}
			s.with(test.then)
			plan := s.plan(t)
			if plan.Progress.QueuesAnew != test.anew || len(plan.Writes) == 0 != test.anew {
				t.Fatalf("it queues anew: %v, and writes %s", plan.Progress.QueuesAnew, writes(plan))
			}
			if test.anew {
				return
			}
			spec := plan.Writes[0].Object().(*volcano.Job).Spec.Tasks[0].Template.Spec
			if of := s.seen.Job.Spec.Tasks["t"].Workload.Containers["main"].Image; spec.Containers[0].Image != of {
				t.Errorf("image %s, want %s", spec.Containers[0].Image, of)
			}
			if has := spec.RuntimeClassName != nil; has != (len(s.seen.Beside) > 0) {
				t.Errorf("it has a RuntimeClass: %v", has)
			}
		})
	}
}

func TestOnlyQueuesOfMustersMakeAJobQueueForItself(t *testing.T) {
	s := newScene()
	s.seen.Job.Spec.Queue = "q"
	there := map[schema.GroupResource]bool{volcanoJobs: true}
	facts := jobs.Facts{Served: there, Queues: jobs.QueueFacts{Local: map[string]*kueue.LocalQueue{"q": {}}}}
	describe := func(external bool, facts jobs.Facts) jobs.Description {
		return New(Settings{External: external}).Describe(s.seen.Job, facts)
	}
	d := describe(true, facts)
	if len(d.PodSets) != 1 || d.PodSets[0].Name != "t" || d.PodSets[0].Count != 2 || d.Queue != "q" {
		t.Errorf("%+v", d)
	}
	if d := describe(true, jobs.Facts{Served: there}); len(d.PodSets) != 0 {
		t.Error("a queue of Volcano's is one of Muster's")
	}
	facts.Served = nil
	if d := describe(true, facts); len(d.PodSets) != 0 {
		t.Error("a job takes quota while nobody is there to run it")
	}
	facts.Served = there
	if d := describe(false, facts); len(d.PodSets) != 0 {
		t.Error("both the job and its VCJob queue")
	}
}

// That the VCJob of a job is there follows from its making; where it stands does not.
func TestAVCJobThatIsJustMadeIsNoNews(t *testing.T) {
	expected := New(Settings{}).Expected
	for name, test := range map[string]struct {
		child client.Object
		want  bool
	}{
		"of which nobody has said anything": {&volcano.Job{}, true},
		"that waits":                        {newScene().vcjob(volcano.Pending, "", "").seen.Children[0], false},
		"that goes":                         {&volcano.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(now))}}, false},
		"and a run of a schedule":           {&lattice.LatticeJob{}, false},
	} {
		if got := expected(test.child); got != test.want {
			t.Errorf("a VCJob %s is expected: %v, want %v", name, got, test.want)
		}
	}
}

// A task without pods asks for nothing, and a job without any for no quota: there is none that its queue could keep from it.
func TestTasksWithoutPodsAskForNothing(t *testing.T) {
	s := newScene().external(jobs.Admission{Grant: jobs.Waiting})
	none := s.seen.Job.Spec.Tasks["t"]
	none.Replicas = ptr.To[int32](0)
	s.seen.Job.Spec.Tasks["none"] = none
	describe := New(s.settings).Describe
	if d := describe(s.seen.Job, s.seen.Facts); len(d.PodSets) != 1 || d.PodSets[0].Name != "t" {
		t.Errorf("%d pod sets beside a task without pods", len(d.PodSets))
	}
	s.seen.Job.Spec.Tasks["t"] = none
	if d := describe(s.seen.Job, s.seen.Facts); len(d.PodSets) != 0 {
		t.Errorf("%d pod sets of no pods", len(d.PodSets))
	}
	s.seen.Admission.Grant = jobs.Unqueued
	if got := s.vcjob(volcano.Pending, "", "").plan(t).Status.(*lattice.LatticeJob).Status.Message; got != lattice.SubmittedMessage {
		t.Errorf("it says %q, and its queue is one of Muster's", got)
	}
}

// TestSecretsAreNotTold: what is in a spec, and may be a secret, is in no status and no
// event, be it right or wrong.
func TestSecretsAreNotTold(t *testing.T) {
	const planted = "hunter2"
	for name, main := range map[string]lattice.SidecarContainer{
		"in a variable":                {Variables: map[string]string{"X": "pass " + planted + " ${secret.s.k}"}},
		"in a variable that is wrong":  {Variables: map[string]string{"X": planted + " ${secret.nope.k}"}},
		"beside an open placeholder":   {Variables: map[string]string{"X": planted + " ${"}},
		"in a file":                    {Files: map[string]lattice.FileMount{"/f": {Content: ptr.To(planted + " ${nope}")}}},
		"in a binary file":             {Files: map[string]lattice.FileMount{"/f": {BinaryContent: ptr.To("!" + planted)}}},
		"in the args":                  {Args: []string{planted}, Command: []string{"relative"}},
		"in the password of endpoints": {},
	} {
		s := newScene()
		s.seen.Facts.Served[compile.ExternalSecrets] = true
		if name == "in the password of endpoints" {
			resource(s, lattice.ExternalServiceResource, `{"endpoints": {"db": "postgres://u:`+planted+`@:99999"}}`)
		} else {
			needSecret(s)
		}
		task := s.seen.Job.Spec.Tasks["t"]
		main.Image = "i"
		task.Workload.Containers = map[string]lattice.ContainerSpec{"main": {SidecarContainer: main}}
		s.seen.Job.Spec.Tasks["t"] = task
		plan := s.plan(t)
		told := plan.Status.(*lattice.LatticeJob).Status.Message
		for _, e := range plan.Events {
			told += e.Message
		}
		if strings.Contains(told, planted) {
			t.Errorf("%s: %s", name, told)
		}
	}
}
