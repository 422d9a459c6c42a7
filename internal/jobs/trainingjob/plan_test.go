package trainingjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/podspec"
)

func TestAJobGetsAsManyWorkersAsItIsGranted(t *testing.T) {
	job := newJob(2, 4)
	p := see(t, now, job.TrainingJob, waiting, nil)
	same(t, "while it waits", nil, writes(p))
	job = then(p, job)
	same(t, "then it is", "Waiting 0", stands(job))
	same(t, "its conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created."}, conditions(job))
	for what, at := range map[string]*metav1.Time{"submitTime": job.Status.SubmitTime, "queuedTime": job.Status.QueuedTime} {
		if !at.Equal(&job.CreationTimestamp) {
			t.Errorf("%s is %s, not that of its creation", what, at)
		}
	}

	p = see(t, now, job.TrainingJob, admitted(2), nil)
	same(t, "once it has two", []string{
		"create Pod job-worker-0", "create Pod job-worker-1", "create Service job-worker-0", "create Service job-worker-1"}, writes(p))
	job = then(p, job)
	same(t, "then it is", "Running 2", stands(job))
	if s := &job.Status; !s.LastExecTime.Time.Equal(now) || !s.ExecStatus.StartTime.Time.Equal(now) {
		t.Errorf("it says that it was started at %v and %v", s.LastExecTime, s.ExecStatus.StartTime)
	}

	p = see(t, now, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1).Running()))
	same(t, "grown to four", []string{"create Pod job-worker-2", "create Pod job-worker-3",
		"create Service job-worker-0", "create Service job-worker-1", "create Service job-worker-2", "create Service job-worker-3"}, writes(p))
	same(t, "it tells", []string{"Normal Resized: The job goes on with 4 workers in place of 2"}, events(p))
	job = then(p, job)
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.", "Running=True TrainingJobRunning: TrainingJob job is running."}, conditions(job))

	p = see(t, now, job.TrainingJob, admitted(3), of(pod(0), pod(1).Running(), pod(2).Running(), pod(3).Running()))
	if got := writes(p); got[3] != "delete Pod job-worker-0" || len(got) != 4 {
		t.Errorf("shrunk to three: %v, want the pending pod deleted", got)
	}
	same(t, "its queue is told", map[string]int32{worker: 4}, p.Progress.Pods)
	if !p.Progress.Ready || !p.Progress.Active {
		t.Errorf("its queue is told %+v", p.Progress)
	}
}

func TestServicesGoWithTheirWorkers(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-1", Namespace: "ns"}}
	job := then(see(t, now, newJob(1, 2).TrainingJob, admitted(2), nil), newJob(1, 2))
	p := see(t, now, job.TrainingJob, admitted(1), append(of(pod(0).Running(), pod(1).Running()), service))
	same(t, "shrunk", []string{"create Service job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-1"}, writes(p))
}

func TestAPodBearsTheNamesOfItsWorker(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.Dataset = "imagenet"
	job.Spec.ReplicaSpecs.Template.Labels = map[string]string{"app": "x", "training.kubeflow.org/job-name": "not this"}
	grant := admitted(1)
	grant.PodSets[worker] = jobs.PodSetAdmission{Count: 1, Injection: podspec.Injection{NodeSelector: map[string]string{"pool": "a"}}}
	var got *corev1.Pod
	var service *corev1.Service
	for _, w := range see(t, now, job.TrainingJob, grant, nil).Writes {
		switch o := w.Object().(type) {
		case *corev1.Pod:
			got = o
		case *corev1.Service:
			service = o
		}
	}
	ours := map[string]string{"training.kubeflow.org/operator-name": "trainingjob-controller", "training.kubeflow.org/job-name": "job",
		"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
	labels := map[string]string{"app": "x", muster.JobUIDLabel: "job-uid"}
	for key, value := range ours {
		labels[key] = value
	}
	same(t, "labels", labels, got.Labels)
	same(t, "node selector", map[string]string{"pool": "a"}, got.Spec.NodeSelector)
	same(t, "owner", []metav1.OwnerReference{*metav1.NewControllerRef(job.TrainingJob, settings.kind())}, got.OwnerReferences)
	same(t, "mounts", []corev1.VolumeMount{{Name: "muster-dataset", MountPath: "/datasets/imagenet", ReadOnly: true}}, got.Spec.Containers[1].VolumeMounts)
	same(t, "mounts of the other container", nil, got.Spec.Containers[0].VolumeMounts)
	same(t, "selector of the Service", ours, service.Spec.Selector)
	if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses || service.Spec.Ports[0].Port != 23456 {
		t.Errorf("the Service is %+v", service.Spec)
	}
}

func TestWhereContainersAreRestarted(t *testing.T) {
	for policy, want := range map[breezeml.RestartPolicy]corev1.RestartPolicy{
		"": "Never", breezeml.RestartNever: "Never", breezeml.RestartExitCode: "Never", breezeml.RestartOnFailure: "OnFailure", breezeml.RestartAlways: "Always",
	} {
		job := newJob(1, 1).restarts(policy)
		job.Spec.ReplicaSpecs.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p := see(t, now, job.TrainingJob, admitted(1), nil)
		if got := podsIn(p)[0].Spec.RestartPolicy; got != want {
			t.Errorf("with %q nodes do %s, want %s", policy, got, want)
		}
		if told := len(p.Events) == 1 && p.Events[0].Reason == breezeml.TemplateRestartPolicyReason; told != (want != "Always") {
			t.Errorf("with %q: told %v", policy, events(p))
		}
		job.Spec.InjectLattice = true
		if got := podsIn(seeWithAgent(t, job.TrainingJob, admitted(1)))[0].Spec.RestartPolicy; got != "Never" {
			t.Errorf("with %q and the agent nodes do %s", policy, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for what, test := range map[string]struct {
		least, most *int32
		want        sizes
		wrong       bool
	}{
		"none":                  {nil, nil, sizes{1, 1}, false},
		"a lone minSize":        {ptr.To[int32](3), nil, sizes{3, 3}, false},
		"a lone maxSize":        {nil, ptr.To[int32](4), sizes{1, 4}, false},
		"both":                  {ptr.To[int32](2), ptr.To[int32](4), sizes{2, 4}, false},
		"minSize above maxSize": {ptr.To[int32](5), ptr.To[int32](4), sizes{5, 4}, true},
		"zero":                  {ptr.To[int32](0), ptr.To[int32](4), sizes{0, 4}, true},
		"a lone maxSize of 0":   {nil, ptr.To[int32](0), sizes{1, 0}, true},
		"negative":              {ptr.To[int32](-2), ptr.To[int32](-1), sizes{-2, -1}, true},
		"a lone negative":       {ptr.To[int32](-2), nil, sizes{-2, 1}, true},
	} {
		job := newJob(1, 1)
		job.Spec.MinSize, job.Spec.MaxSize = test.least, test.most
		if got, wrong := sizesOf(job.TrainingJob), mistakeOf(job.TrainingJob); got != test.want || (wrong != "") != test.wrong {
			t.Errorf("%s: %+v, wrong: %q", what, got, wrong)
		}
		d := describe(job.TrainingJob, jobs.Facts{})
		if d.Paused != test.wrong || (len(d.PodSets) == 0) != test.wrong {
			t.Errorf("%s: it asks for %+v", what, d)
		}
	}
}

func TestWhatAJobAsksOfItsQueue(t *testing.T) {
	job := newJob(2, 4)
	d := describe(job.TrainingJob, jobs.Facts{})
	ps := d.PodSets[0]
	if ps.Name != "worker" || ps.Count != 4 || *ps.MinCount != 2 || ps.Template.Annotations[muster.MinReplicasAnnotation] != "2" || ps.Template.Annotations[muster.MaxReplicasAnnotation] != "4" {
		t.Errorf("it asks for %+v", ps)
	}
	if d.Queue != "" || *d.Priority != 0 || d.Foreign || d.Paused || !d.QueuedTime.Equal(job.CreationTimestamp.Time) {
		t.Errorf("it asks %+v", d)
	}
	job.Spec.RunPolicy.SchedulingPolicy = &breezeml.SchedulingPolicy{Queue: "q", PriorityClass: "high"}
	job.Spec.RunPolicy.ManagedBy = ptr.To("example.com/other")
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Queue != "q" || d.Priority != nil || d.PriorityClass != "high" || !d.Foreign {
		t.Errorf("with a scheduling policy it asks %+v", d)
	}
	job.Spec.Priority = -1
	job.Spec.RunPolicy.ManagedBy = ptr.To(breezeml.ControllerName)
	if d := describe(job.TrainingJob, jobs.Facts{}); *d.Priority != -1 || d.PriorityClass != "" || d.Foreign {
		t.Errorf("with a priority of its own it asks %+v", d)
	}
	if ps := describe(newJob(3, 3).TrainingJob, jobs.Facts{}).PodSets[0]; *ps.MinCount != 3 || ps.Template.Annotations[muster.MinReplicasAnnotation] != "3" {
		t.Errorf("of one size it asks for %+v", ps)
	}
	for what, paused := range map[string]jobBuilder{
		"suspended": newJob(1, 1).suspended(true), "cooling down": {&breezeml.TrainingJob{Status: breezeml.TrainingJobStatus{Stage: breezeml.StageRequeueCooldown}}},
	} {
		if !describe(paused.TrainingJob, jobs.Facts{}).Paused {
			t.Errorf("%s: it asks all the same", what)
		}
	}
}

func TestAJobWithWrongSizesWaitsUntilTheyAreMended(t *testing.T) {
	job := newJob(2, 4)
	job = then(see(t, now, job.TrainingJob, admitted(4), nil), job)
	job.Spec.MinSize = ptr.To[int32](5)
	p := see(t, now, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1)))
	same(t, "its pods", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	same(t, "it tells", []string{"Warning WrongConfiguration: minSize, 5, is above maxSize, 4: lower the one or raise the other"}, events(p))
	job = then(p, job)
	same(t, "then it is", "WrongConfiguration 0", stands(job))
	if p := see(t, now, job.TrainingJob, waiting, nil); p.Status != nil || len(p.Events)+len(p.Writes) > 0 {
		t.Errorf("at rest it plans %+v", p)
	}
	job.Spec.MinSize = ptr.To[int32](1)
	later := now.Add(time.Hour)
	if d := describe(job.TrainingJob, jobs.Facts{}); d.Paused || !d.QueuedTime.IsZero() {
		t.Errorf("mended, it asks %+v", d)
	}
	job = then(see(t, later, job.TrainingJob, waiting, nil), job)
	same(t, "mended, it is", "Waiting 0", stands(job))
	if s := &job.Status; !s.QueuedTime.Time.Equal(later) || !s.SubmitTime.Time.Equal(later) {
		t.Errorf("mended, it says that it was submitted at %s and queues since %s", s.SubmitTime, s.QueuedTime)
	}
}

func TestAMissingCommandForTheAgentIsAWrongConfiguration(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.InjectLattice = true
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Command = nil
	p := see(t, now, job.TrainingJob, waiting, nil)
	same(t, "it is", "WrongConfiguration 0", stands(then(p, job)))
	if len(p.Events) != 1 || !describe(job.TrainingJob, jobs.Facts{}).Paused {
		t.Errorf("it tells %v", events(p))
	}
}

func TestAPreemptedJobKeepsItsTurn(t *testing.T) {
	job := newJob(1, 2)
	job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
	job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	queued := job.Status.QueuedTime.DeepCopy()
	p := see(t, now, job.TrainingJob, stopping, of(pod(0).Running(), pod(1).Running().Going()))
	same(t, "its pods", []string{"delete Pod job-worker-0"}, writes(p))
	job = then(p, job)
	same(t, "it is", "Waiting 0", stands(job))
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.", "Running=False TrainingJobWaiting: TrainingJob job has no workers."}, conditions(job))
	later := now.Add(time.Hour)
	job = then(see(t, later, job.TrainingJob, admitted(1), nil), job)
	same(t, "again", "Running 1", stands(job))
	if s := &job.Status; !s.QueuedTime.Equal(queued) || !s.LastExecTime.Time.Equal(later) || !s.ExecStatus.StartTime.Time.Equal(now) {
		t.Errorf("times are %+v", s)
	}
}

func TestASuspendedJobHasNoPods(t *testing.T) {
	job := newJob(1, 1)
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	p := see(t, now, job.suspended(true).TrainingJob, admitted(1), of(pod(0).Running()))
	same(t, "its pods", []string{"delete Pod job-worker-0"}, writes(p))
	job = then(p, job.suspended(true))
	same(t, "it is", "Waiting 0", stands(job))
	if job.Status.ExecStatus.StartTime != nil || !isTrue(job.TrainingJob, breezeml.JobSuspended) {
		t.Errorf("its status is %+v", job.Status)
	}
	later := now.Add(time.Hour)
	job = then(see(t, later, job.suspended(false).TrainingJob, waiting, nil), job.suspended(false))
	if isTrue(job.TrainingJob, breezeml.JobSuspended) || !job.Status.QueuedTime.Time.Equal(later) {
		t.Errorf("resumed, its status is %+v", job.Status)
	}
}

func TestADeactivatedJobIsCancelled(t *testing.T) {
	job := newJob(1, 1)
	off := waiting
	off.Deactivated = true
	job = then(see(t, now, job.TrainingJob, off, nil), job)
	same(t, "it is", "Cancelled 0", stands(job))
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	same(t, "activated, it is", "Running 1", stands(job))
}

func TestHowAJobEnds(t *testing.T) {
	limit := func(b jobBuilder, n int32) jobBuilder { b.Spec.RunPolicy.BackoffLimit = &n; return b }
	twice := pod(0).Running()
	twice.Status.ContainerStatuses[0].RestartCount = 2
	for what, test := range map[string]struct {
		job  jobBuilder
		pods []client.Object
		want string // the condition that ends it, or ""
	}{
		"all have succeeded":              {newJob(1, 2), of(pod(0).Ended(0), pod(1).Ended(0)), "Succeeded=True TrainingJobSucceeded: TrainingJob job is successfully completed."},
		"one has, one runs":               {newJob(1, 2), of(pod(0).Ended(0), pod(1).Running()), ""},
		"one has failed":                  {newJob(1, 2), of(pod(0).Ended(3), pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 3 in job-worker-0"},
		"one was ended for its node":      {newJob(1, 2), of(pod(0).Ended(137).Disrupted(), pod(1).Running()), ""},
		"one is retried":                  {newJob(1, 2).restarts(breezeml.RestartOnFailure), of(pod(0).Ended(3), pod(1).Running()), ""},
		"a program's own exit code":       {newJob(1, 2).restarts(breezeml.RestartExitCode), of(pod(0).Ended(127), pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 127 in job-worker-0"},
		"one of a signal":                 {newJob(1, 2).restarts(breezeml.RestartExitCode), of(pod(0).Ended(128), pod(1).Running()), ""},
		"as often as it may":              {limit(newJob(1, 2).restarts(breezeml.RestartOnFailure), 1), of(pod(0).Ended(3), pod(1).Running()), ""},
		"more often":                      {limit(newJob(1, 2).restarts(breezeml.RestartOnFailure), 1), of(pod(0).Ended(3), pod(1).Ended(4)), "Failed=True TrainingJobFailed: TrainingJob job has failed because it has reached the specified backoff limit: exit code 3 in job-worker-0"},
		"on its node as often as it may":  {limit(newJob(1, 2).restarts(breezeml.RestartAlways), 2), of(twice, pod(1).Running()), ""},
		"on its node more often":          {limit(newJob(1, 2).restarts(breezeml.RestartAlways), 1), of(twice, pod(1).Running()), "Failed=True TrainingJobFailed: TrainingJob job has failed because it has reached the specified backoff limit: 2 restarts of containers in job-worker-0"},
		"one that it had too many failed": {newJob(1, 2), of(pod(0).Running(), pod(1).Running(), pod(5).Ended(9)), "Failed=True TrainingJobFailed: TrainingJob job is failed because 1 worker replica(s) failed: exit code 9 in job-worker-5"},
	} {
		t.Run(what, func(t *testing.T) {
			job := then(see(t, now, test.job.TrainingJob, admitted(2), nil), test.job)
			job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
			p := see(t, now, job.TrainingJob, admitted(2), test.pods)
			job = then(p, job)
			over := ""
			if all := conditions(job); outcome(job.TrainingJob) != nil {
				over = all[len(all)-1]
			}
			same(t, "the end", test.want, over)
			if test.want == "" {
				same(t, "it is", "Running 2", stands(job))
				return
			}
			same(t, "it is", "Completed 0", stands(job))
			if s := &job.Status; !p.StatusFirst || !s.CompletionTime.Time.Equal(now) || !s.ExecStatus.CompletionTime.Time.Equal(now) || isTrue(job.TrainingJob, breezeml.JobRunning) {
				t.Errorf("its status is %+v", s)
			}
		})
	}
}

func TestARestartIsCountedOnceAndTold(t *testing.T) {
	job := newJob(1, 2).restarts(breezeml.RestartOnFailure)
	job = then(see(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	pods := of(pod(0).Ended(3), pod(1).Running())
	p := see(t, now, job.TrainingJob, admitted(2), pods)
	job = then(p, job)
	same(t, "restarts", map[string]int32{"0": 1}, job.Status.Restarts)
	if !p.StatusFirst {
		t.Error("what makes the pod one of the past is not written first")
	}
	want := []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Restarting=True TrainingJobRestarting: TrainingJob job is restarting because 1 worker replica(s) failed: exit code 3 in job-worker-0"}
	same(t, "conditions", want, conditions(job))
	p = see(t, now, job.TrainingJob, admitted(2), pods) // killed before it was deleted
	same(t, "again", []string{"create Service job-worker-0", "create Service job-worker-1", "delete Pod job-worker-0"}, writes(p))
	same(t, "restarts", map[string]int32{"0": 1}, then(p, job).Status.Restarts)
	job = then(p, job)
	same(t, "conditions", want, conditions(job))
	p = see(t, now, job.TrainingJob, admitted(2), of(pod(0).Attempt(1).Running(), pod(1).Running()))
	same(t, "conditions", []string{"Created=True TrainingJobCreated: TrainingJob job is created.", "Running=True TrainingJobRunning: TrainingJob job is running."}, conditions(then(p, job)))
}

func TestWhatIsLeftOfAJobThatHasEnded(t *testing.T) {
	services := func() []client.Object {
		return []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-0"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-1"}}}
	}
	for policy, want := range map[breezeml.CleanPodPolicy][]string{
		"":                       {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-0", "delete Service job-worker-1"},
		breezeml.CleanPodAll:     {"delete Pod job-worker-0", "delete Pod job-worker-1", "delete Service job-worker-0", "delete Service job-worker-1"},
		breezeml.CleanPodRunning: {"delete Pod job-worker-1", "delete Service job-worker-1"},
		breezeml.CleanPodNone:    nil,
	} {
		job := newJob(1, 2).cleans(policy)
		job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
		p := see(t, now, job.TrainingJob, admitted(2), append(of(pod(0).Ended(1), pod(1).Running()), services()...))
		same(t, "with "+string(policy), want, writes(p))
		stopped := see(t, now, then(p, job).TrainingJob, stopping, append(of(pod(0).Ended(1), pod(1).Running()), services()...))
		for _, p := range []jobs.Plan{p, stopped} {
			if p.Progress.Outcome != nil {
				t.Errorf("with %s its queue is told that it is over while a pod may run: %+v", policy, p.Progress)
			}
		}
		if p := see(t, now, then(p, job).TrainingJob, admitted(2), of(pod(0).Ended(1))); p.Progress.Outcome == nil {
			t.Errorf("with %s its queue is not told the end", policy)
		}
	}
}

func TestAJobIsDeletedWhenItsTimeHasCome(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](60)
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	p := see(t, now, job.TrainingJob, admitted(1), of(pod(0).Ended(0)))
	job = then(p, job)
	if !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("it is due at %s", p.Due)
	}
	same(t, "a second before", nil, writes(see(t, now.Add(59*time.Second), job.TrainingJob, waiting, nil)))
	same(t, "then", []string{"delete TrainingJob job"}, writes(see(t, now.Add(time.Minute), job.TrainingJob, waiting, nil)))
}

func TestAJobThatIsActiveForTooLongFails(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60)
	job = then(see(t, now, job.TrainingJob, admitted(1), nil), job)
	if p := see(t, now.Add(59*time.Second), job.TrainingJob, admitted(1), of(pod(0).Running())); p.Progress.Outcome != nil || !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("a second before, it plans %+v", p)
	}
	for what, grant := range map[string]jobs.Admission{"while it runs": admitted(1), "while it waits": waiting} {
		p := see(t, now.Add(time.Minute), job.TrainingJob, grant, of(pod(0).Running()))
		if o := outcome(then(p, job).TrainingJob); o == nil || o.Message != "TrainingJob job has failed because it was active longer than specified deadline" {
			t.Errorf("%s it ends %+v", what, o)
		}
	}
}

func TestAJobWhosePodsAreStuckGivesUpItsPlace(t *testing.T) {
	job := newJob(1, 2)
	job = then(see(t, now, job.TrainingJob, admitted(2), nil), job)
	stuck := of(pod(0).Running(), pod(1))
	p := see(t, now, job.TrainingJob, admitted(2), stuck)
	if !p.Due.Equal(now.Add(5*time.Minute)) || p.StatusCanWait {
		t.Errorf("it is due at %s, its status can wait: %v", p.Due, p.StatusCanWait)
	}
	job = then(p, job)
	if !job.Status.RequeueTime.Time.Equal(now.Add(5 * time.Minute)) {
		t.Errorf("requeueTime is %s", job.Status.RequeueTime)
	}
	if resized := then(see(t, now.Add(time.Minute), job.TrainingJob, admitted(1), stuck), job); resized.Status.RequeueTime != nil {
		t.Errorf("resized, requeueTime is %s", resized.Status.RequeueTime)
	}
	if runs := then(see(t, now.Add(time.Minute), job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job); runs.Status.RequeueTime != nil {
		t.Errorf("once all run, requeueTime is %s", runs.Status.RequeueTime)
	}
	later := now.Add(5 * time.Minute)
	same(t, "as long as one is missing", "Running 2", stands(then(see(t, later, job.TrainingJob, admitted(2), of(pod(1))), job)))
	p = see(t, later, job.TrainingJob, admitted(2), stuck)
	same(t, "its pods", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	same(t, "it tells", []string{"Warning RequeueCooldown: Pods are pending for more than 5m0s, job-worker-1 among them: the job gives up its place and queues again at 2026-03-01 15:05:00 UTC. Look at that pod's events for why"}, events(p))
	job = then(p, job)
	same(t, "it is", "RequeueCooldown 0", stands(job))
	end := later.Add(3 * time.Hour)
	if !p.StatusFirst || !job.Status.CooldownTime.Time.Equal(end) || job.Status.RequeueTime != nil {
		t.Errorf("its status is %+v", job.Status)
	}
	if p := see(t, end.Add(-time.Second), job.TrainingJob, waiting, nil); !p.Due.Equal(end) || !p.StatusCanWait || stands(then(p, job)) != "RequeueCooldown 0" {
		t.Errorf("meanwhile it plans %+v", p)
	}
	job = then(see(t, end, job.TrainingJob, waiting, nil), job)
	same(t, "then it is", "Waiting 0", stands(job))
	if s := &job.Status; !s.QueuedTime.Time.Equal(end) || s.CooldownTime != nil || !s.SubmitTime.Equal(&job.CreationTimestamp) {
		t.Errorf("its status is %+v", s)
	}
}

func TestWorkersAreGivenPlacesThatNobodyHas(t *testing.T) {
	at := func(node string, count int32) podspec.Place {
		return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
	}
	grant := jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{worker: {Count: 4, Places: podspec.Places{at("a", 2), at("b", 2)}}}}
	on := func(index int, node string) jobstest.Pod {
		b := pod(index).Running()
		b.Spec.NodeName, b.Spec.NodeSelector = node, map[string]string{corev1.LabelHostname: node}
		return b
	}
	job := newJob(1, 4)
	places := func(pods ...jobstest.Pod) map[string]string {
		got := map[string]string{}
		for _, w := range see(t, now, job.TrainingJob, grant, of(pods...)).Writes {
			if p, ok := w.Object().(*corev1.Pod); ok && w.Verb() == "create" {
				got[p.Name] = p.Spec.NodeSelector[corev1.LabelHostname] + strings.Repeat("gated", len(p.Spec.SchedulingGates))
			}
		}
		return got
	}
	same(t, "places", map[string]string{"job-worker-0": "a", "job-worker-2": "b"}, places(on(1, "b"), on(3, "a")))
	given := on(5, "b").Going() // a shrink took its place among others, and it is still there
	given.Labels = map[string]string{kueue.PodSetLabel: worker}
	same(t, "places beside one on its way out", map[string]string{"job-worker-0": "a", "job-worker-2": "gated"}, places(on(1, "b"), on(3, "a"), given))
}

func TestPodsAreMadeAsTheyWereAdmitted(t *testing.T) {
	job := newJob(1, 2)
	job.Spec.ReplicaSpecs.Template.Annotations = map[string]string{"mine": "1"}
	asked := describe(job.TrainingJob, jobs.Facts{}).PodSets[0].Template
	grant := admitted(2)
	grant.PodSets[worker] = jobs.PodSetAdmission{Count: 2, Template: &asked}
	job = then(see(t, now, job.TrainingJob, grant, nil), job)
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	job.Spec.Dataset = "another"
	pods := podsIn(see(t, now, job.TrainingJob, grant, of(pod(0).Running())))
	if len(pods) != 1 || len(pods[0].Spec.Containers[1].Resources.Requests) > 0 || len(pods[0].Spec.Volumes) > 0 {
		t.Fatalf("made for the quota of none: %+v", pods)
	}
	same(t, "annotations", map[string]string{"mine": "1", muster.RestartsAnnotation: "0"}, pods[0].Annotations)
	job = newJob(1, 2)
	job.Spec.Dataset = "another"
	if pods := podsIn(see(t, now, job.TrainingJob, admitted(1), nil)); len(pods[0].Spec.Volumes) != 1 {
		t.Error("it does not hold from the next start")
	}
}

func TestAJobThatIsFinishingDoesNotGrow(t *testing.T) {
	job := newJob(1, 4)
	grant := func(n int32) jobs.Admission {
		a := admitted(n)
		a.PodSets[worker] = jobs.PodSetAdmission{Count: n, Asked: 4}
		return a
	}
	job = then(see(t, now, job.TrainingJob, grant(2), nil), job)
	there := of(pod(0).Ended(0), pod(1).Running())
	p := see(t, now, job.TrainingJob, grant(2), there)
	same(t, "its queue is told that it does not", map[string]int32{worker: 1}, p.Progress.Reclaimable)
	p = see(t, now, job.TrainingJob, grant(4), there)
	same(t, "grown meanwhile", "Running 2", stands(then(p, job)))
	if pods := podsIn(p); len(pods) > 0 {
		t.Errorf("it makes %d pods, which begin again", len(pods))
	}
	same(t, "none of its own quota is lent", nil, p.Progress.Reclaimable)
	p = see(t, now, job.TrainingJob, grant(4), of(pod(0).Running(), pod(1).Running()))
	same(t, "while all train it grows", "Running 4", stands(then(p, job)))
}

func TestPodsThatRunAreToldNewSizes(t *testing.T) {
	job := newJob(2, 4)
	job = then(see(t, now, job.TrainingJob, admitted(3), nil), job)
	worker := func(i int, sizes string) jobstest.Pod {
		p := pod(i).Running()
		p.Annotations[muster.RendezvousSizeAnnotation] = sizes
		return p
	}
	for what, test := range map[string]struct {
		least, most int32
		want        string
	}{
		"raised beyond what runs": {4, 8, "3:8"},
		"lowered":                 {1, 3, "1:3"},
	} {
		job.Spec.MinSize, job.Spec.MaxSize = &test.least, &test.most
		p := see(t, now, job.TrainingJob, admitted(3), of(worker(0, "2:4"), worker(1, "2:4"), worker(2, test.want)))
		changed := map[string]string{}
		for _, w := range p.Writes {
			if w.Verb() == "change" {
				changed[w.Object().GetName()] = w.Object().GetAnnotations()[muster.RendezvousSizeAnnotation]
			}
		}
		same(t, what, map[string]string{"job-worker-0": test.want, "job-worker-1": test.want}, changed)
	}
}
