package vcjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestAPodThatFailsAlwaysEndsItsJobAtMaxRetry(t *testing.T) {
	for _, action := range []bus.Action{bus.RestartJobAction, bus.RestartTaskAction, bus.RestartPodAction} {
		t.Run(string(action), func(t *testing.T) {
			job := newJob().with("worker", 2).on(bus.PodFailedEvent, action)
			job.Spec.MaxRetry = 4
			var pods []any
			created := 0
			for range 200 {
				got := see(t, job.Job, admitted("worker", 2), of(pods...))
				job = then(got, job)
				for _, w := range writes(got) {
					verb, name, _ := strings.Cut(w, " ")
					switch verb {
					case "create":
						created++
						made := podBuilder{made(t, got, name)}
						if name == "job-worker-0" {
							made.ended(1)
						} else {
							made.running()
						}
						made.UID = "u"
						pods = append(pods, made)
					case "delete":
						for i := range pods {
							if pods[i].(podBuilder).Name == name {
								pods = append(pods[:i], pods[i+1:]...)
								break
							}
						}
					}
				}
			}
			if s := job.Status; s.State.Phase != volcano.Failed || s.RetryCount != 4 {
				t.Errorf("after all this it is %s with %d retries: %s", s.State.Phase, s.RetryCount, s.State.Message)
			}
			if most := 8; created > most {
				t.Errorf("%d pods were made, want at most %d", created, most)
			}
		})
	}
}

func TestAPolicyWaitsForItsTimeout(t *testing.T) {
	job := newJob().with("worker", 1).is(volcano.Running)
	job.Spec.Policies = []volcano.LifecyclePolicy{{Event: bus.PodFailedEvent, Action: bus.RestartJobAction,
		Timeout: &metav1.Duration{Duration: 90 * time.Second}}}
	children := of(pod("job-worker-0").ended(1)) // a minute ago
	job.Spec.Tasks[0].Replicas = 2
	got := see(t, job.Job, admitted("worker", 2), append(children, pod("job-worker-1").running().Pod))
	if want := now.Add(30 * time.Second); !got.Due.Equal(want) || strings.HasPrefix(state(got), "Restarting") {
		t.Errorf("due %v in state %s, want %v", got.Due, state(got), want)
	}
	job.Spec.Policies[0].Timeout.Duration = time.Minute
	if got := see(t, job.Job, admitted("worker", 2),
		append(children, pod("job-worker-1").running().Pod)); !strings.HasPrefix(state(got), "Restarting") {
		t.Errorf("state %s, want Restarting", state(got))
	}
}

// The timeout of a policy counts from the start of its event.
func TestATimeoutCountsFromTheStartOfTheEvent(t *testing.T) {
	tenMinutesAgo := metav1.NewTime(now.Add(-10 * time.Minute))
	unknown := pod("job-worker-0").running()
	unknown.Status.Phase = corev1.PodUnknown
	unknown.Status.Conditions[0].LastTransitionTime = tenMinutesAgo
	refused := pod("job-worker-0") // by its node, which starts no container
	refused.Status.Phase, refused.Status.Reason = corev1.PodFailed, "OutOfcpu"
	refused.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
		LastTransitionTime: tenMinutesAgo}}
	restarted := pod("job-worker-0").running()
	restarted.Status.ContainerStatuses[0].LastTerminationState.Terminated =
		&corev1.ContainerStateTerminated{StartedAt: tenMinutesAgo}
	restarted.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now.Add(-time.Minute))
	often := pod("job-worker-0").running() // every minute
	often.Status.StartTime = &tenMinutesAgo
	often.Status.ContainerStatuses[0].RestartCount = 9
	often.Status.ContainerStatuses[0].LastTerminationState.Terminated =
		&corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(now.Add(-2 * time.Minute))}
	often.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now.Add(-time.Minute))
	for name, test := range map[string]struct {
		event bus.Event
		pod   podBuilder
		since time.Duration
	}{
		"a pod runs whose container begins anew again and again": {bus.PodRunningEvent, often, 10 * time.Minute},
		"a pod runs":                            {bus.PodRunningEvent, pod("job-worker-0").running(), time.Hour},
		"a pod runs whose container began anew": {bus.PodRunningEvent, restarted, 10 * time.Minute},
		"nothing is known of a pod":             {bus.JobUnknownEvent, unknown, 10 * time.Minute},
		"a pod has failed without a container":  {bus.PodFailedEvent, refused, 10 * time.Minute},
	} {
		job := newJob().with("worker", 2).is(volcano.Running)
		job.Spec.Policies = []volcano.LifecyclePolicy{{Event: test.event, Action: bus.TerminateJobAction,
			Timeout: &metav1.Duration{Duration: test.since + time.Minute}}}
		waiting := pod("job-worker-1")
		got := see(t, job.Job, admitted("worker", 2), of(test.pod, waiting))
		if phase := then(got, job).Status.State.Phase; phase == volcano.Terminating || !got.Due.Equal(now.Add(time.Minute)) {
			t.Errorf("%s: a minute before its time the job is %s, to be looked at %v", name, phase, got.Due)
		}
		job.Spec.Policies[0].Timeout.Duration = test.since
		if phase := then(see(t, job.Job, admitted("worker", 2), of(test.pod, waiting)),
			job).Status.State.Phase; phase != volcano.Terminating {
			t.Errorf("%s: when it is time the job is %s", name, phase)
		}
	}
}

// What its author says of a failure counts though all pods have ended meanwhile, as those of a training do of which one
// has failed.
func TestAJobDoesNotEndBeforeThePolicyForAFailureIsDue(t *testing.T) {
	job := newJob().with("worker", 2).is(volcano.Running)
	job.Spec.Policies = []volcano.LifecyclePolicy{{Event: bus.PodFailedEvent, Action: bus.RestartJobAction,
		Timeout: &metav1.Duration{Duration: 5 * time.Minute}}}
	failed := of(pod("job-worker-0").ended(1), pod("job-worker-1").ended(1)) // a minute ago
	got := see(t, job.Job, admitted("worker", 2), failed)
	if phase := then(got, job).Status.State.Phase; phase != volcano.Running || !got.Due.Equal(now.Add(4*time.Minute)) {
		t.Errorf("the job is %s (%s), to be looked at %v", phase, state(got), got.Due)
	}
	job.Spec.Policies[0].Timeout.Duration = time.Minute
	if s := state(see(t, job.Job, admitted("worker", 2), failed)); !strings.HasPrefix(s, "Restarting") {
		t.Errorf("when it is time the job is %s", s)
	}
	// Where the policy is for another code, nothing is to come.
	job.Spec.Policies = []volcano.LifecyclePolicy{{ExitCode: ptr.To[int32](3), Action: bus.RestartJobAction,
		Timeout: &metav1.Duration{Duration: 5 * time.Minute}}}
	if s := state(see(t, job.Job, admitted("worker", 2), failed)); !strings.HasPrefix(s, "Failed") {
		t.Errorf("without a policy for it the job is %s", s)
	}
}

// An evicted pod is gone long before the timeout of a policy is over: it is made anew, and nothing more is done if that
// runs in time.
func TestTheTimeoutOfAnEvictionOutlastsThePod(t *testing.T) {
	other, admission := pod("job-worker-1").running(), admitted("worker", 2)
	job := newJob().with("worker", 2).is(volcano.Running)
	job.Spec.Policies = []volcano.LifecyclePolicy{{Event: bus.PodEvictedEvent, Action: bus.RestartJobAction,
		Timeout: &metav1.Duration{Duration: 5 * time.Minute}}}
	at := func(after time.Duration, children ...any) jobs.Plan {
		return plan(jobs.Seen[*volcano.Job]{Job: job.Job, Admission: admission, Children: of(children...),
			Now: now.Add(after)})
	}
	job = then(at(0, pod("job-worker-0").running(), other), job)
	going := at(0, pod("job-worker-0").running().going(), other)
	if !going.StatusFirst || strings.HasPrefix(state(going), "Restarting") {
		t.Fatalf("while the pod goes: %s, status first: %v", state(going), going.StatusFirst)
	}
	job = then(going, job)
	gone := at(time.Minute, other)
	same(t, "once it is gone", []string{"create job-worker-0"}, writes(gone))
	job = then(gone, job)
	again := pod("job-worker-0")
	again.UID = "again"
	bound := podBuilder{again.DeepCopy()}
	bound.Spec.NodeName = "node"
	for name, test := range map[string]struct {
		after time.Duration
		pod   podBuilder
		want  string
	}{
		"the next one does not run yet":                       {4 * time.Minute, again, "Pending"},
		"the next one does not run in time":                   {5 * time.Minute, again, "Restarting"},
		"the next one has a node, and is not running in time": {5 * time.Minute, bound, "Restarting"},
		"the next one runs when time is over": {5 * time.Minute,
			podBuilder{again.DeepCopy()}.running(), "Running"},
	} {
		got := at(test.after, test.pod, other)
		if phase := string(then(got, job).Status.State.Phase); phase != test.want {
			t.Errorf("%s: it is %s, want %s", name, phase, test.want)
		}
		if test.after == 4*time.Minute && !got.Due.Equal(now.Add(5*time.Minute)) {
			t.Errorf("%s: it is looked at again at %v", name, got.Due)
		}
	}
	// One that nobody has seen go is away since it was found to be.
	job = newJob().with("worker", 2).is(volcano.Running)
	job.Spec.Policies = []volcano.LifecyclePolicy{{Event: bus.PodEvictedEvent, Action: bus.RestartJobAction,
		Timeout: &metav1.Duration{Duration: 5 * time.Minute}}}
	job = then(at(0, pod("job-worker-0").running(), other), job)
	if found := at(time.Minute, other); strings.HasPrefix(state(found), "Restarting") || !found.StatusFirst {
		t.Errorf("a pod is missed: %s", state(found))
	}
}

func TestAPodThatDoesNotStartIsAnEventOnlyAfterATimeout(t *testing.T) {
	job := newJob().with("worker", 1).on(bus.PodPendingEvent, bus.AbortJobAction).is(volcano.Pending)
	if got := see(t, job.Job, admitted("worker", 1), of(pod("job-worker-0"))); strings.HasPrefix(state(got), "Abort") {
		t.Error("a pod that is just being started stops its job")
	}
	job.Spec.Policies[0].Timeout = &metav1.Duration{Duration: time.Hour}
	if got := see(t, job.Job, admitted("worker", 1), of(pod("job-worker-0"))); !strings.HasPrefix(state(got), "Aborting") {
		t.Errorf("state %s, want Aborting", state(got))
	}
}

// The number of an attempt never comes again: what was started anew alone goes with its job all the same.
func TestARestartedJobLeavesNoPodBehind(t *testing.T) {
	job := newJob().with("worker", 2).on(bus.PodFailedEvent, bus.RestartPodAction).on(bus.PodEvictedEvent,
		bus.RestartJobAction).is(volcano.Running)
	job.Spec.MaxRetry = 9
	admission, other := admitted("worker", 2), pod("job-worker-1").running()
	first := pod("job-worker-0")
	for range 2 {
		job = then(see(t, job.Job, admission, of(first.ended(1), other)), job)
		first = podBuilder{made(t, see(t, job.Job, admission, of(other)), "job-worker-0")}
		first.UID = "made"
	}
	job = then(see(t, job.Job, admission, of(first.running(), other.going())), job)
	if job.Status.State.Phase != volcano.Restarting {
		t.Fatalf("it is %s", job.Status.State.Phase)
	}
	same(t, "all go", []string{"delete job-worker-0"}, writes(see(t, job.Job, admission, of(first, other))))

	// One that has failed before is none of the failures of what comes after.
	again := see(t, job.Job, admission, of(first.ended(1)))
	if got := again.Status; got != nil && got.(*volcano.Job).Status.RetryCount != 3 {
		t.Errorf("%d retries, want 3", got.(*volcano.Job).Status.RetryCount)
	}
	same(t, "the failed one goes too", []string{"delete job-worker-0"}, writes(again))
}

func TestAPodWhoseDeletionWasNotObservedWasEvicted(t *testing.T) {
	job := twoTasks().on(bus.PodEvictedEvent, bus.RestartJobAction).is(volcano.Running)
	job = then(see(t, job.Job, all,
		of(pod("job-ps-0").running(), pod("job-worker-0").running(), pod("job-worker-1").running())), job)
	rest := of(pod("job-ps-0").running(), pod("job-worker-0").running())
	if got, want := state(see(t, job.Job, all, rest)),
		"Restarting Restarting: pod job-worker-1 was evicted or deleted"; got != want {
		t.Errorf("state %q, want %q", got, want)
	}
	// While it may not run its pods go because they must.
	held := then(see(t, job.Job, waiting, rest), job)
	if got := see(t, held.Job, all, nil); strings.HasPrefix(state(got), "Restarting") {
		t.Errorf("after an eviction by the queue the state is %q", state(got))
	}
}

// TestAnExitCodePolicySeesEveryContainer: the first policy in order that is for the code of any container applies.
func TestAnExitCodePolicySeesEveryContainer(t *testing.T) {
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	forCode := func(code int32, action bus.Action) volcano.LifecyclePolicy {
		return volcano.LifecyclePolicy{ExitCode: ptr.To(code), Action: action}
	}
	always := corev1.ContainerRestartPolicyAlways
	complete, terminate := forCode(42, bus.CompleteJobAction),
		volcano.LifecyclePolicy{Event: bus.PodFailedEvent, Action: bus.TerminateJobAction}
	for name, test := range map[string]struct {
		init, containers []corev1.ContainerStatus
		policies         []volcano.LifecyclePolicy
		want             string
	}{
		"the second container": {nil, []corev1.ContainerStatus{ended("a", 1), ended("b", 42)},
			[]volcano.LifecyclePolicy{complete, terminate},
			"Completing CompleteJob: a container of pod job-worker-0 has failed with exit code 42"},
		"the first container": {nil, []corev1.ContainerStatus{ended("a", 42), ended("b", 3)},
			[]volcano.LifecyclePolicy{complete, terminate},
			"Completing CompleteJob: pod job-worker-0 has failed with exit code 42"},
		"an init container": {[]corev1.ContainerStatus{ended("i", 0), ended("j", 42)}, nil,
			[]volcano.LifecyclePolicy{complete, terminate},
			"Completing CompleteJob: pod job-worker-0 has failed with exit code 42"},
		"a container beside one that succeeded": {nil, []corev1.ContainerStatus{ended("a", 0), ended("b", 42)},
			[]volcano.LifecyclePolicy{complete, terminate},
			"Completing CompleteJob: pod job-worker-0 has failed with exit code 42"},
		"the first of two policies that match": {nil, []corev1.ContainerStatus{ended("a", 1), ended("b", 42)},
			[]volcano.LifecyclePolicy{complete, forCode(1, bus.AbortJobAction)},
			"Completing CompleteJob: a container of pod job-worker-0 has failed with exit code 42"},
		"the order of containers does not matter": {nil, []corev1.ContainerStatus{ended("a", 1), ended("b", 42)},
			[]volcano.LifecyclePolicy{forCode(1, bus.AbortJobAction), complete},
			"Aborting AbortJob: pod job-worker-0 has failed with exit code 1"},
		"an earlier policy for any failure": {nil, []corev1.ContainerStatus{ended("a", 1), ended("b", 42)},
			[]volcano.LifecyclePolicy{terminate, complete},
			"Terminating TerminateJob: pod job-worker-0 has failed with exit code 1"},
		"a sidecar, which the kubelet stopped": {[]corev1.ContainerStatus{ended("sidecar", 42)},
			[]corev1.ContainerStatus{ended("a", 1)}, []volcano.LifecyclePolicy{complete, terminate},
			"Terminating TerminateJob: pod job-worker-0 has failed with exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := pod("job-worker-0").ended(1)
			failed.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always}}
			failed.Status.InitContainerStatuses, failed.Status.ContainerStatuses = test.init, test.containers
			job := newJob().with("worker", 2).is(volcano.Running)
			job.Spec.Policies = test.policies
			if got := state(see(t, job.Job, admitted("worker", 2),
				of(failed, pod("job-worker-1").running()))); got != test.want {
				t.Errorf("state %q, want %q", got, test.want)
			}
		})
	}
}
