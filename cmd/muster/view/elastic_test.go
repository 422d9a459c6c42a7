package view

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// elastic makes the Workload elastic, with least as its minimum, and admits it with this number of pods.
func elastic(least string, granted int32) func(*kueue.Workload) {
	return func(w *kueue.Workload) {
		w.Spec.PodSets[0].Template.Annotations = map[string]string{muster.MinReplicasAnnotation: least}
		if w.Status.Admission != nil {
			w.Status.Admission.PodSetAssignments[0].Count = &granted
		}
	}
}

func TestElasticJobs(t *testing.T) {
	running := func(size, active int32) func(*breezeml.TrainingJob) {
		return func(job *breezeml.TrainingJob) {
			job.Status.Stage, job.Status.CurrentSize = breezeml.StageRunning, size
			job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{"Worker": {Active: active}}
		}
	}
	inSlices := func(w *kueue.Workload) {
		w.Spec.PodSets[0].TopologyRequest = &kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To("rack"),
			PodSetSliceSize: ptr.To[int32](2)}
	}
	for _, test := range []struct {
		name         string
		job          breezeml.TrainingJob
		workload     *kueue.Workload
		state        State
		ready, asked int32
		least, most  int32
		why          string
	}{
		{"not reconciled", aTrainingJob("tune"), nil, Pending, 0, 4, 2, 4,
			"no Workload yet: Muster has not reconciled it, or its events say what is wrong: see muster explain"},
		{"waiting", aTrainingJob("tune"), ptr.To(aWorkload("tune", waitingForQuota, elastic("2", 0))), Pending, 0, 4, 2, 4,
			"WaitingForQuota: 32 more needed"},
		{"running", aTrainingJob("tune", running(3, 2)), ptr.To(aWorkload("tune", admitted(20), elastic("2", 3))),
			Running, 2, 3, 2, 4, ""},
		{"shrunk", aTrainingJob("tune", running(3, 3)),
			ptr.To(aWorkload("tune", admitted(20), elastic("2", 3), with(muster.ResizedCondition, metav1.ConditionTrue, "Shrunk",
				"pod set worker from 4 to 3 pods for ml/jobset/eval", 50))),
			Running, 3, 3, 2, 4, "shrunk 4 -> 3 for ml/jobset/eval 10s ago"},
		{"waiting, in slices", aTrainingJob("tune"), ptr.To(aWorkload("tune", waitingForQuota, elastic("2", 0), inSlices)),
			Pending, 0, 4, 2, 4, "WaitingForQuota: 32 more needed"},
		{"running, in slices", aTrainingJob("tune", running(2, 2)),
			ptr.To(aWorkload("tune", admitted(20), elastic("2", 2), inSlices)), Running, 2, 2, 0, 0,
			"admitted with 2 of 4 pods, which slices or a group keep from growing"},
		{"shrunk before it was stopped, and admitted again", aTrainingJob("tune", running(3, 3)),
			ptr.To(aWorkload("tune", admitted(20), elastic("2", 3),
				with(muster.ResizedCondition, metav1.ConditionTrue, "Shrunk", "pod set worker from 4 to 3 pods", 10))),
			Running, 3, 3, 2, 4, ""},
		{"grown before it was stopped", aTrainingJob("tune"),
			ptr.To(aWorkload("tune", waitingForQuota, elastic("2", 0),
				with(muster.ResizedCondition, metav1.ConditionTrue, "Grown", "pod set worker from 2 to 4 pods", 50))),
			Pending, 0, 4, 2, 4, "WaitingForQuota: 32 more needed"},
		{"invalid sizes", aTrainingJob("tune", func(job *breezeml.TrainingJob) {
			job.Spec.MinSize, job.Status.Stage = ptr.To(int32(5)), breezeml.StageWrongConfiguration
		}), nil, Suspended, 0, 5, 0, 0, "WrongConfiguration: minSize, 5, is above maxSize, 4: lower the one or raise the other"},
		{"no size", aTrainingJob("tune", func(job *breezeml.TrainingJob) {
			job.Spec.MinSize, job.Status.Stage = ptr.To(int32(-1)), breezeml.StageWrongConfiguration
		}), nil, Suspended, 0, 4, 0, 4, "WrongConfiguration: minSize is -1: a job has at least 1 worker. Raise it"},
		{"too large", aTrainingJob("tune", func(job *breezeml.TrainingJob) { // stored before the API refused it
			job.Spec.MaxSize, job.Status.Stage = ptr.To(int32(20000)), breezeml.StageWrongConfiguration
		}), nil, Suspended, 0, 20000, 2, 20000,
			"WrongConfiguration: a job has at most 10000 workers, not 20000: lower maxSize, or minSize if there is none"},
		{"no command", aTrainingJob("tune", func(job *breezeml.TrainingJob) {
			job.Spec.InjectLattice, job.Status.Stage = true, breezeml.StageWrongConfiguration
		}), nil, Suspended, 0, 4, 2, 4, "WrongConfiguration: injectLattice needs an explicit command in the container trainingjob, or in the first if none has that name"},
		{"cooldown", aTrainingJob("tune", func(job *breezeml.TrainingJob) {
			job.Status.Stage, job.Status.CooldownTime = breezeml.StageRequeueCooldown, ptr.To(at(120))
		}), nil, Suspended, 0, 4, 2, 4, "RequeueCooldown: its pods were pending for too long; it queues again at 2025-06-01 14:02:00 UTC"},
		{"cooldown with its reason", aTrainingJob("tune", func(job *breezeml.TrainingJob) {
			job.Status.Stage, job.Status.CooldownTime = breezeml.StageRequeueCooldown, ptr.To(at(120))
			job.Status.ExecStatus.Conditions = []breezeml.JobCondition{{Type: breezeml.JobRunning, Status: corev1.ConditionFalse,
				Reason:  breezeml.StoppedByCooldownReason,
				Message: "Pods have been pending for more than 5m0s, tune-worker-0 among them: no nodes."}}
		}), nil, Suspended, 0, 4, 2, 4, "RequeueCooldown: its pods were pending for too long; it queues again at 2025-06-01 14:02:00 UTC. Pods have been pending for more than 5m0s, tune-worker-0 among them: no nodes."},
		{"failed", aTrainingJob("tune", running(0, 1), func(job *breezeml.TrainingJob) { // one was running until then
			job.Status.ExecStatus.Conditions = []breezeml.JobCondition{{Type: breezeml.JobFailed, Status: corev1.ConditionTrue,
				Message: "as it did", LastTransitionTime: at(40)}}
		}), nil, Failed, 0, 4, 2, 4, "as it did"},
		{"restarted", aTrainingJob("tune", running(4, 4),
			func(job *breezeml.TrainingJob) { job.Status.Restarts = map[string]int32{"0": 2, "3": 1} }),
			ptr.To(aWorkload("tune", admitted(20), elastic("2", 4))), Running, 4, 4, 2, 4, "workers restarted 3 times"},
	} {
		snapshot := &Snapshot{TrainingJobs: []breezeml.TrainingJob{test.job}}
		if test.workload != nil {
			snapshot.Workloads = []kueue.Workload{*test.workload}
		}
		got := Jobs(snapshot, start.Add(time.Minute))
		if len(got) != 1 {
			t.Fatalf("%s: got %d jobs, want 1", test.name, len(got))
		}
		j := got[0]
		if j.State != test.state || j.PodsReady != test.ready || j.PodsAsked != test.asked || j.PodsLeast != test.least ||
			j.PodsMost != test.most || j.Why() != test.why {
			t.Errorf("%s: %s, %d/%d of %d..%d, %q; want %s, %d/%d of %d..%d, %q", test.name, j.State, j.PodsReady, j.PodsAsked,
				j.PodsLeast, j.PodsMost, j.Why(), test.state, test.ready, test.asked, test.least, test.most, test.why)
		}
		if want := "default"; test.workload == nil && j.Queue != want {
			t.Errorf("%s: queue = %q, want default", test.name, j.Queue)
		}
	}
}

// TestExplainARefusedSize: an elastic job keeps pods that its queue has given to others while a policy of the cluster
// refuses its change. Warnings about what was before do not matter.
func TestExplainARefusedSize(t *testing.T) {
	refused := corev1.Event{Reason: "ChangeRefused", Message: "parallelism is immutable", LastTimestamp: at(40)}
	earlier := corev1.Event{Reason: "FailedCreate", Message: "exceeded quota", LastTimestamp: at(50)}
	snapshot := &Snapshot{Warnings: []corev1.Event{refused, earlier}, Pods: make([]corev1.Pod, 4),
		Workloads: []kueue.Workload{aWorkload("tune", admitted(20), elastic("2", 3))},
		TrainingJobs: []breezeml.TrainingJob{aTrainingJob("tune", func(job *breezeml.TrainingJob) {
			job.Status.Stage, job.Status.CurrentSize = breezeml.StageRunning, 3
			job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{"Worker": {Active: 4}}
		})}}
	jobs := Jobs(snapshot, start.Add(time.Minute))
	if got := Explain(snapshot, jobs, jobs[0], start.Add(time.Minute)).Warning; got == nil ||
		got.Reason != "ChangeRefused" || !snapshot.NeedsWarnings(&jobs[0]) {
		t.Errorf("warning = %+v, want that the change was refused", got)
	}
	snapshot.Pods = snapshot.Pods[:3]
	if got := Explain(snapshot, jobs, jobs[0], start.Add(time.Minute)).Warning; got != nil {
		t.Errorf("with its size the warning = %+v, want none", got)
	}
}
