package latticejob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

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
	if diff := cmp.Diff(map[string]string{kueue.PodSetRequiredTopologyAnnotation: "rack"},
		vcjob(native).Spec.Tasks[0].Template.Annotations); diff != "" {
		t.Errorf("annotations of pods (-want +got):\n%s", diff)
	}
}

// TestAJobChangedAfterAdmissionQueuesAgain: quota is for the pods that asked for it, and what the job says by now runs,
// or nothing.
func TestAJobChangedAfterAdmissionQueuesAgain(t *testing.T) {
	withGPU := func(s *scene) {
		resource(s, lattice.GPUResource, `{"count": 1}`)
		s.seen.Related = []client.Object{&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: compile.NvidiaRuntime}}}
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
		"nothing":                   {func(*scene) {}, func(*scene) {}, false},
		"nothing, and it uses GPUs": {withGPU, func(*scene) {}, false},
		"what costs nothing":        {func(*scene) {}, main(func(c *lattice.ContainerSpec) { c.Image = "i:2" }), false},
		"how many pods": {func(*scene) {},
			task(func(of *lattice.JobTaskSpec) { of.Replicas = ptr.To[int32](3) }), true},
		"a task more": {func(*scene) {},
			func(s *scene) { s.seen.Job.Spec.Tasks["u"] = s.seen.Job.Spec.Tasks["t"] }, true},
		"what a pod needs":                {func(*scene) {}, withGPU, true},
		"its queue, for one of Volcano's": {func(*scene) {}, func(s *scene) { s.seen.Job.Spec.Queue = "theirs" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene().with(test.first).external(jobs.Admission{Grant: jobs.Admitted})
			s.seen.Admission.PodSets = map[string]jobs.PodSetAdmission{}
			for _, podSet := range New(s.settings).Describe(s.seen.Job, s.seen.Facts).PodSets {
				s.seen.Admission.PodSets[string(podSet.Name)] = jobs.PodSetAdmission{Count: podSet.Count, Asked: podSet.Count,
					Left: podSet.Count, Template: podSet.Template.DeepCopy()}
			}
			s.with(test.then)
			plan := s.plan(t)
			if plan.Progress.Requeue != test.anew || len(plan.Writes) == 0 != test.anew {
				t.Fatalf("it queues anew: %v, and writes %s", plan.Progress.Requeue, writes(plan))
			}
			if test.anew {
				return
			}
			spec := plan.Writes[0].Object().(*volcano.Job).Spec.Tasks[0].Template.Spec
			if of := s.seen.Job.Spec.Tasks["t"].Workload.Containers["main"].Image; spec.Containers[0].Image != of {
				t.Errorf("image %s, want %s", spec.Containers[0].Image, of)
			}
			if has := spec.RuntimeClassName != nil; has != (len(s.seen.Related) > 0) {
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
	if d := describe(false, facts); len(d.PodSets) != 0 || !d.Paused {
		t.Error("both the job and its VCJob queue")
	}
	// Who queued before asks for nothing any more, and gives it back; who runs keeps what he has.
	for phase, gives := range map[lattice.JobPhase]bool{lattice.Pending: true, lattice.Running: false} {
		s.stands(phase, "", 0)
		for why, facts := range map[string]jobs.Facts{"without such a queue": {Served: there},
			"without Volcano": {Queues: facts.Queues}} {
			if d := describe(true, facts); len(d.PodSets) != 0 || d.Paused != gives {
				t.Errorf("%s %s: %+v", phase, why, d)
			}
		}
	}
}

// TestAJobThatNeedsAKindTakesNoQuota: nobody serves the kind, and nothing of the job is made before somebody does.
func TestAJobThatNeedsAKindTakesNoQuota(t *testing.T) {
	s := newScene().external(jobs.Admission{Grant: jobs.Waiting}).with(needSecret)
	describe := New(s.settings).Describe
	if d := describe(s.seen.Job, s.seen.Facts); !d.Paused || len(d.PodSets) > 0 {
		t.Errorf("it asks for %d pod sets", len(d.PodSets))
	}
	s.stands(lattice.Running, "", 1)
	if d := describe(s.seen.Job, s.seen.Facts); d.Paused || len(d.PodSets) != 1 {
		t.Errorf("it runs, and gives back what it has: %v", d.Paused)
	}
	s.stands(lattice.Pending, "", 0).seen.Facts.Served[compile.ExternalSecrets] = true
	if d := describe(s.seen.Job, s.seen.Facts); d.Paused || len(d.PodSets) != 1 {
		t.Error("the kind has come, and it asks for nothing")
	}
}

// A task without pods asks for nothing, and a job without any for no quota: there is none that its queue could keep
// from it.
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
	if got := s.vcjob(volcano.Pending, "",
		"").plan(t).Status.(*lattice.LatticeJob).Status.Message; got != lattice.SubmittedMessage {
		t.Errorf("it says %q, and its queue is one of Muster's", got)
	}
}

// TestAVCJobIsRelabelledAndNoMore: what it would be compiled to by now may not be what it is, and it is fixed. Labels
// that somebody else has given it are his.
func TestAVCJobIsRelabelledAndNoMore(t *testing.T) {
	relabel := func(job, vcjob string) (labels map[string]string, told string) {
		s := newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota,
			"").with(hasTasks("t")).with(labelled(job, vcjob))
		before := s.seen.Children[0].(*volcano.Job)
		before.Labels = map[string]string{"team": "a"}
		if vcjob != "" {
			before.Labels[kueue.QueueLabel] = vcjob
		}
		after := s.plan(t).Writes[0].Object().(*volcano.Job)
		if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
			t.Errorf("it is changed: %s", diff)
		}
		return after.Labels, after.Annotations[queueLabelsAnnotation]
	}
	for _, test := range []struct{ job, vcjob, queue, told string }{
		{"q", "", "q", "kueue.x-k8s.io/queue-name=q"},
		{"q", "p", "q", "kueue.x-k8s.io/queue-name=q"},
		{"", "p", "", ""},
	} {
		labels, told := relabel(test.job, test.vcjob)
		if labels[kueue.QueueLabel] != test.queue || labels["team"] != "a" || told != test.told {
			t.Errorf("%+v: labels %v, annotation %q", test, labels, told)
		}
	}
}

// TestTheVCJobExpectsToTakeAsLongAsItsJob: the estimate is copied at submission, and again when the job changes it.
func TestTheVCJobExpectsToTakeAsLongAsItsJob(t *testing.T) {
	const key = muster.ExpectedDurationAnnotation
	expects := func(d string) func(*scene) {
		return func(s *scene) {
			if d != "" {
				metav1.SetMetaDataAnnotation(&s.seen.Job.ObjectMeta, key, d)
			}
		}
	}
	submitted := newScene().with(expects("2h")).plan(t).Writes[0].Object().(*volcano.Job).Annotations
	if submitted[key] != "2h" {
		t.Errorf("the VCJob is submitted with the estimate %q, want 2h", submitted[key])
	}
	for _, wanted := range []string{"3h", ""} {
		s := newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(volcano.Pending, volcano.WaitingForQuota, "").
			with(hasTasks("t")).with(expects(wanted))
		s.seen.Job.Labels = nil
		metav1.SetMetaDataAnnotation(&s.seen.Children[0].(*volcano.Job).ObjectMeta, key, "2h")
		p := s.plan(t)
		if len(p.Writes) == 0 || p.Writes[0].Object().GetAnnotations()[key] != wanted {
			t.Errorf("the job now expects to take %q, and the plan writes %+v", wanted, p.Writes)
		}
	}
}

// TestTheGateOfAJobHoldsItsVCJobBack: the VCJob queues for the job. A gate that is removed from the job is removed from
// the VCJob, whatever the VCJob says of itself by then, and one that somebody else has given it is his.
func TestTheGateOfAJobHoldsItsVCJobBack(t *testing.T) {
	const key, budget, other = kueue.AdmissionGatedByAnnotation, "example.com/budget", "example.com/a,example.com/b"
	gated := func(by string) func(*scene) {
		return func(s *scene) { metav1.SetMetaDataAnnotation(&s.seen.Job.ObjectMeta, key, by) }
	}
	submitted := newScene().with(gated(budget)).plan(t).Writes[0].Object().(*volcano.Job).Annotations
	if submitted[key] != budget {
		t.Errorf("the VCJob is submitted with the gate %q, want %q", submitted[key], budget)
	}
	for _, reason := range []string{volcano.WaitingForQuota, ""} {
		for _, test := range []struct{ copied, is, job, want string }{
			{"", "", budget, budget},
			{budget, budget, other, other},
			{budget, budget, "", ""},
			{other, other, "", ""},
			{"", "theirs", "", "theirs"},
			{"", "theirs", budget, budget},
			{budget, budget, budget, budget},
			{budget, "", budget, ""}, // its controller has removed it there
		} {
			phase := volcano.Pending
			if reason == "" {
				phase = ""
			}
			s := newScene().stands(lattice.Pending, "Waiting for quota", 0).vcjob(phase, reason, "").with(hasTasks("t")).
				with(gated(test.job))
			s.seen.Job.Labels = nil
			vcjob := s.seen.Children[0].(*volcano.Job)
			metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, key, test.is)
			metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, gateAnnotation, test.copied)
			got := vcjob.Annotations
			if p := s.plan(t); len(p.Writes) > 0 {
				got = p.Writes[0].Object().GetAnnotations()
			} else if test.want != test.is {
				t.Errorf("%q: %+v: the VCJob is not changed", reason, test)
			}
			if got[key] != test.want {
				t.Errorf("%q: %+v: the VCJob has the gate %q", reason, test, got[key])
			}
		}
	}
}
