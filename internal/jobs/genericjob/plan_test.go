package genericjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

func TestAJobGetsItsPodsAndServices(t *testing.T) {
	job := newJob().with("master", 1).with("worker", 2).port("http", 80)
	same(t, "without a queue", []string{
		"create Service job-master-0", "create Service job-worker-0", "create Service job-worker-1",
		"create Pod job-master-0", "create Pod job-worker-0", "create Pod job-worker-1",
	}, writes(see(t, job.GenericJob, unqueued, nil)))
	same(t, "in a queue", nil, writes(see(t, job.GenericJob, waiting, nil)))
	same(t, "with the flavor gone", nil,
		writes(see(t, job.GenericJob, jobs.Admission{Grant: jobs.Admitted, MissingFlavor: "f"}, nil)))
}

// made is the pod that a plan makes first.
func made(t *testing.T, job jobBuilder, facts jobs.Facts, admission jobs.Admission) *corev1.Pod {
	t.Helper()
	for _, w := range plan(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Facts: facts, Admission: admission,
		Now: now}).Writes {
		if p, ok := w.Object().(*corev1.Pod); ok {
			return p
		}
	}
	t.Fatal("the plan makes no pod")
	return nil
}

func TestAPodBearsTheNamesOfItsReplica(t *testing.T) {
	job := newJob().with("worker", 1)
	job.Spec.ReplicaSpecs[0].Template.Labels = map[string]string{"app": "x", "genericjob": "not this"}
	granted := jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
		"worker": {Count: 1, Injection: podspec.Injection{NodeSelector: map[string]string{"pool": "a"},
			Labels: map[string]string{"granted": "yes"}}}}}
	p := made(t, job, jobs.Facts{}, granted)
	same(t, "labels", map[string]string{
		"app": "x", "genericjob": "job", "genericjob-replica": "job-worker-0", "tensorstack.dev/component": "genericjob",
		"tensorstack.dev/component-type": "user", "tensorstack.dev/owner-name": "job", muster.JobUIDLabel: "job-uid",
		"granted": "yes",
	}, p.Labels)
	same(t, "node selector", map[string]string{"pool": "a"}, p.Spec.NodeSelector)
	same(t, "owner", []metav1.OwnerReference{*metav1.NewControllerRef(job.GenericJob, kind)}, p.OwnerReferences)
	same(t, "command", []string{"train", "--rank=0"}, append(p.Spec.Containers[0].Command, p.Spec.Containers[0].Args...))
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("its restart policy is %s", p.Spec.RestartPolicy)
	}
}

func TestPodsGoToASchedulerThatIsThere(t *testing.T) {
	section := func(job jobBuilder) jobBuilder {
		job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: "q", Priority: 50}}
		return job
	}
	named := func(name string) jobBuilder {
		job := newJob().with("worker", 2)
		job.Spec.ReplicaSpecs[0].Template.Spec.SchedulerName = name
		return job
	}
	both := map[schema.GroupResource]bool{t9kPodGroups: true, volcanoPodGroups: true}
	for what, test := range map[string]struct {
		job    jobBuilder
		served map[schema.GroupResource]bool
		want   string
	}{
		"none named":                               {named(""), both, ""},
		"t9k-scheduler, which is not there":        {named("t9k-scheduler"), nil, ""},
		"t9k-scheduler, which is":                  {named("t9k-scheduler"), both, "t9k-scheduler"},
		"volcano, which is not there":              {named("volcano"), nil, ""},
		"volcano, which is":                        {named("volcano"), both, "volcano"},
		"a third":                                  {named("mine"), nil, "mine"},
		"a section, with t9k-scheduler not there":  {section(named("")), nil, ""},
		"a section, with t9k-scheduler there":      {section(named("")), both, "t9k-scheduler"},
		"a section, and a third in the template":   {section(named("mine")), both, "mine"},
		"a section, and volcano that is not there": {section(named("volcano")), nil, ""},
	} {
		facts := jobs.Facts{Served: test.served}
		if got := made(t, test.job, facts, unqueued).Spec.SchedulerName; got != test.want {
			t.Errorf("%s: the pod goes to %q, want %q", what, got, test.want)
		}
		if got := describe(test.job.GenericJob, facts).PodSets[0].Template.Spec.SchedulerName; got != test.want {
			t.Errorf("%s: the Workload says %q, want %q", what, got, test.want)
		}
	}
	job := section(named(""))
	p := made(t, job, jobs.Facts{}, unqueued)
	for key, want := range map[string]string{"scheduler.tensorstack.dev/group-name": "job",
		"scheduler.tensorstack.dev/queue": "q", "scheduler.tensorstack.dev/role": "worker"} {
		if p.Labels[key] != want {
			t.Errorf("the label %s is %q, want %q", key, p.Labels[key], want)
		}
	}
	d := describe(job.GenericJob, jobs.Facts{})
	if d.Queue != "q" || d.Priority == nil || *d.Priority != 50 {
		t.Errorf("it asks for queue %q with priority %v", d.Queue, d.Priority)
	}
	if podGroup(job.GenericJob, jobs.Facts{}) != nil {
		t.Error("a PodGroup is made for a scheduler that is not there")
	}
	group := podGroup(job.GenericJob, jobs.Facts{Served: both})
	same(t, "spec of the PodGroup",
		map[string]any{"minMember": int64(2), "roles": []any{map[string]any{"name": "worker", "minMember": int64(2)}},
			"queue": "q", "priority": int64(50)}, group.Object["spec"].(map[string]any))
}

func TestASectionWithoutAQueueMeansTheDefaultQueue(t *testing.T) {
	job := newJob().with("worker", 1)
	job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{}}
	if got := describe(job.GenericJob, jobs.Facts{}).Queue; got != "default" {
		t.Errorf("it asks for queue %q", got)
	}
	if got := describe(newJob().with("worker", 1).GenericJob, jobs.Facts{}); got.Queue != "" || got.Priority != nil {
		t.Errorf("without a section it asks for queue %q with priority %v", got.Queue, got.Priority)
	}
}

func TestDebugModeMakesPodsThatDoNothing(t *testing.T) {
	for what, test := range map[string]struct {
		job     jobBuilder
		command []string
		inits   int
	}{
		"with nothing said": {newJob().with("worker", 1).debugged(), []string{"sleep", "inf"}, 1},
		"with a type said": {newJob().with("worker", 1).debugged(tensorstack.ReplicaDebugSet{Type: "worker",
			SkipInitContainer: true, Command: []string{"/usr/bin/sshd"}}), []string{"/usr/bin/sshd"}, 0},
		"with another type said": {newJob().with("worker", 1).with("ps",
			1).debugged(tensorstack.ReplicaDebugSet{Type: "ps", Command: []string{"x"}}), []string{"sleep", "inf"}, 1},
		"variables are replaced there": {newJob().with("worker", 1).debugged(tensorstack.ReplicaDebugSet{Type: "worker",
			Command: []string{"echo", "$(rank)"}}), []string{"echo", "0"}, 1},
	} {
		for i := range test.job.Spec.ReplicaSpecs {
			main := &test.job.Spec.ReplicaSpecs[i].Template.Spec.Containers[0]
			main.LivenessProbe, main.ReadinessProbe, main.StartupProbe = &corev1.Probe{}, &corev1.Probe{}, &corev1.Probe{}
		}
		p := made(t, test.job, jobs.Facts{}, unqueued)
		same(t, what, test.command, p.Spec.Containers[0].Command)
		if main := p.Spec.Containers[0]; main.LivenessProbe != nil || main.ReadinessProbe != nil || main.StartupProbe != nil {
			t.Errorf("%s: the main container has probes, which would end it", what)
		}
		if len(p.Spec.Containers[0].Args) > 0 || len(p.Spec.InitContainers) != test.inits {
			t.Errorf("%s: args %v, %d init containers", what, p.Spec.Containers[0].Args, len(p.Spec.InitContainers))
		}
		same(t, what+": the other container", []string{"ship"}, p.Spec.Containers[1].Command)
	}
}

func TestAJobIsPausedAndResumed(t *testing.T) {
	resume := tensorstack.ResumeSpec{Type: "worker", SkipInitContainer: true, Args: []string{"--resume", "$(rank)"}}
	job := newJob().with("worker", 2).paused(false, resume)
	job = then(see(t, job.GenericJob, unqueued, nil), job)
	job = then(see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Running())), job)
	if job.Status.Phase != tensorstack.JobPhaseRunning {
		t.Fatalf("before the pause it is %s", job.Status.Phase)
	}

	job = job.paused(true, resume)
	p := see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Running()))
	same(t, "when it is paused", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	if !p.StatusFirst {
		t.Error("pods are deleted before it is written that it is paused")
	}
	job = then(p, job)
	same(t, "conditions of a paused job", []string{
		"Initialized=True -: The job has been initialized successfully.",
		"Running=False Paused: The job is paused.",
		"Failed=False -: The job has not ended.",
		"Completed=False -: The job has not ended.",
		"ReplicaFailure=False -: All pods are running normally.",
		"Paused=True Paused: The job is paused.",
	}, conditions(t, p))
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running().Terminating()))
	same(t, "while the pods go", nil, writes(p))
	job = then(p, job)
	if got := job.Status.Aggregate; got.Deleted != 1 || got.Running != 1 ||
		job.Status.Phase != tensorstack.JobPhasePaused {
		t.Errorf("while a pod goes: %+v, %s", got, job.Status.Phase)
	}
	job = then(see(t, job.GenericJob, unqueued, nil), job)

	job = job.paused(false, resume)
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running().Terminating()))
	same(t, "when it is resumed while a pod goes", []string{"create Pod job-worker-1"}, writes(p))
	if got := then(p, job).Status.Phase; got != tensorstack.JobPhaseResuming {
		t.Errorf("when it is resumed it is %s", got)
	}
	going := of(pod("job-worker-0").Running().Terminating(), pod("job-worker-1").Running().Terminating())
	if got := then(see(t, job.GenericJob, unqueued, going), job); got.Status.Phase != tensorstack.JobPhaseResuming ||
		isTrue(got.GenericJob, tensorstack.JobRunning) {
		t.Errorf("when it is resumed while all its pods go it is %s, and says %+v", got.Status.Phase, got.Status.Conditions)
	}
	job = then(p, job)
	resumed := made(t, job, jobs.Facts{}, unqueued)
	same(t, "its command", []string{"train", "--resume", "0"},
		append(resumed.Spec.Containers[0].Command, resumed.Spec.Containers[0].Args...))
	if len(resumed.Spec.InitContainers) != 0 {
		t.Error("it has init containers")
	}
	if got := then(see(t, job.GenericJob, waiting, nil), job).Status.Phase; got != tensorstack.JobPhaseResuming {
		t.Errorf("while it waits in its queue it is %s", got)
	}
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Running()))
	if got := then(p, job).Status; got.Phase != tensorstack.JobPhaseRunning ||
		conditions(t, p)[5] != "Paused=False Resumed: The job is not paused." {
		t.Errorf("then it is %s, %v", got.Phase, conditions(t, p)[5])
	}
}

func TestPauseGoesBeforeDebugMode(t *testing.T) {
	job := newJob().with("worker", 1).debugged().paused(true)
	p := see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running()))
	same(t, "writes", []string{"delete Pod job-worker-0"}, writes(p))
	if !describe(job.GenericJob, jobs.Facts{}).Paused {
		t.Error("it asks for quota")
	}
	job = then(p, job).paused(false)
	same(t, "after the pause it is debugged", []string{"sleep", "inf"},
		made(t, job, jobs.Facts{}, unqueued).Spec.Containers[0].Command)
}

func TestAPauseKeepsWhatHasEndedAndDoesNotCountWhatItEnded(t *testing.T) {
	again := tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 3}
	job := newJob().with("worker", 3, again).paused(true)
	p := see(t, job.GenericJob, unqueued,
		of(pod("job-worker-0").Ended(0), pod("job-worker-1").Ended(1), pod("job-worker-2").Running()))
	same(t, "paused", []string{"delete Pod job-worker-2"}, writes(p))
	job = then(p, job)
	// worker-2 is told to end, and ends, well or not.
	p = see(t, job.GenericJob, unqueued,
		of(pod("job-worker-0").Ended(0), pod("job-worker-1").Ended(1), pod("job-worker-2").EndedAt(143, now).Terminating()))
	job = then(p, job).paused(false)
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Ended(0), pod("job-worker-1").Ended(1)))
	same(t, "resumed", []string{"delete Pod job-worker-1", "create Pod job-worker-2"}, writes(p))
	if got := then(p, job).Status.Tasks[0]; got.RestartCount != 1 || got.Replicas[1].RestartCount != 1 ||
		got.Replicas[2].RestartCount != 0 {
		t.Errorf("restarts are %+v", got)
	}
}

// TestPodsGetNoMoreThanTheirQuotaIsFor: a template may be changed at any time, and counts from the next admission on
// where its pods need something else.
func TestPodsGetNoMoreThanTheirQuotaIsFor(t *testing.T) {
	before := newJob().with("worker", 1).Spec.ReplicaSpecs[0].Template
	grant := jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{"worker": {Count: 1, Asked: 1, Left: 1, Template: &before}}}
	made := func(change func(*corev1.PodSpec)) *corev1.Pod {
		job := newJob().with("worker", 1)
		change(&job.Spec.ReplicaSpecs[0].Template.Spec)
		for _, w := range see(t, job.GenericJob, grant, nil).Writes {
			if pod, ok := w.Object().(*corev1.Pod); ok {
				return pod
			}
		}
		t.Fatal("no pod is made")
		return nil
	}
	larger := made(func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	})
	if got := larger.Spec.Containers[0].Resources.Requests; len(got) > 0 {
		t.Errorf("a pod without quota for it asks for %v", got)
	}
	other := made(func(spec *corev1.PodSpec) { spec.Containers[0].Command = []string{"retrain"} })
	if other.Spec.Containers[0].Command[0] != "retrain" {
		t.Error("a change that costs nothing does not reach the pods")
	}
}

func TestARestartIsCountedOnceAndThePodIsReplaced(t *testing.T) {
	again := tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 2}
	job := newJob().with("worker", 2, again)
	job = then(see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Running())), job)
	p := see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Ended(7)))
	same(t, "writes", []string{"delete Pod job-worker-1"}, writes(p))
	if !p.StatusFirst {
		t.Error("the pod is deleted before the restart is counted")
	}
	same(t, "ReplicaFailure", "ReplicaFailure=True ErrorInPod: Pod[job-worker-1] exited with error code 7",
		conditions(t, p)[4])
	job = then(p, job)
	// Nothing was written but the status.
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Ended(7)))
	same(t, "writes after a crash", []string{"delete Pod job-worker-1"}, writes(p))
	if got := then(p, job).Status.Tasks[0].RestartCount; got != 1 {
		t.Errorf("it was restarted %d times", got)
	}
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running()))
	same(t, "writes when it is gone", []string{"create Pod job-worker-1"}, writes(p))
	if got := p.Writes[0].Object().GetAnnotations()[muster.RestartsAnnotation]; got != "1" {
		t.Errorf("the new pod is of attempt %s", got)
	}
	job = then(p, job)
	p = see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Attempt(1).Running()))
	same(t, "ReplicaFailure when it runs again", "ReplicaFailure=False -: All pods are running normally.",
		conditions(t, p)[4])
	if got := then(p, job).Status; got.Phase != tensorstack.JobPhaseRunning || got.Tasks[0].RestartCount != 1 {
		t.Errorf("it is %s with %d restarts", got.Phase, got.Tasks[0].RestartCount)
	}
}

func TestCleanUp(t *testing.T) {
	for policy, want := range map[tensorstack.CleanUpPolicy][]string{
		"":                            nil,
		tensorstack.CleanUpNone:       nil,
		tensorstack.CleanUpUnfinished: {"delete Pod job-worker-2", "delete Pod job-worker-3"},
		tensorstack.CleanUpAll: {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Pod job-worker-2",
			"delete Pod job-worker-3"},
	} {
		job := newJob().with("worker", 4).succeedsBy(rule("worker", 0)).cleans(policy)
		pods := of(pod("job-worker-0").Ended(0), pod("job-worker-1").Ended(1), pod("job-worker-2").Running(),
			pod("job-worker-3"))
		p := see(t, job.GenericJob, unqueued, pods)
		same(t, "writes under "+string(policy), want, writes(p))
		job = then(p, job)
		var left []jobstest.Pod
		for _, child := range pods {
			gone := false
			for _, w := range p.Writes {
				gone = gone || w.Object().GetName() == child.GetName()
			}
			if !gone {
				left = append(left, jobstest.Pod{Pod: child.(*corev1.Pod)})
			}
		}
		p = see(t, job.GenericJob, unqueued, of(left...))
		same(t, "writes later on under "+string(policy), nil, writes(p))
		got := then(p, job).Status
		if int(got.Aggregate.Deleted) != len(want) {
			t.Errorf("under %s %d replicas are deleted, want %d", policy, got.Aggregate.Deleted, len(want))
		}
		if policy == tensorstack.CleanUpAll {
			same(t, "what is left of a pod that was deleted",
				tensorstack.ReplicaStatus{Name: "job-worker-1", UID: "job-worker-1-uid", Phase: tensorstack.ReplicaDeleted,
					Containers: []tensorstack.ContainerStatus{{Name: "main", State: tensorstack.ContainerTerminated,
						ExitCode: ptr.To[int32](1)}}}, got.Tasks[0].Replicas[1])
			same(t, "what is left of a pod that was deleted while it ran",
				tensorstack.ReplicaStatus{Name: "job-worker-2", UID: "job-worker-2-uid", Phase: tensorstack.ReplicaDeleted,
					Containers: []tensorstack.ContainerStatus{{Name: "main", State: tensorstack.ContainerTerminated}}},
				got.Tasks[0].Replicas[2])
		}
	}
}

func TestAQueueTakesBackWhatRuns(t *testing.T) {
	job := newJob().with("worker", 2)
	job = then(see(t, job.GenericJob, admitted, of(pod("job-worker-0").Running(), pod("job-worker-1").Running())), job)
	p := see(t, job.GenericJob, stopping, of(pod("job-worker-0").Ended(0), pod("job-worker-1").Running()))
	same(t, "writes", []string{"delete Pod job-worker-1"}, writes(p))
	if !p.Progress.Active {
		t.Error("with a pod that runs, its queue is told that none does")
	}
	job = then(p, job)
	p = see(t, job.GenericJob, waiting, of(pod("job-worker-0").Ended(0)))
	if p.Progress.Active || p.Progress.Reclaimable["worker"] != 1 ||
		then(p, job).Status.Phase != tensorstack.JobPhasePending {
		t.Errorf("with one that has succeeded it is %s, and its queue is told %+v", then(p, job).Status.Phase, p.Progress)
	}
	job = then(p, job)
	p = see(t, job.GenericJob, admitted, of(pod("job-worker-0").Ended(0)))
	same(t, "writes when it is admitted again", []string{"create Pod job-worker-1"}, writes(p))
}

// TestStatusDerivedFromPodsCanWait: that a pod starts while others do not is news that waits;
// what changes the phase is not, nor what only the status remembers.
func TestStatusDerivedFromPodsCanWait(t *testing.T) {
	again := tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 1}
	job := newJob().with("worker", 3, again)
	step := func(what string, waits bool, phase tensorstack.JobPhase, pods ...jobstest.Pod) {
		t.Helper()
		p := see(t, job.GenericJob, unqueued, of(pods...))
		job = then(p, job)
		if canWait := p.StatusCanWait || p.Status == nil; canWait != waits || job.Status.Phase != phase {
			t.Errorf("%s: its status, %s, can wait: %v", what, job.Status.Phase, canWait)
		}
	}
	one, two, three := pod("job-worker-0"), pod("job-worker-1"), pod("job-worker-2")
	step("at first", false, tensorstack.JobPhasePending)
	step("one runs", true, tensorstack.JobPhasePending, one.Running(), two, three)
	step("all run", false, tensorstack.JobPhaseRunning, one, two.Running(), three.Running())
	step("one has succeeded", true, tensorstack.JobPhaseRunning, one.Ended(0), two, three)
	step("its pod is gone", true, tensorstack.JobPhaseRunning, two, three)
	step("another is to be restarted", false, tensorstack.JobPhaseRunning, two.Ended(1), three)
	step("its pod is gone", true, tensorstack.JobPhaseRunning, three)
	step("the last is gone, and is made again", false, tensorstack.JobPhaseRunning)
}

// TestTheStatusOfAFailedJob is that of the vendor's sample.
func TestTheStatusOfAFailedJob(t *testing.T) {
	job := newJob().with("worker", 2).succeedsBy(rule("worker", 0)).failsBy(rule("worker", 1)).
		cleans(tensorstack.CleanUpUnfinished)
	p := see(t, job.GenericJob, unqueued, of(pod("job-worker-0").Running(), pod("job-worker-1").Ended(1)))
	same(t, "conditions", []string{
		"Initialized=True -: The job has been initialized successfully.",
		`Running=False Failed: The job is failed with rule: {"worker":["1"]}`,
		`Failed=True Failed: The job is failed with rule: {"worker":["1"]}`,
		`Completed=True Failed: The job is failed with rule: {"worker":["1"]}`,
		"ReplicaFailure=True ErrorInPod: Pod[job-worker-1] exited with error code 1",
		"Paused=False -: The job is not paused.",
	}, conditions(t, p))
	status := statusOf(t, p)
	same(t, "aggregate", &tensorstack.Aggregate{Running: 1, Failed: 1}, status.Aggregate)
	if status.Phase != tensorstack.JobPhaseFailed {
		t.Errorf("its phase is %s", status.Phase)
	}
	same(t, "writes", []string{"delete Pod job-worker-0"}, writes(p))
	same(t, "events", []write.Event{write.Warning("Failed", `The job is failed with rule: {"worker":["1"]}`)}, p.Events)
	if !p.StatusFirst {
		t.Error("the pod is deleted before it is written that the job has failed")
	}
}

// TestTheStatusCountsReadyReplicas: a pod whose container ends again and again is running, and not ready.
func TestTheStatusCountsReadyReplicas(t *testing.T) {
	crashing := pod("job-worker-1").Running()
	crashing.Status.Conditions[0].Status = corev1.ConditionFalse
	job := newJob().with("worker", 3)
	status := statusOf(t, see(t, job.GenericJob, unqueued,
		of(pod("job-worker-0").Running(), crashing, pod("job-worker-2").Ended(0))))
	if status.Aggregate.Running != 2 || status.Ready == nil || *status.Ready != 1 {
		t.Errorf("%d replicas run, and %v are ready; want 2 and 1", status.Aggregate.Running, status.Ready)
	}
}

// TestEqualStatusComparesEveryField changes each field in turn and expects a difference.
func TestEqualStatusComparesEveryField(t *testing.T) {
	job, _ := atRest(2)
	job.Status.Tasks[0].Replicas[0].Containers[0].ExitCode = ptr.To[int32](0)
	for what, change := range map[string]func(*tensorstack.GenericJobStatus){
		"phase":       func(s *tensorstack.GenericJobStatus) { s.Phase = "x" },
		"counts":      func(s *tensorstack.GenericJobStatus) { s.Aggregate.Unknown++ },
		"no counts":   func(s *tensorstack.GenericJobStatus) { s.Aggregate = nil },
		"ready":       func(s *tensorstack.GenericJobStatus) { s.Ready = ptr.To[int32](7) },
		"a condition": func(s *tensorstack.GenericJobStatus) { s.Conditions[1].Message = "x" },
		"its time": func(s *tensorstack.GenericJobStatus) {
			s.Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(time.Hour))
		},
		"no conditions":   func(s *tensorstack.GenericJobStatus) { s.Conditions = nil },
		"a type":          func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Type = "x" },
		"restarts":        func(s *tensorstack.GenericJobStatus) { s.Tasks[0].RestartCount++ },
		"a replica less":  func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas = s.Tasks[0].Replicas[:1] },
		"a name":          func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[1].Name = "x" },
		"a UID":           func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[1].UID = "x" },
		"a replica's end": func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[1].Phase = "x" },
		"its restarts":    func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[1].RestartCount++ },
		"a container":     func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[1].Containers[0].Name = "x" },
		"its state":       func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[1].Containers[0].State = "x" },
		"its exit code": func(s *tensorstack.GenericJobStatus) {
			s.Tasks[0].Replicas[0].Containers[0].ExitCode = ptr.To[int32](1)
		},
		"no exit code": func(s *tensorstack.GenericJobStatus) { s.Tasks[0].Replicas[0].Containers[0].ExitCode = nil },
	} {
		other := job.Status.DeepCopy()
		if !equalStatus(&job.Status, other) {
			t.Fatal("a status is not the same as itself")
		}
		if change(other); equalStatus(&job.Status, other) {
			t.Errorf("%s differs, and it is the same", what)
		}
	}
}
