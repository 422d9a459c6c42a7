package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// line is the part of a Job that a user sees first.
type line struct {
	Title, Queue string
	State        State
	Pods         string
	Amounts      string
	Wait, Run    string
	Why          string
}

func lineFrom(job *Job) line {
	return line{
		Title: job.FullTitle(), Queue: job.Queue, State: job.State,
		Pods:    string(rune('0'+job.PodsReady)) + "/" + string(rune('0'+job.PodsAsked)),
		Amounts: Amounts(job.Requests, false),
		Wait:    Seconds(job.WaitSeconds), Run: Seconds(job.RunSeconds), Why: job.Why(),
	}
}

// noAgentServed is the message of a JobSet for which no agent can be served.
const noAgentServed = "The agent that muster.dev/inject-agent asks for cannot be added to the pods of workers"

// cannotStart sets the JobSet condition CannotStart.
func cannotStart(js *jobset.JobSet) {
	js.Status.Conditions = append(js.Status.Conditions, metav1.Condition{
		Type: muster.CannotStartCondition, Status: metav1.ConditionTrue, Reason: "InvalidJob", Message: noAgentServed,
		LastTransitionTime: at(5),
	})
}

// larger raises the replicas of a VCJob's task to six.
func larger(job *volcano.Job) { job.Spec.Tasks[0].Replicas = 6 }

// givenTwo admits a Workload with two of its four pods.
func givenTwo(w *kueue.Workload) {
	assignment := &w.Status.Admission.PodSetAssignments[0]
	w.Spec.PodSets[0].MinCount, w.Spec.PodSets[0].Name, assignment.Name = ptr.To(int32(2)), "worker", "worker"
	assignment.Count, assignment.ResourceUsage = ptr.To(int32(2)), list("nvidia.com/gpu", "16")
}

// fromTwo makes a Workload elastic, with two pods at least.
func fromTwo(w *kueue.Workload) {
	w.Spec.PodSets[0].Template.Annotations = map[string]string{muster.MinReplicasAnnotation: "2"}
}

func TestJobs(t *testing.T) {
	running := batchv1.JobStatus{Active: 2, Ready: ptr.To(int32(2)), StartTime: ptr.To(at(5))}
	tests := []struct {
		name     string
		snapshot Snapshot
		want     []line // at second 60
	}{{
		name: "a JobSet with a waiting Workload shows its reason",
		snapshot: Snapshot{
			JobSets:   []jobset.JobSet{aJobSet("eval", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("eval", waitingForQuota)},
		},
		want: []line{{"ml/jobset/eval", "gpu", Pending, "0/4", "32 gpu", "60s", "-", "WaitingForQuota: 32 more needed"}},
	}, {
		name: "a JobSet that was deleted and whose Workload is not yet",
		snapshot: Snapshot{
			Workloads: []kueue.Workload{aWorkload("eval", admitted(20))},
			Deleted:   map[types.UID]bool{"uid-eval": true},
		},
		want: []line{{"ml/jobset/eval", "gpu", Deleting, "0/4", "32 gpu", "20s", "40s",
			"it keeps its quota until its pods have ended"}},
	}, {
		name:     "a JobSet with a queue and no Workload",
		snapshot: Snapshot{JobSets: []jobset.JobSet{aJobSet("eval", inQueue("gpu"))}},
		want: []line{{"ml/jobset/eval", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"}},
	}, {
		name: "a JobSet whose pods cannot be created shows why, in any state",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("plain", cannotStart), aJobSet("queued", inQueue("gpu"), cannotStart),
				aJobSet("train", inQueue("gpu"), cannotStart)},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
		},
		want: []line{
			{"ml/jobset/plain", "", Pending, "0/4", "32 gpu", "60s", "-", noAgentServed},
			{"ml/jobset/queued", "gpu", Pending, "0/4", "32 gpu", "60s", "-", noAgentServed},
			{"ml/jobset/train", "gpu", Starting, "0/4", "32 gpu", "20s", "40s", noAgentServed},
		},
	}, {
		name: "a JobSet with running pods of which no more can be created shows both",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", cannotStart)},
			Jobs:    []batchv1.Job{aJob("train-workers-0", ownedBy("train", running))},
		},
		want: []line{{"ml/jobset/train", "", Running, "2/4", "32 gpu", "5s", "55s", noAgentServed}},
	}, {
		name: "a JobSet whose pods can be created again",
		snapshot: Snapshot{JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"), func(js *jobset.JobSet) {
			js.Status.Conditions = []metav1.Condition{{Type: muster.CannotStartCondition, Status: metav1.ConditionFalse,
				Message: muster.MayStartMessage}}
		})}, Workloads: []kueue.Workload{aWorkload("train", admitted(20))}},
		want: []line{{"ml/jobset/train", "gpu", Starting, "0/4", "32 gpu", "20s", "40s", ""}},
	}, {
		name: "a Job waits for its missing prebuilt Workload",
		snapshot: Snapshot{Jobs: []batchv1.Job{aJob("eval", func(job *batchv1.Job) {
			job.Labels = map[string]string{kueue.PrebuiltWorkloadLabel: "built"}
		})}},
		want: []line{{"ml/job/eval", "", Pending, "0/1", "300m cpu", "60s",
			"-", "waits for the Workload built, which its label " +
				"kueue.x-k8s.io/prebuilt-workload-name names: it is not there, belongs to another job, or asks for other pods"}},
	}, {
		name: "an admitted JobSet counts the pods of all its Jobs, and waits until admission",
		snapshot: Snapshot{
			JobSets:   []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
			Jobs: []batchv1.Job{
				aJob("train-workers-0", ownedBy("train", running)),
				aJob("train-workers-1", ownedBy("train", batchv1.JobStatus{Active: 1, Ready: ptr.To(int32(0)), Succeeded: 1})),
			},
		},
		want: []line{{"ml/jobset/train", "gpu", Running, "3/4", "32 gpu", "20s", "40s", ""}},
	}, {
		name: "a JobSet made smaller shows its size, and one made larger its admitted size",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{
				aJobSet("large", inQueue("gpu"), func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = 3 }),
				aJobSet("small", inQueue("gpu"), func(js *jobset.JobSet) { js.Spec.ReplicatedJobs[0].Replicas = 1 }),
			},
			Workloads: []kueue.Workload{aWorkload("large", admitted(20)), aWorkload("small", admitted(20))},
			Jobs:      []batchv1.Job{aJob("small-workers-0", ownedBy("small", running))},
		},
		want: []line{
			{"ml/jobset/large", "gpu", Starting, "0/4", "32 gpu", "20s", "40s",
				"asks for 6 pods now, and was admitted for 4: the rest waits until other pods have ended, or the job is admitted again"},
			{"ml/jobset/small", "gpu", Running, "2/2", "32 gpu", "20s", "40s", ""},
		},
	}, {
		name: "an admission without a count is for all pods",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20), func(w *kueue.Workload) {
				w.Status.Admission.PodSetAssignments[0].Count = nil
			})},
			Jobs: []batchv1.Job{aJob("train-workers-0", ownedBy("train", running))},
		},
		want: []line{{"ml/jobset/train", "gpu", Running, "2/4", "32 gpu", "20s", "40s", ""}},
	}, {
		name: "a JobSet with parts made larger, smaller or added shows which part waits",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"), func(js *jobset.JobSet) {
				more := *js.Spec.ReplicatedJobs[0].DeepCopy()
				more.Name, more.Replicas = "more", 1
				js.Spec.ReplicatedJobs[0].Replicas = 1
				js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, more)
			})},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
		},
		want: []line{{"ml/jobset/train", "gpu", Starting, "0/4", "32 gpu", "20s", "40s",
			"asks for 2 pods of more now, and was admitted for 0: the rest waits until other pods have ended, or the job is admitted again"}},
	}, {
		name: "a VCJob admitted with its minimum, and made larger later",
		snapshot: Snapshot{
			VCJobs: []volcano.Job{aVCJob("gang", larger), aVCJob("grows", larger)},
			Workloads: []kueue.Workload{aWorkload("gang", admitted(20), givenTwo),
				aWorkload("grows", admitted(20), givenTwo, fromTwo)},
		},
		want: []line{
			{"ml/vcjob/gang", "gpu", Starting, "0/2", "16 gpu", "20s", "40s",
				"admitted with 2 of 4 pods; asks for 6 pods now, and was admitted for 2: the rest waits until other pods have ended, or the job is admitted again"},
			{"ml/vcjob/grows", "gpu", Starting, "0/2", "16 gpu", "20s", "40s",
				"asks for 6 pods now, and was admitted for 2: the rest waits until other pods have ended, or the job is admitted again"},
		},
	}, {
		name: "a VCJob made smaller while it runs",
		snapshot: Snapshot{
			VCJobs: []volcano.Job{aVCJob("gang", func(job *volcano.Job) {
				job.Spec.Tasks[0].Replicas, job.Status.Running = 1, 1
			})},
			Workloads: []kueue.Workload{aWorkload("gang", admitted(20), givenTwo,
				func(w *kueue.Workload) { w.Spec.PodSets[0].Count = 2 })},
		},
		want: []line{{"ml/vcjob/gang", "gpu", Running, "1/1", "16 gpu", "20s", "40s", ""}},
	}, {
		name: "pods that run and are not ready do not count, if the job's status tells them apart",
		snapshot: Snapshot{
			VCJobs: []volcano.Job{
				aVCJob("by-volcano", func(job *volcano.Job) { job.Status.Running = 4 }),
				aVCJob("crashing", func(job *volcano.Job) {
					job.Status.Running, job.Status.ControlledResources = 4, map[string]string{volcano.ReadyKey: "0"}
				}),
				aVCJob("some", func(job *volcano.Job) {
					job.Status.Running, job.Status.ControlledResources = 4, map[string]string{volcano.ReadyKey: "3"}
				}),
			},
			GenericJobs: []tensorstack.GenericJob{aGenericJob("generic", "gpu", func(job *tensorstack.GenericJob) {
				job.Status.Aggregate, job.Status.Ready = &tensorstack.Aggregate{Running: 4}, ptr.To(int32(1))
			})},
			TrainingJobs: []breezeml.TrainingJob{aTrainingJob("training", func(job *breezeml.TrainingJob) {
				job.Labels, job.Status.CurrentSize = map[string]string{kueue.QueueLabel: "gpu"}, 4
				job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{breezeml.WorkerStatuses: {Active: 4,
					Ready: ptr.To(int32(0))}}
			})},
		},
		want: []line{
			{"ml/genericjob/generic", "gpu", Running, "1/4", "32 gpu", "60s", "-", ""},
			{"ml/trainingjob/training", "gpu", Starting, "0/4", "32 gpu", "60s", "-", ""},
			{"ml/vcjob/by-volcano", "gpu", Running, "4/4", "32 gpu", "60s", "-", ""},
			{"ml/vcjob/crashing", "gpu", Starting, "0/4", "32 gpu", "60s", "-", ""},
			{"ml/vcjob/some", "gpu", Running, "3/4", "32 gpu", "60s", "-", ""},
		},
	}, {
		name: "a JobSet whose Jobs restart one by one shows how often",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("alone", inQueue("gpu"), func(js *jobset.JobSet) {
				js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", JobRestarts: []int32{0, 2}},
					{Name: "others", JobRestarts: []int32{1}}}
			})},
			Workloads: []kueue.Workload{aWorkload("alone", admitted(20))},
		},
		want: []line{{"ml/jobset/alone", "gpu", Starting, "0/4", "32 gpu", "20s", "40s", "single Jobs restarted 3 times"}},
	}, {
		name: "a Job with parallelism 0 is suspended, and keeps its quota",
		snapshot: Snapshot{
			Jobs: []batchv1.Job{
				aJob("plain", func(job *batchv1.Job) { job.Spec.Parallelism = ptr.To(int32(0)) }),
				aJob("train", func(job *batchv1.Job) { job.Spec.Parallelism = ptr.To(int32(0)) }),
			},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
		},
		want: []line{
			{"ml/job/plain", "", Suspended, "0/0", "", "-", "-", "spec.parallelism is 0: it runs no pods"},
			{"ml/job/train", "gpu", Suspended, "0/0", "32 gpu", "20s", "40s",
				"spec.parallelism is 0: it runs no pods, and it keeps its quota for 4"},
		},
	}, {
		name: "a GenericJob without a queue shows what its status counts",
		snapshot: Snapshot{GenericJobs: []tensorstack.GenericJob{aGenericJob("tf", "", func(job *tensorstack.GenericJob) {
			job.Status.Aggregate = &tensorstack.Aggregate{Running: 2, Succeeded: 1, Pending: 1}
			job.Status.Tasks = []tensorstack.Tasks{{Type: "worker", RestartCount: 2}}
			job.Status.Conditions = []tensorstack.JobCondition{{Type: tensorstack.JobInitialized, Status: metav1.ConditionTrue,
				LastTransitionTime: at(5)}}
		})}},
		want: []line{{"ml/genericjob/tf", "", Running, "3/4", "32 gpu", "5s", "55s", "replicas restarted 2 times"}},
	}, {
		name:     "a GenericJob waits in the queue of its scheduler section",
		snapshot: Snapshot{GenericJobs: []tensorstack.GenericJob{aGenericJob("tf", "gpu")}},
		want: []line{{"ml/genericjob/tf", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"}},
	}, {
		name: "a JobSet that another controller manages",
		snapshot: Snapshot{JobSets: []jobset.JobSet{aJobSet("eval", func(js *jobset.JobSet) {
			js.Labels = map[string]string{kueue.QueueLabel: "gpu"}
			js.Spec.ManagedBy = ptr.To("acme.io/multikueue")
		})}},
		want: []line{{"ml/jobset/eval", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"managedBy is acme.io/multikueue: that controller runs the job, and Muster leaves it alone"}},
	}, {
		name: "a paused GenericJob",
		snapshot: Snapshot{GenericJobs: []tensorstack.GenericJob{aGenericJob("tf", "gpu", func(job *tensorstack.GenericJob) {
			job.Spec.RunMode = &tensorstack.RunMode{Pause: &tensorstack.PauseMode{Enabled: true}}
		})}},
		want: []line{{"ml/genericjob/tf", "gpu", Suspended, "0/4", "32 gpu", "-", "-",
			"paused: spec.runMode.pause.enabled is true"}},
	}, {
		name: "a failed GenericJob shows by which rule",
		snapshot: Snapshot{GenericJobs: []tensorstack.GenericJob{aGenericJob("tf", "", func(job *tensorstack.GenericJob) {
			job.Status.Aggregate = &tensorstack.Aggregate{Running: 3, Failed: 1}
			job.Status.Conditions = []tensorstack.JobCondition{
				{Type: tensorstack.JobInitialized, Status: metav1.ConditionTrue, LastTransitionTime: at(5)},
				{Type: tensorstack.JobFailed, Status: metav1.ConditionTrue, Message: "by a rule", LastTransitionTime: at(40)},
				{Type: tensorstack.JobCompleted, Status: metav1.ConditionTrue, LastTransitionTime: at(40)},
			}
		})}},
		want: []line{{"ml/genericjob/tf", "", Failed, "3/4", "32 gpu", "5s", "35s", "by a rule"}},
	}, {
		name:     "a VCJob waits in the queue that it names",
		snapshot: Snapshot{VCJobs: []volcano.Job{aVCJob("train")}},
		want: []line{{"ml/vcjob/train", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"}},
	}, {
		name: "a VCJob that cannot be queued shows why",
		snapshot: Snapshot{VCJobs: []volcano.Job{aVCJob("train", func(job *volcano.Job) {
			job.Status.State = volcano.JobState{Phase: volcano.Pending, Reason: "InvalidJob", Message: "there is no task master"}
		})}},
		want: []line{{"ml/vcjob/train", "gpu", Pending, "0/4", "32 gpu", "60s", "-", "there is no task master"}},
	}, {
		name: "an aborted VCJob shows how to resume it",
		snapshot: Snapshot{VCJobs: []volcano.Job{aVCJob("train",
			func(job *volcano.Job) { job.Status.State.Phase = volcano.Aborted })}},
		want: []line{{"ml/vcjob/train", "gpu", Suspended, "0/4", "32 gpu", "-", "-",
			"aborted: a Command ResumeJob starts it again"}},
	}, {
		name: "a failed VCJob shows why",
		snapshot: Snapshot{VCJobs: []volcano.Job{aVCJob("train", func(job *volcano.Job) {
			job.Status.State = volcano.JobState{Phase: volcano.Failed, Reason: "MaxRetry", Message: "restarted too often",
				LastTransitionTime: at(40)}
		})}, Workloads: []kueue.Workload{aWorkload("train", admitted(20))}},
		want: []line{{"ml/vcjob/train", "gpu", Failed, "0/4", "32 gpu", "20s", "20s", "MaxRetry: restarted too often"}},
	}, {
		name: "a LatticeJob that cannot be submitted shows why",
		snapshot: Snapshot{LatticeJobs: []lattice.LatticeJob{aLatticeJob("etl", lattice.Pending,
			"The cluster does not serve ExternalSecret")}},
		want: []line{{"ml/latticejob/etl", "gpu", Pending, "0/2", "600m cpu", "60s", "-",
			"The cluster does not serve ExternalSecret"}},
	}, {
		name:     "a LatticeJob whose VCJob was deleted",
		snapshot: Snapshot{LatticeJobs: []lattice.LatticeJob{aLatticeJob("etl", lattice.Running, lattice.LostMessage)}},
		want:     []line{{"ml/latticejob/etl", "gpu", Failed, "0/2", "600m cpu", "0s", "-", lattice.LostMessage}},
	}, {
		name: "LatticeJobs without VCJob and Workload show from when to when they waited and ran",
		snapshot: Snapshot{LatticeJobs: []lattice.LatticeJob{
			ranFrom(nil, at(10), aLatticeJob("wrong", lattice.Failed, "Failed to compile job: job has no tasks")),
			ranFrom(ptr.To(at(20)), at(50), aLatticeJob("etl", lattice.Succeeded, "All tasks completed successfully")),
		}},
		want: []line{
			{"ml/latticejob/etl", "gpu", Completed, "0/2", "600m cpu", "20s", "30s", ""},
			{"ml/latticejob/wrong", "gpu", Failed, "0/2", "600m cpu", "10s", "-", "Failed to compile job: job has no tasks"},
		},
	}, {
		name: "a LatticeJob with a schedule is listed as its runs, unless it can have none",
		snapshot: Snapshot{LatticeJobs: []lattice.LatticeJob{
			scheduled(aLatticeJob("nightly", lattice.Running, "Cron active: 1 job(s), last scheduled: never")),
			aLatticeJob("nightly-1", lattice.Pending, "Waiting for quota"),
			scheduled(aLatticeJob("wrong", lattice.Failed, "Failed to compile job: job has no tasks")),
		}},
		want: []line{
			{"ml/latticejob/nightly-1", "gpu", Pending, "0/2", "600m cpu", "60s", "-", "Waiting for quota"},
			{"ml/latticejob/wrong", "gpu", Failed, "0/2", "600m cpu", "0s", "-", "Failed to compile job: job has no tasks"},
		},
	}, {
		name: "a LatticeJob is represented by its VCJob, which is not listed",
		snapshot: Snapshot{
			LatticeJobs: []lattice.LatticeJob{aLatticeJob("etl", lattice.Running, "Job submitted to Volcano")},
			VCJobs:      []volcano.Job{aVCJob("train", madeFor("uid-etl")), aVCJob("other", madeFor("uid-unseen"))},
			Workloads:   []kueue.Workload{aWorkload("train", waitingForQuota)},
		},
		want: []line{
			{"ml/latticejob/etl", "gpu", Pending, "0/4", "32 gpu", "60s", "-", "WaitingForQuota: 32 more needed"},
			{"ml/vcjob/other", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
				"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"},
		},
	}, {
		name: "a LatticeJob that was handed over to Volcano",
		snapshot: Snapshot{
			LatticeJobs: []lattice.LatticeJob{aLatticeJob("etl", lattice.Running,
				"Job submitted to Volcano. Its queue is not managed by Muster")},
			VCJobs: []volcano.Job{aVCJob("etl", madeFor("uid-etl"))},
		},
		want: []line{{"ml/latticejob/etl", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"Job submitted to Volcano. Its queue is not managed by Muster"}},
	}, {
		name: "a failed LatticeJob shows the message of its VCJob",
		snapshot: Snapshot{
			LatticeJobs: []lattice.LatticeJob{aLatticeJob("etl", lattice.Failed, "Job failed")},
			VCJobs: []volcano.Job{aVCJob("train", madeFor("uid-etl"), func(job *volcano.Job) {
				job.Status.State = volcano.JobState{Phase: volcano.Failed, Message: "restarted too often",
					LastTransitionTime: at(40)}
			})},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
		},
		want: []line{{"ml/latticejob/etl", "gpu", Failed, "0/4", "32 gpu", "20s", "20s", "restarted too often"}},
	}, {
		name: "an admitted JobSet without a ready pod is starting",
		snapshot: Snapshot{
			JobSets:   []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
		},
		want: []line{{"ml/jobset/train", "gpu", Starting, "0/4", "32 gpu", "20s", "40s", ""}},
	}, {
		name: "a job that has had no ready pod for long says so",
		snapshot: Snapshot{
			JobSets:   []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", admitted(0))},
		},
		want: []line{{"ml/jobset/train", "gpu", Starting, "0/4", "32 gpu", "0s", "60s", "none of its pods is ready yet"}},
	}, {
		name: "a JobSet without a queue runs since its first Job started",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train")},
			Jobs:    []batchv1.Job{aJob("train-workers-0", ownedBy("train", running))},
		},
		want: []line{{"ml/jobset/train", "", Running, "2/4", "32 gpu", "5s", "55s", ""}},
	}, {
		name: "a completed JobSet keeps the times that it had",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"), func(js *jobset.JobSet) {
				js.Status.Conditions = []metav1.Condition{{
					Type: string(jobset.JobSetCompleted), Status: metav1.ConditionTrue, Reason: "AllJobsCompleted",
					LastTransitionTime: at(50),
				}}
			})},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20))},
			Jobs: []batchv1.Job{
				aJob("train-workers-0", ownedBy("train", batchv1.JobStatus{Succeeded: 2})),
				aJob("train-workers-1", ownedBy("train", batchv1.JobStatus{Succeeded: 2})),
			},
		},
		want: []line{{"ml/jobset/train", "gpu", Completed, "4/4", "32 gpu", "20s", "30s", ""}},
	}, {
		name: "a failed JobSet shows why",
		snapshot: Snapshot{JobSets: []jobset.JobSet{aJobSet("train", func(js *jobset.JobSet) {
			js.Status.Conditions = []metav1.Condition{{
				Type: string(jobset.JobSetFailed), Status: metav1.ConditionTrue, LastTransitionTime: at(50),
				Reason: "FailedJobs", Message: "first failed job: x",
			}}
		})}},
		want: []line{{"ml/jobset/train", "", Failed, "0/4", "32 gpu", "50s", "-", "FailedJobs: first failed job: x"}},
	}, {
		name: "a restarted JobSet shows how often",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", func(js *jobset.JobSet) { js.Status.Restarts = 2 })},
			Jobs:    []batchv1.Job{aJob("train-workers-0", ownedBy("train", running))},
		},
		want: []line{{"ml/jobset/train", "", Running, "2/4", "32 gpu", "5s", "55s", "restarted 2 times"}},
	}, {
		name: "an evicted job that still holds its quota is being evicted",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20),
				with(kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted", "to accommodate eval", 40))},
		},
		want: []line{{"ml/jobset/train", "gpu", Evicting, "0/4", "32 gpu", "20s", "40s", "Preempted: to accommodate eval"}},
	}, {
		name: "a preempted job names the preemptor",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train",
				admitted(20), with(kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted",
					"Preempted to accommodate a workload (UID: uid-w-train, JobUID: ) due to reclamation within the cohort", 40))},
		},
		want: []line{{"ml/jobset/train", "gpu", Evicting, "0/4", "32 gpu", "20s", "40s",
			"Preempted: Preempted to accommodate ml/jobset/train due to reclamation within the cohort"}},
	}, {
		name: "a job in backoff shows why it was evicted and until when it waits",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train",
				with(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "PendingEvaluation",
					"The workload has no reservation", 50),
				with(kueue.WorkloadEvicted, metav1.ConditionTrue, "PodsReadyTimeout",
					"Exceeded the PodsReady timeout ml/train", 40),
				func(w *kueue.Workload) { w.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(at(120))} })},
		},
		want: []line{{"ml/jobset/train", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"PendingEvaluation: was evicted: its pods were not ready in time; queued again in 60s"}},
	}, {
		name: "a deactivated job shows the cause",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train",
				with(kueue.WorkloadEvicted, metav1.ConditionTrue, "DeactivatedDueToRequeuingLimitExceeded",
					"The workload is deactivated due to exceeding the limit", 40),
				func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) })},
		},
		want: []line{{"ml/jobset/train", "gpu", Suspended, "0/4", "32 gpu", "-", "-",
			"DeactivatedDueToRequeuingLimitExceeded: The workload is deactivated due to exceeding the limit"}},
	}, {
		name: "a job admitted with fewer pods",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", admitted(20), func(w *kueue.Workload) {
				w.Status.Admission.PodSetAssignments[0].Count = ptr.To(int32(3))
			})},
		},
		want: []line{{"ml/jobset/train", "gpu", Starting, "0/3", "32 gpu", "20s", "40s", "admitted with 3 of 4 pods"}},
	}, {
		name: "time run before an eviction is not waited",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", waitingForQuota, func(w *kueue.Workload) {
				w.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To(int32(25))
			})},
		},
		want: []line{{"ml/jobset/train", "gpu", Pending, "0/4", "32 gpu", "35s", "25s", "WaitingForQuota: 32 more needed"}},
	}, {
		name: "a job that is queued again later shows when",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", waitingForQuota, func(w *kueue.Workload) {
				w.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(at(90))}
			})},
		},
		want: []line{{"ml/jobset/train", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"WaitingForQuota: 32 more needed; queued again in 30s"}},
	}, {
		name: "reserved quota without admission waits for the checks that are not ready",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train",
				with(kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", 5), func(w *kueue.Workload) {
					w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
						{Name: "licences", State: kueue.CheckStatePending}, {Name: "budget", State: kueue.CheckStateReady},
					}
				})},
		},
		want: []line{{"ml/jobset/train", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"AdmissionChecks: quota reserved, waits for admission checks licences"}},
	}, {
		name: "a job that a user deactivated",
		snapshot: Snapshot{
			JobSets:   []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{aWorkload("train", func(w *kueue.Workload) { w.Spec.Active = ptr.To(false) })},
		},
		want: []line{{"ml/jobset/train", "gpu", Suspended, "0/4", "32 gpu", "-", "-",
			"Deactivated: spec.active of its Workload is false"}},
	}, {
		name: "a JobSet that names its queue by the annotation, without a Workload yet",
		snapshot: Snapshot{JobSets: []jobset.JobSet{aJobSet("train", func(js *jobset.JobSet) {
			js.Annotations = map[string]string{kueue.QueueAnnotation: "gpu"}
		})}},
		want: []line{{"ml/jobset/train", "gpu", Pending, "0/4", "32 gpu", "60s", "-",
			"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"}},
	}, {
		name: "a suspended JobSet without a queue",
		snapshot: Snapshot{JobSets: []jobset.JobSet{aJobSet("train",
			func(js *jobset.JobSet) { js.Spec.Suspend = ptr.To(true) })}},
		want: []line{{"ml/jobset/train", "", Suspended, "0/4", "32 gpu", "-", "-", "spec.suspend is true"}},
	}, {
		name:     "a Workload without an owner is a job of its own",
		snapshot: Snapshot{Workloads: []kueue.Workload{aWorkload("", admitted(20))}},
		want: []line{{"ml/workload/w-", "gpu", Admitted, "0/4", "32 gpu", "20s", "40s",
			"has no owner: its own controller would start its pods now"}},
	}, {
		name: "a Workload that only points at a job is not the job's",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
			Workloads: []kueue.Workload{
				aWorkload("train", admitted(20), with(kueue.WorkloadPodsReady, metav1.ConditionTrue, "Started", "", 30)),
				aWorkload("train", waitingForQuota, func(w *kueue.Workload) {
					w.Name, w.UID, w.CreationTimestamp, w.OwnerReferences[0].Controller = "foreign", "uid-foreign", at(40), nil
				}),
			},
		},
		want: []line{
			{"ml/jobset/train", "gpu", Starting, "0/4", "32 gpu", "20s", "40s", ""},
			{"ml/workload/foreign", "gpu", Pending, "0/4", "32 gpu", "20s", "-", "WaitingForQuota: 32 more needed"},
		},
	}, {
		name: "a Workload whose job was deleted without its pods holds their quota",
		snapshot: Snapshot{Workloads: []kueue.Workload{aWorkload("", admitted(20), func(w *kueue.Workload) {
			w.Labels = map[string]string{kueue.JobUIDLabel: "gone"}
		})}},
		want: []line{{"ml/workload/w-", "gpu", Running, "0/4", "32 gpu", "20s", "40s",
			"its job was deleted without its pods, which keep its quota until they end"}},
	}, {
		name: "so does one whose pods were ready",
		snapshot: Snapshot{Workloads: []kueue.Workload{aWorkload("", admitted(20), func(w *kueue.Workload) {
			w.Labels = map[string]string{kueue.JobUIDLabel: "gone"}
			with(kueue.WorkloadPodsReady, metav1.ConditionTrue, "Started", "", 30)(w)
		})}},
		want: []line{{"ml/workload/w-", "gpu", Running, "4/4", "32 gpu", "20s", "40s",
			"its job was deleted without its pods, which keep its quota until they end"}},
	}, {
		name: "a Workload of a VCJob that is gone already, or may not be listed",
		snapshot: Snapshot{Workloads: []kueue.Workload{aWorkload("x", admitted(20), func(w *kueue.Workload) {
			w.OwnerReferences[0].APIVersion, w.OwnerReferences[0].Kind = "batch.volcano.sh/v1alpha1", "Job"
		})}},
		want: []line{{"ml/vcjob/x", "gpu", Admitted, "0/4", "32 gpu", "20s", "40s", ""}},
	}, {
		name: "a Workload of an unknown kind represents its owner",
		snapshot: Snapshot{Workloads: []kueue.Workload{aWorkload("x", admitted(20), func(w *kueue.Workload) {
			w.OwnerReferences[0].APIVersion, w.OwnerReferences[0].Kind = "example.com/v1", "TrainingJob"
			with(kueue.WorkloadPodsReady, metav1.ConditionTrue, "Started", "", 30)(w)
		})}},
		want: []line{{"ml/trainingjob/x", "gpu", Running, "4/4", "32 gpu", "20s", "40s", ""}},
	}, {
		name: "a finished Workload of an unknown kind shows its reason",
		snapshot: Snapshot{Workloads: []kueue.Workload{aWorkload("", admitted(20),
			with(kueue.WorkloadFinished, metav1.ConditionTrue, "Failed", "out of luck", 30))}},
		want: []line{{"ml/workload/w-", "gpu", Failed, "0/4", "32 gpu", "20s", "10s", "Failed: out of luck"}},
	}, {
		name: "a job without a queue is in the LocalQueue default of a user",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train")},
			LocalQueues: []kueue.LocalQueue{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "default"}},
			},
		},
		want: []line{{"ml/jobset/train", "default", Pending, "0/4", "32 gpu", "60s", "-",
			"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"}},
	}, {
		name: "a job without a queue is not in the LocalQueue default of Muster",
		snapshot: Snapshot{
			JobSets: []jobset.JobSet{aJobSet("train")},
			LocalQueues: []kueue.LocalQueue{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "default",
					Labels: map[string]string{"muster.dev/made-for": "default"}}},
			},
		},
		want: []line{{"ml/jobset/train", "", Starting, "0/4", "32 gpu", "60s", "-", ""}},
	}, {
		name: "a batch Job of a user is a job, and one of a JobSet is not",
		snapshot: Snapshot{Jobs: []batchv1.Job{
			aJob("mine", func(job *batchv1.Job) { job.Status = batchv1.JobStatus{Active: 1, StartTime: ptr.To(at(1))} }),
			aJob("x-workers-0", ownedBy("x", running)),
		}},
		want: []line{{"ml/job/mine", "", Starting, "0/1", "300m cpu", "1s", "59s", ""}},
	}, {
		name: "a failed batch Job shows why",
		snapshot: Snapshot{Jobs: []batchv1.Job{aJob("mine",
			jobCondition(batchv1.JobFailed, "BackoffLimitExceeded", "too often", 10))}},
		want: []line{{"ml/job/mine", "", Failed, "0/1", "300m cpu", "10s", "-", "BackoffLimitExceeded: too often"}},
	}, {
		name: "jobs are listed by namespace, then by age",
		snapshot: Snapshot{Jobs: []batchv1.Job{
			aJob("young", func(job *batchv1.Job) { job.CreationTimestamp = at(30) }),
			aJob("old"),
			aJob("first", func(job *batchv1.Job) { job.Namespace, job.CreationTimestamp = "a", at(40) }),
		}},
		want: []line{
			{"a/job/first", "", Starting, "0/1", "300m cpu", "20s", "-", ""},
			{"ml/job/old", "", Starting, "0/1", "300m cpu", "60s", "-", ""},
			{"ml/job/young", "", Starting, "0/1", "300m cpu", "30s", "-", ""},
		},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []line
			for _, job := range Jobs(&test.snapshot, at(60).Time) {
				got = append(got, lineFrom(&job))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("jobs differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAmountsShowScarceResourcesFirst(t *testing.T) {
	tests := []struct {
		name      string
		amounts   []string
		want, all string
	}{
		{"devices", []string{"cpu", "4", "nvidia.com/gpu", "8", "memory", "1Gi"}, "8 gpu", "8 gpu, 4 cpu, 1Gi memory"},
		{"no devices", []string{"memory", "1Gi", "cpu", "300m"}, "300m cpu", "300m cpu, 1Gi memory"},
		{"zero devices", []string{"nvidia.com/gpu", "0", "cpu", "1"}, "1 cpu", "1 cpu"},
		{"nothing", nil, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Amounts(list(test.amounts...), false); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := Amounts(list(test.amounts...), true); got != test.all {
				t.Errorf("all: got %q, want %q", got, test.all)
			}
		})
	}
}
